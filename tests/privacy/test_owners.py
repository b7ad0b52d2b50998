"""Several owners add up their rows: the sum is that of one machine, and nobody sees another."""

import math
import pickle
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent
from scipy.stats import chi2

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema
from skdpgen.curator.source import RecordSource
from skdpgen.exceptions import BudgetExceededError, PlanError, SpentError
from skdpgen.federated import clients as owners
from skdpgen.federated.clients import expand, make_share
from skdpgen.mechanisms.base import Mechanism
from skdpgen.mechanisms.sums import RowCountMechanism
from skdpgen.privacy import (
    Adder,
    Contribution,
    CovarianceMechanism,
    JointFit,
    NoiseSource,
    Owner,
    PrivacyBudget,
    SharedGaussianDpEvent,
    Sharing,
    verify,
)
from skdpgen.releases import SlicedRows

pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = Schema(
    {
        "age": Number(18, 90, n_knots=12),
        "weight": Number(40, 150, n_knots=12),
        "job": Category(["nurse", "cook", "clerk"]),
        "ill": Boolean(),
    }
)
SHARING = Sharing(5, n_dropouts=2, n_colluding=1)


def make_table(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(15, 90, n),
            "weight": rng.uniform(40, 150, n),
            "job": rng.choice(["nurse", "cook", "clerk", "king"], n),
            "ill": rng.random(n) < 0.2,
        }
    )


def agree(n=300, sharing=SHARING, **params):
    params = {"epsilon": 2.0, "schema": SCHEMA, "n_steps": 2} | params
    return JointFit(DPSWFlowSampler(**params), sharing, n, target="ill")


def cut(table, n_owners=5):
    """Return parts of very different sizes."""
    stops = [0, 1, 8, 100, 101, len(table)]
    return [table[a:b] for a, b in pairwise(stops)][:n_owners]


def start(joint):
    owners = [Owner(joint, i) for i in range(joint.sharing.n_owners)]
    return owners, {owner.position: owner.public_key for owner in owners}


def contribute(joint, lost=(), *, parts=None):
    """Return owners, public keys and the contributions of those who are not lost."""
    owners, keys = start(joint)
    parts = parts or cut(make_table())
    sent = [o.contribute(parts[o.position], keys) for o in owners if o.position not in lost]
    return owners, keys, sent


def add_up(joint, lost=(), *, parts=None):
    owners, keys, sent = contribute(joint, lost, parts=parts)
    adder = Adder(joint, keys)
    for contribution in sent:
        adder.take(contribution)
    stayed = adder.close()
    return adder.unmask({position: owners[position].unmask(stayed) for position in stayed})


def quieten(monkeypatch):
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, std: np.zeros(np.shape(std), dtype=np.int64)
    )


@pytest.mark.parametrize("lost", [(), (4,), (0, 3)])
def test_the_sum_is_that_of_one_machine_to_the_bit(lost, monkeypatch):
    quieten(monkeypatch)
    table, joint = make_table(), agree()
    joined = joint.fit(table, lambda: add_up(joint, lost))
    # Rows of who dropped out count as absent.
    whole = table.astype({"ill": object})
    for position in lost:
        whole.loc[cut(table)[position].index, "ill"] = None
    alone = agree().generator.fit(whole, target="ill")
    assert joined.privacy_.digest == alone.privacy_.digest
    assert alone.privacy_.events == (GaussianDpEvent(joined.privacy_.events[0].noise_multiplier),)


def test_the_grid_follows_from_the_number_of_all_rows(monkeypatch):
    quieten(monkeypatch)
    rows = cut(make_table())[2]
    fine, coarse = (make_share(agree(n=n), rows).max() for n in (300, 2**30))
    # What is multiplied has 19 bits, or 15 where so many products have to fit.
    assert fine / coarse == pytest.approx(2**8, rel=0.01)


def test_noise_is_shared():
    table, joint = make_table(), agree()
    whole = cut(table)[4]
    # What two shares of the same rows differ by is noise, in each number and for each owner.
    shares = np.stack([make_share(joint, whole).ravel() for _ in range(6)]).astype(np.float64)
    alone = NoiseSource(0)
    seen = {}

    class Seen(Exception):
        pass

    def note(self, source, event, **kwargs):
        measured = self._measure(source, event, kwargs["relation"], alone)
        seen["std"] = measured.std * measured.scale
        raise Seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "run", note)
        with pytest.raises(Seen):
            joint.generator.fit(table, target="ill")
    std = seen["std"] / math.sqrt(SHARING.n_shares)
    # χ² with 5 degrees for each number; either side fails with a chance of 1e-9.
    degrees = 5 * shares.shape[1]
    total = shares.var(axis=0, ddof=1).sum() * 5 / std**2
    assert chi2.ppf(1e-9, degrees) < total < chi2.isf(1e-9, degrees)
    # Numbers of two shares are not those of each other, nor are numbers of one.
    noise = (shares - shares.mean(axis=0)) / std
    assert len(np.unique(noise)) > 0.99 * noise.size
    first, second = shares[0] - shares[1], shares[2] - shares[3]
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / math.sqrt(len(first))
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / math.sqrt(len(first))


def test_a_seed_of_the_generator_seeds_no_noise():
    joint = agree(random_state=0)
    first, second = (make_share(joint, cut(make_table())[2]) for _ in range(2))
    assert np.mean(first == second) < 0.01
    assert joint.generator.random_state == 0


def test_noise_reaches_the_release():
    joint = agree()
    first, second = (add_up(joint) for _ in range(2))
    assert np.mean(first == second) < 0.01


# --- masks ---------------------------------------------------------------------------------------


def looks_random(numbers):
    """Whether the leading and the last bytes are uniform; fails with a chance of 1e-9 each."""
    numbers = np.asarray(numbers).ravel()
    for shift in (0, 56):
        counts = np.bincount((numbers >> np.uint64(shift)) % np.uint64(256), minlength=256)
        expected = len(numbers) / 256
        if ((counts - expected) ** 2 / expected).sum() > chi2.isf(1e-9, 255):
            return False
    return True


@pytest.fixture(scope="module")
def wide():
    """An agreement on many numbers, and one row for each owner."""
    names = [f"column {i}" for i in range(8)]
    schema = Schema({name: Number(0, 1, n_knots=12) for name in names} | {"ill": Boolean()})
    joint = agree(5, schema=schema)
    row = pd.DataFrame([{name: 0.5 for name in names} | {"ill": True}])
    return joint, [row] * 5


def test_what_is_sent_is_as_random_numbers(wide):
    joint, parts = wide
    owners, _, sent = contribute(joint, parts=parts)
    assert not looks_random(make_share(joint, parts[0]).view(np.uint64))
    for contribution in sent:
        assert looks_random(contribution.numbers)
    for a, b in combinations(sent, 2):
        assert looks_random(a.numbers - b.numbers)
        assert looks_random(a.numbers + b.numbers)
    assert looks_random(sum(c.numbers for c in sent[:4]))
    # Without their own masks, four of five still have those that they share with the fifth.
    shape = sent[0].numbers.shape
    own = [expand(owner._own_seed, math.prod(shape)).reshape(shape) for owner in owners]
    assert looks_random(sum(c.numbers - m for c, m in zip(sent[:4], own, strict=False)))
    assert not looks_random(sum(c.numbers - m for c, m in zip(sent, own, strict=True)))


def test_who_comes_late_stays_masked(wide):
    joint, parts = wide
    owners, keys, sent = contribute(joint, parts=parts)
    adder = Adder(joint, keys)
    for contribution in sent[:4]:
        adder.take(contribution)
    stayed = adder.close()
    assert stayed == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="comes late"):
        adder.take(sent[4])
    with pytest.raises(PlanError, match="unmasks a sum that it is in"):
        owners[4].unmask(stayed)
    revealed = {position: owners[position].unmask(stayed) for position in stayed}
    assert {position: set(seeds) for position, seeds in revealed.items()} == {
        position: {position, 4} for position in stayed
    }
    late = sent[4].numbers.copy()
    for position, seeds in revealed.items():
        mask = expand(seeds[4], late.size).reshape(late.shape)
        late += mask if position < 4 else -mask
    # All that it shares with others is taken away: its own mask is left.
    assert looks_random(late)
    own = expand(owners[4]._own_seed, late.size).reshape(late.shape)
    assert not looks_random(late - own)
    assert not looks_random(adder.unmask(revealed).view(np.uint64))


def test_owners_are_kept_between_messages():
    joint = agree()
    owners, keys = start(joint)
    parts = cut(make_table())
    adder, kept = Adder(joint, keys), []
    for owner in owners:
        owner = pickle.loads(pickle.dumps(owner))
        contribution = owner.contribute(parts[owner.position], keys)
        kept.append(pickle.dumps(owner))
        adder.take(pickle.loads(pickle.dumps(contribution)))
    stayed = adder.close()
    revealed = {i: pickle.loads(kept[i]).unmask(stayed) for i in stayed}
    total = adder.unmask(revealed)
    assert joint.fit(make_table(1), lambda: total).epsilon_ <= 2.0


# --- what is refused -----------------------------------------------------------------------------


def test_more_dropouts_than_agreed_abort_before_unmasking():
    joint = agree()
    calls = []

    def ask():
        owners, keys, sent = contribute(joint, lost=(0, 1, 2))
        adder = Adder(joint, keys)
        for contribution in sent:
            adder.take(contribution)
        for owner in owners[3:]:
            with pytest.raises(PlanError, match="of at least 3 owners"):
                owner.unmask([3, 4])
        calls.append(adder)
        return adder.unmask(dict.fromkeys(adder.close()))

    with pytest.raises(SpentError, match=r"2 of 5 owners have .* Nothing was unmasked.* spent, on"):
        joint.fit(make_table(), ask)
    with pytest.raises(RuntimeError, match="stays as it is"):
        calls[0].unmask({})


def test_the_server_closes_no_sum_of_too_few():
    joint = agree()
    _, keys, sent = contribute(joint, lost=(0, 1, 2))
    adder = Adder(joint, keys)
    for contribution in sent:
        adder.take(contribution)
    with pytest.raises(RuntimeError, match="3 are needed for the noise"):
        adder.close()


def test_who_drops_out_after_the_sum_leaves_it_masked():
    joint = agree()
    owners, keys, sent = contribute(joint)
    adder = Adder(joint, keys)
    for contribution in sent:
        adder.take(contribution)
    stayed = adder.close()
    revealed = {position: owners[position].unmask(stayed) for position in stayed[:-1]}
    with pytest.raises(RuntimeError, match="stays as it is: masked"):
        adder.unmask(revealed)
    with pytest.raises(PlanError, match="unmasks once"):
        owners[0].unmask(stayed)
    with pytest.raises(PlanError, match="unmasks once"):
        owners[0].unmask(stayed[:-1])


def test_an_owner_contributes_once():
    joint = agree()
    owners, keys, _ = contribute(joint)
    with pytest.raises(PlanError, match="contributes once"):
        owners[0].contribute(cut(make_table())[0], keys)
    fresh = Owner(joint, 0)
    with pytest.raises(PlanError, match="unmasks once"):
        fresh.unmask(range(5))
    with pytest.raises(PlanError, match="own public key"):
        fresh.contribute(cut(make_table())[0], keys)


@pytest.mark.parametrize(
    "other",
    [
        agree(n=301),
        agree(epsilon=2.1),
        agree(schema=SCHEMA.replace({"age": Number(18, 91, n_knots=12)})),
        agree(sharing=Sharing(5, 2, 0)),
        JointFit(agree().generator, SHARING, 300),
    ],
)
def test_owners_agree_on_all_that_is_public(other):
    joint = agree()
    assert agree(random_state=3, verbose=1).digest == joint.digest != other.digest
    numbers = np.zeros(3, dtype=np.uint64)
    adder = Adder(joint, start(joint)[1])
    adder.take(Contribution(0, joint.digest, numbers))
    for contribution in (
        Contribution(1, other.digest, numbers),
        Contribution(1, joint.digest, numbers[:2]),
        Contribution(1, joint.digest, numbers.astype(np.int64)),
    ):
        with pytest.raises(ValueError, match="agreed on something else"):
            adder.take(contribution)
    for position in (0, 5):
        with pytest.raises(ValueError, match="No contribution is due"):
            adder.take(Contribution(position, joint.digest, numbers))


def test_owners_of_two_versions_do_not_agree(monkeypatch):
    joint = agree()
    digest = joint.digest
    monkeypatch.setattr(owners, "__version__", "0.0.1")
    assert joint.digest != digest


BAD_KEYS = {
    "of too few": (lambda keys: {i: keys[i] for i in (0, 1)}, RuntimeError, "2 of 5 owners gave"),
    "repeated": (lambda keys: {**keys, 1: keys[2]}, ValueError, "the same public key"),
    "short": (lambda keys: {**keys, 1: keys[1][:-1]}, ValueError, "32 bytes"),
    "a text": (lambda keys: {**keys, 1: keys[1].hex()}, ValueError, "32 bytes"),
    "of nobody": (lambda keys: {**keys, 5: bytes(32)}, ValueError, "0 to 4"),
}
# With a point of small order everybody agrees on the same secret, 0.
SMALL_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]


class Unread(pd.DataFrame):
    """Rows that nobody may read."""

    @property
    def _constructor(self):
        return pd.DataFrame

    def to_numpy(self, *args, **kwargs):
        raise AssertionError("A row was read.")


@pytest.mark.parametrize("name", BAD_KEYS)
def test_bad_keys_are_refused_before_a_row_is_read(name):
    joint = agree()
    owners, keys = start(joint)
    change, error, match = BAD_KEYS[name]
    with pytest.raises(error, match=match):
        Adder(joint, change(keys))
    with PrivacyBudget(2.5, 1e-5) as budget:
        with pytest.raises(error, match=match):
            owners[0].contribute(Unread(make_table()), change(keys))
        assert budget.spent == 0
        # Nothing was sent: with good keys it still contributes.
        assert owners[0].contribute(cut(make_table())[0], keys).position == 0


@pytest.mark.parametrize("key", SMALL_ORDER, ids=lambda key: key.hex()[:8])
def test_keys_with_which_everybody_has_the_same_secret_are_refused(key):
    joint = agree()
    owners, keys = start(joint)
    with PrivacyBudget(2.5, 1e-5) as budget:
        with pytest.raises(ValueError, match="is no public key of an owner"):
            owners[0].contribute(Unread(make_table()), {**keys, 1: key})
        assert budget.spent == 0
    assert owners[0].contribute(cut(make_table())[0], keys).position == 0


@pytest.mark.parametrize("keyless", [(), (1,), (0, 3)])
def test_who_gave_no_key_is_as_dropped_out(keyless, monkeypatch):
    quieten(monkeypatch)
    joint, parts = agree(), cut(make_table())
    owners, keys = start(joint)
    given = {position: key for position, key in keys.items() if position not in keyless}
    adder = Adder(joint, given)
    for position in keyless:
        with pytest.raises(PlanError, match="own public key is not among those"):
            owners[position].contribute(Unread(parts[position]), given)
        sent = owners[position].contribute(parts[position], keys)
        with pytest.raises(ValueError, match=f"No contribution is due of owner {position}"):
            adder.take(sent)
    for position in given:
        adder.take(owners[position].contribute(parts[position], given))
    stayed = adder.close()
    assert stayed == list(given)
    if keyless:
        # Nobody unmasks a sum with somebody in it with whom it shares no mask.
        with pytest.raises(PlanError, match="of at least 3 owners who gave keys"):
            owners[stayed[0]].unmask(range(5))
    total = adder.unmask({position: owners[position].unmask(stayed) for position in stayed})
    expected = sum(make_share(joint, parts[position]) for position in given)
    assert (total == expected).all()


def test_one_dropout_too_many_after_keys_were_given_leaves_all_masked():
    """Who gave no key counts among those who may drop out."""
    joint, parts = agree(), cut(make_table())
    owners, keys = start(joint)
    given = {position: keys[position] for position in (0, 2, 4)}
    adder = Adder(joint, given)
    for position in (0, 2):
        adder.take(owners[position].contribute(parts[position], given))
    with pytest.raises(RuntimeError, match="2 of 5 owners have contributed, and 3 are needed"):
        adder.close()
    with pytest.raises(RuntimeError, match="stays as it is: masked"):
        adder.unmask({})
    for position in (0, 2):
        with pytest.raises(PlanError, match="of at least 3 owners"):
            owners[position].unmask([0, 2])


@pytest.mark.parametrize("stayed", [(), (0, 1), (0, 0, 0, 0), (1, 2, 3), (0, 1, 2, 7), (0, 1, 9)])
def test_lists_of_who_stayed_that_are_not_unmasked(stayed):
    owners, _, _ = contribute(agree())
    with pytest.raises(PlanError, match="unmasks a sum that it is in, of at least 3 owners"):
        owners[0].unmask(stayed)
    # What is refused reveals nothing, and is asked for again.
    assert set(owners[0].unmask((0, 1, 2))) == {0, 3, 4}


@pytest.mark.parametrize("lost", [(), (4,), (0, 3)])
def test_all_seeds_are_needed(lost):
    owners, keys, sent = contribute(joint := agree(), lost)
    adder = Adder(joint, keys)
    for contribution in sent:
        adder.take(contribution)
    stayed = adder.close()
    revealed = {position: owners[position].unmask(stayed) for position in stayed}
    for position in stayed:
        for seed in revealed[position]:
            some = {name: value for name, value in revealed[position].items() if name != seed}
            with pytest.raises(RuntimeError, match="stays as it is: masked"):
                adder.unmask({**revealed, position: some})
    assert not looks_random(adder.unmask(revealed).view(np.uint64))


def test_with_a_wrong_key_of_one_owner_the_sum_stays_masked(wide):
    """Somebody else's key in place of an owner's, towards one other owner."""
    joint, parts = wide
    owners, keys = start(joint)
    stranger = Owner(joint, 1).public_key
    adder = Adder(joint, keys)
    for owner in owners:
        wrong = {**keys, 1: stranger} if owner.position == 3 else keys
        adder.take(owner.contribute(parts[owner.position], wrong))
    stayed = adder.close()
    revealed = {position: owners[position].unmask(stayed) for position in stayed}
    assert looks_random(adder.unmask(revealed).view(np.uint64))


def test_a_server_that_lies_about_who_stayed_is_trusted_not_to(wide):
    """It tells an owner that it stayed, and the others that it did not: the certificate says so."""
    joint, parts = wide
    owners, _, sent = contribute(joint, parts=parts)
    others = [owner.unmask([1, 2, 3, 4]) for owner in owners[1:]]
    own = owners[0].unmask(range(5))
    size, shape = sent[0].numbers.size, sent[0].numbers.shape
    masks = expand(own[0], size) + sum(expand(seeds[0], size) for seeds in others)
    read = (sent[0].numbers.ravel() - masks).reshape(shape)
    assert not looks_random(read)
    (trusted,) = (text for text in joint.sharing.assumptions if "server" in text)
    assert "trusted to follow the protocol" in trusted
    assert "same list of who stayed" in trusted
    assert "can read the sum of a single owner" in trusted


def test_numbers_of_owners_and_rows_are_checked():
    with pytest.raises(ValueError, match="0 to 4"):
        Owner(agree(), 5)
    with pytest.raises(ValueError, match="one row of each owner"):
        agree(n=4)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"schema": "private"}, "one Gaussian release"),
        ({"schema": Schema({**SCHEMA, "age": Number(18, 90)})}, "are: value counts, two-way"),
        ({"epsilon": math.inf}, "one Gaussian release"),
        ({"schema": None}, "take a schema"),
        ({"release": SlicedRows(n_steps=1)}, "reads rows at random"),
    ],
)
def test_what_has_no_shares_is_refused_before_a_row_is_read(params, match):
    joint = agree(**params)
    asked = []
    with pytest.raises((ValueError, PlanError), match=match):
        joint.fit(make_table(), lambda: asked.append(1))
    assert not asked
    owners, keys = start(joint)
    with pytest.raises((ValueError, PlanError), match=match):
        owners[0].contribute(Unread(make_table()), keys)


def test_sizes_of_owners():
    joint = agree()
    owners, keys = start(joint)
    with pytest.raises(ValueError, match="no more than all owners"):
        owners[0].contribute(make_table(301), keys)
    with pytest.raises(ValueError, match="An owner has rows"):
        owners[1].contribute(make_table(0), keys)


def test_numbers_without_noise_are_told_to_nobody():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    source = RecordSource(rows, None, classes=None, prepare=None, cells=False, clip_norm=9.0)
    source.open()
    event = SharedGaussianDpEvent(2.0, 3, 0, 1)
    made = {"relation": "zero_out", "noise": NoiseSource(None), "n_shares": 2}
    share = CovarianceMechanism().make_share(source, event, **made)
    assert (share[np.tril_indices(4, -1)] == 0).all()
    assert (share[np.triu_indices(4)] != 0).all()
    with pytest.raises(PlanError, match="less than 16 steps"):
        RowCountMechanism().make_share(source, event, **made)


# --- what is certified ---------------------------------------------------------------------------


def test_the_certificate_names_what_was_done():
    joint = agree()
    fitted = joint.fit(make_table(), lambda: add_up(joint, lost=(1,)))
    certificate = fitted.privacy_
    (event,) = certificate.events
    assert (event.n_owners, event.n_dropouts, event.n_colluding) == (5, 2, 1)
    assert fitted.epsilon_ <= 2.0
    assert verify(certificate.to_json()) == fitted.epsilon_
    assert certificate.n_records == 300
    said = " ".join(str(certificate).split())
    assert "of 5 owners, 1 at most tell anybody" in said
    assert "added up by" not in said
    assert not certificate.reproducible
    rows = fitted.sample(20)
    assert list(rows.columns) == list(SCHEMA)


def test_each_owner_and_the_server_pay():
    joint = agree()
    owners, keys = start(joint)
    part = cut(make_table())[2]
    with PrivacyBudget(2.5, 1e-5) as budget:
        owners[2].contribute(part, keys)
        assert budget.spent > 1.9
        again = Owner(joint, 2)
        with pytest.raises(BudgetExceededError):
            again.contribute(part, {**keys, 2: again.public_key})
        with pytest.raises(BudgetExceededError):
            joint.fit(part, lambda: pytest.fail("Owners were asked."))
