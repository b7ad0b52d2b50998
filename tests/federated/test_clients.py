"""Several clients add up their rows: the sum is that of one machine, and nobody sees another."""

import math
import pickle
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent
from scipy.stats import chi2

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema
from skdpgen.curator.batches import RecordSource
from skdpgen.exceptions import BudgetExceededError, PlanError, SpentError
from skdpgen.federated import fit
from skdpgen.federated.fit import make_share
from skdpgen.federated.secure_aggregation import expand
from skdpgen.mechanisms.base import Mechanism
from skdpgen.mechanisms.sums import RowCountMechanism
from skdpgen.privacy import (
    Aggregator,
    Client,
    CovarianceMechanism,
    FederatedFit,
    MaskedUpdate,
    NoiseSource,
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
    params = {"epsilon": 2.0, "schema": SCHEMA, "release": "pairs", "n_steps": 2} | params
    return FederatedFit(DPSWFlowSampler(**params), sharing, n, target="ill")


def cut(table, n_clients=5):
    """Return parts of very different sizes."""
    stops = [0, 1, 8, 100, 101, len(table)]
    return [table[a:b] for a, b in pairwise(stops)][:n_clients]


def start(agreed):
    clients = [Client(agreed, i) for i in range(agreed.sharing.n_clients)]
    return clients, {client.position: client.public_key for client in clients}


def make_updates(agreed, lost=(), *, parts=None):
    """Return clients, public keys and the updates of those who are not lost."""
    clients, keys = start(agreed)
    parts = parts or cut(make_table())
    sent = [o.make_update(parts[o.position], keys) for o in clients if o.position not in lost]
    return clients, keys, sent


def add_up(agreed, lost=(), *, parts=None):
    clients, keys, sent = make_updates(agreed, lost, parts=parts)
    aggregator = Aggregator(agreed, keys)
    for update in sent:
        aggregator.add(update)
    survivors = aggregator.close()
    return aggregator.unmask(
        {position: clients[position].unmask(survivors) for position in survivors}
    )


def quieten(monkeypatch):
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, std: np.zeros(np.shape(std), dtype=np.int64)
    )


@pytest.mark.parametrize("lost", [(), (4,), (0, 3)])
def test_the_sum_is_that_of_one_machine_to_the_bit(lost, monkeypatch):
    quieten(monkeypatch)
    table, agreed = make_table(), agree()
    joined = agreed.fit(table, lambda: add_up(agreed, lost))
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
    # Factors of products have 19 bits, or 15 where so many products have to fit.
    assert fine / coarse == pytest.approx(2**8, rel=0.01)


def test_noise_is_shared():
    table, agreed = make_table(), agree()
    whole = cut(table)[4]
    # Two shares of the same rows differ by noise, in each number and for each client.
    shares = np.stack([make_share(agreed, whole).ravel() for _ in range(6)]).astype(np.float64)
    alone = NoiseSource(0)
    seen = {}

    class Seen(GeneratorExit):
        pass

    def note(self, source, event, **kwargs):
        measured = self._measure(source, event, kwargs["relation"], alone)
        seen["std"] = measured.std * measured.scale
        raise Seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "run", note)
        with pytest.raises(Seen):
            agreed.generator.fit(table, target="ill")
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
    agreed = agree(random_state=0)
    first, second = (make_share(agreed, cut(make_table())[2]) for _ in range(2))
    assert np.mean(first == second) < 0.01
    assert agreed.generator.random_state == 0


def test_noise_reaches_the_release():
    agreed = agree()
    first, second = (add_up(agreed) for _ in range(2))
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
    """An agreement on many numbers, and one row for each client."""
    names = [f"column {i}" for i in range(8)]
    schema = Schema({name: Number(0, 1, n_knots=12) for name in names} | {"ill": Boolean()})
    agreed = agree(5, schema=schema)
    row = pd.DataFrame([{name: 0.5 for name in names} | {"ill": True}])
    return agreed, [row] * 5


def test_messages_look_like_random_numbers(wide):
    agreed, parts = wide
    clients, _, sent = make_updates(agreed, parts=parts)
    assert not looks_random(make_share(agreed, parts[0]).view(np.uint64))
    for update in sent:
        assert looks_random(update.numbers)
    for a, b in combinations(sent, 2):
        assert looks_random(a.numbers - b.numbers)
        assert looks_random(a.numbers + b.numbers)
    assert looks_random(sum(c.numbers for c in sent[:4]))
    # Without their own masks, four of five still have those that they share with the fifth.
    shape = sent[0].numbers.shape
    own = [expand(client._own_seed, math.prod(shape)).reshape(shape) for client in clients]
    assert looks_random(sum(c.numbers - m for c, m in zip(sent[:4], own, strict=False)))
    assert not looks_random(sum(c.numbers - m for c, m in zip(sent, own, strict=True)))


def test_who_comes_late_stays_masked(wide):
    agreed, parts = wide
    clients, keys, sent = make_updates(agreed, parts=parts)
    aggregator = Aggregator(agreed, keys)
    for update in sent[:4]:
        aggregator.add(update)
    survivors = aggregator.close()
    assert survivors == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="comes late"):
        aggregator.add(sent[4])
    with pytest.raises(PlanError, match="unmasks a sum that it is in"):
        clients[4].unmask(survivors)
    revealed = {position: clients[position].unmask(survivors) for position in survivors}
    assert {position: set(seeds) for position, seeds in revealed.items()} == {
        position: {position, 4} for position in survivors
    }
    late = sent[4].numbers.copy()
    for position, seeds in revealed.items():
        mask = expand(seeds[4], late.size).reshape(late.shape)
        late += mask if position < 4 else -mask
    # All that it shares with others is taken away: its own mask is left.
    assert looks_random(late)
    own = expand(clients[4]._own_seed, late.size).reshape(late.shape)
    assert not looks_random(late - own)
    assert not looks_random(aggregator.unmask(revealed).view(np.uint64))


def test_clients_are_kept_between_messages():
    agreed = agree()
    clients, keys = start(agreed)
    parts = cut(make_table())
    aggregator, kept = Aggregator(agreed, keys), []
    for client in clients:
        client = pickle.loads(pickle.dumps(client))
        update = client.make_update(parts[client.position], keys)
        kept.append(pickle.dumps(client))
        aggregator.add(pickle.loads(pickle.dumps(update)))
    survivors = aggregator.close()
    revealed = {i: pickle.loads(kept[i]).unmask(survivors) for i in survivors}
    total = aggregator.unmask(revealed)
    assert agreed.fit(make_table(1), lambda: total).epsilon_ <= 2.0


# --- what is refused -----------------------------------------------------------------------------


def test_more_dropouts_than_agreed_abort_before_unmasking():
    agreed = agree()
    calls = []

    def ask():
        clients, keys, sent = make_updates(agreed, lost=(0, 1, 2))
        aggregator = Aggregator(agreed, keys)
        for update in sent:
            aggregator.add(update)
        for client in clients[3:]:
            with pytest.raises(PlanError, match="of at least 3 clients"):
                client.unmask([3, 4])
        calls.append(aggregator)
        return aggregator.unmask(dict.fromkeys(aggregator.close()))

    with pytest.raises(SpentError, match=r"2 of 5 clients sent .* Nothing was unmasked.* charged"):
        agreed.fit(make_table(), ask)
    with pytest.raises(RuntimeError, match="stays masked"):
        calls[0].unmask({})


def test_the_server_closes_no_sum_of_too_few():
    agreed = agree()
    _, keys, sent = make_updates(agreed, lost=(0, 1, 2))
    aggregator = Aggregator(agreed, keys)
    for update in sent:
        aggregator.add(update)
    with pytest.raises(RuntimeError, match="3 are needed for the noise"):
        aggregator.close()


def test_who_drops_out_after_the_sum_leaves_it_masked():
    agreed = agree()
    clients, keys, sent = make_updates(agreed)
    aggregator = Aggregator(agreed, keys)
    for update in sent:
        aggregator.add(update)
    survivors = aggregator.close()
    revealed = {position: clients[position].unmask(survivors) for position in survivors[:-1]}
    with pytest.raises(RuntimeError, match="the sum stays masked"):
        aggregator.unmask(revealed)
    with pytest.raises(PlanError, match="unmasks once"):
        clients[0].unmask(survivors)
    with pytest.raises(PlanError, match="unmasks once"):
        clients[0].unmask(survivors[:-1])


def test_a_client_contributes_once():
    agreed = agree()
    clients, keys, _ = make_updates(agreed)
    with pytest.raises(PlanError, match="makes one update"):
        clients[0].make_update(cut(make_table())[0], keys)
    fresh = Client(agreed, 0)
    with pytest.raises(PlanError, match="unmasks once"):
        fresh.unmask(range(5))
    with pytest.raises(PlanError, match="own public key"):
        fresh.make_update(cut(make_table())[0], keys)


@pytest.mark.parametrize(
    "other",
    [
        agree(n=301),
        agree(epsilon=2.1),
        agree(schema=SCHEMA.replace({"age": Number(18, 91, n_knots=12)})),
        agree(sharing=Sharing(5, 2, 0)),
        FederatedFit(agree().generator, SHARING, 300),
    ],
)
def test_clients_agree_on_all_that_is_public(other):
    agreed = agree()
    assert agree(random_state=3, verbose=1).digest == agreed.digest != other.digest
    numbers = np.zeros(3, dtype=np.uint64)
    aggregator = Aggregator(agreed, start(agreed)[1])
    aggregator.add(MaskedUpdate(0, agreed.digest, numbers))
    for update in (
        MaskedUpdate(1, other.digest, numbers),
        MaskedUpdate(1, agreed.digest, numbers[:2]),
        MaskedUpdate(1, agreed.digest, numbers.astype(np.int64)),
    ):
        with pytest.raises(ValueError, match="agreed on something else"):
            aggregator.add(update)
    for position in (0, 5):
        with pytest.raises(ValueError, match="No update is due"):
            aggregator.add(MaskedUpdate(position, agreed.digest, numbers))


def test_clients_of_two_versions_do_not_agree(monkeypatch):
    agreed = agree()
    digest = agreed.digest
    monkeypatch.setattr(fit, "__version__", "0.0.1")
    assert agreed.digest != digest


BAD_KEYS = {
    "of too few": (lambda keys: {i: keys[i] for i in (0, 1)}, RuntimeError, "2 of 5 clients gave"),
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
    agreed = agree()
    clients, keys = start(agreed)
    change, error, match = BAD_KEYS[name]
    with pytest.raises(error, match=match):
        Aggregator(agreed, change(keys))
    with PrivacyBudget(2.5, 1e-5) as budget:
        with pytest.raises(error, match=match):
            clients[0].make_update(Unread(make_table()), change(keys))
        assert budget.spent == 0
        # Nothing was sent: with good keys it still contributes.
        assert clients[0].make_update(cut(make_table())[0], keys).position == 0


@pytest.mark.parametrize("key", SMALL_ORDER, ids=lambda key: key.hex()[:8])
def test_keys_with_which_everybody_has_the_same_secret_are_refused(key):
    agreed = agree()
    clients, keys = start(agreed)
    with PrivacyBudget(2.5, 1e-5) as budget:
        with pytest.raises(ValueError, match="is no public key of a client"):
            clients[0].make_update(Unread(make_table()), {**keys, 1: key})
        assert budget.spent == 0
    assert clients[0].make_update(cut(make_table())[0], keys).position == 0


@pytest.mark.parametrize("keyless", [(), (1,), (0, 3)])
def test_who_gave_no_key_is_as_dropped_out(keyless, monkeypatch):
    quieten(monkeypatch)
    agreed, parts = agree(), cut(make_table())
    clients, keys = start(agreed)
    given = {position: key for position, key in keys.items() if position not in keyless}
    aggregator = Aggregator(agreed, given)
    for position in keyless:
        with pytest.raises(PlanError, match="own public key is not among those"):
            clients[position].make_update(Unread(parts[position]), given)
        sent = clients[position].make_update(parts[position], keys)
        with pytest.raises(ValueError, match=f"No update is due of client {position}"):
            aggregator.add(sent)
    for position in given:
        aggregator.add(clients[position].make_update(parts[position], given))
    survivors = aggregator.close()
    assert survivors == list(given)
    if keyless:
        # Nobody unmasks a sum with somebody in it with whom it shares no mask.
        with pytest.raises(PlanError, match="of at least 3 clients who gave keys"):
            clients[survivors[0]].unmask(range(5))
    total = aggregator.unmask(
        {position: clients[position].unmask(survivors) for position in survivors}
    )
    expected = sum(make_share(agreed, parts[position]) for position in given)
    assert (total == expected).all()


def test_one_dropout_too_many_after_keys_were_given_leaves_all_masked():
    """Who gave no key counts among those who may drop out."""
    agreed, parts = agree(), cut(make_table())
    clients, keys = start(agreed)
    given = {position: keys[position] for position in (0, 2, 4)}
    aggregator = Aggregator(agreed, given)
    for position in (0, 2):
        aggregator.add(clients[position].make_update(parts[position], given))
    with pytest.raises(RuntimeError, match="2 of 5 clients sent an update, and 3 are needed"):
        aggregator.close()
    with pytest.raises(RuntimeError, match="the sum stays masked"):
        aggregator.unmask({})
    for position in (0, 2):
        with pytest.raises(PlanError, match="of at least 3 clients"):
            clients[position].unmask([0, 2])


@pytest.mark.parametrize(
    "survivors", [(), (0, 1), (0, 0, 0, 0), (1, 2, 3), (0, 1, 2, 7), (0, 1, 9)]
)
def test_lists_of_survivors_that_are_not_unmasked(survivors):
    clients, _, _ = make_updates(agree())
    with pytest.raises(PlanError, match="unmasks a sum that it is in, of at least 3 clients"):
        clients[0].unmask(survivors)
    # A refused request reveals nothing, and may be followed by another one.
    assert set(clients[0].unmask((0, 1, 2))) == {0, 3, 4}


@pytest.mark.parametrize("lost", [(), (4,), (0, 3)])
def test_all_seeds_are_needed(lost):
    clients, keys, sent = make_updates(agreed := agree(), lost)
    aggregator = Aggregator(agreed, keys)
    for update in sent:
        aggregator.add(update)
    survivors = aggregator.close()
    revealed = {position: clients[position].unmask(survivors) for position in survivors}
    for position in survivors:
        for seed in revealed[position]:
            some = {name: value for name, value in revealed[position].items() if name != seed}
            with pytest.raises(RuntimeError, match="the sum stays masked"):
                aggregator.unmask({**revealed, position: some})
    assert not looks_random(aggregator.unmask(revealed).view(np.uint64))


def test_with_a_wrong_key_of_one_client_the_sum_stays_masked(wide):
    """Somebody else's key in place of a client's, towards one other client."""
    agreed, parts = wide
    clients, keys = start(agreed)
    stranger = Client(agreed, 1).public_key
    aggregator = Aggregator(agreed, keys)
    for client in clients:
        wrong = {**keys, 1: stranger} if client.position == 3 else keys
        aggregator.add(client.make_update(parts[client.position], wrong))
    survivors = aggregator.close()
    revealed = {position: clients[position].unmask(survivors) for position in survivors}
    assert looks_random(aggregator.unmask(revealed).view(np.uint64))


def test_a_server_that_lies_about_survivors_is_trusted_not_to(wide):
    """A client that it calls a survivor to itself only is unmasked: the certificate says so."""
    agreed, parts = wide
    clients, _, sent = make_updates(agreed, parts=parts)
    others = [client.unmask([1, 2, 3, 4]) for client in clients[1:]]
    own = clients[0].unmask(range(5))
    size, shape = sent[0].numbers.size, sent[0].numbers.shape
    masks = expand(own[0], size) + sum(expand(seeds[0], size) for seeds in others)
    read = (sent[0].numbers.ravel() - masks).reshape(shape)
    assert not looks_random(read)
    (trusted,) = (text for text in agreed.sharing.assumptions if "server" in text)
    assert "trusted to follow the protocol" in trusted
    assert "same list of survivors" in trusted
    assert "can read the sum of a single client" in trusted


def test_numbers_of_clients_and_rows_are_checked():
    with pytest.raises(ValueError, match="0 to 4"):
        Client(agree(), 5)
    with pytest.raises(ValueError, match="one row for each client"):
        agree(n=4)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"schema": "private"}, "one Gaussian release"),
        ({"schema": Schema({**SCHEMA, "age": Number(18, 90)})}, "are: value counts, two-way"),
        ({"epsilon": math.inf}, "one Gaussian release"),
        ({"schema": None}, "generator with a schema"),
        ({"release": SlicedRows(n_steps=1)}, "reads rows at random"),
    ],
)
def test_fits_without_shares_are_refused_before_a_row_is_read(params, match):
    agreed = agree(**params)
    asked = []
    with pytest.raises((ValueError, PlanError), match=match):
        agreed.fit(make_table(), lambda: asked.append(1))
    assert not asked
    clients, keys = start(agreed)
    with pytest.raises((ValueError, PlanError), match=match):
        clients[0].make_update(Unread(make_table()), keys)


def test_sizes_of_clients():
    agreed = agree()
    clients, keys = start(agreed)
    with pytest.raises(ValueError, match="no more than all clients"):
        clients[0].make_update(make_table(301), keys)
    with pytest.raises(ValueError, match="A client has rows"):
        clients[1].make_update(make_table(0), keys)


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
    agreed = agree()
    fitted = agreed.fit(make_table(), lambda: add_up(agreed, lost=(1,)))
    certificate = fitted.privacy_
    (event,) = certificate.events
    assert (event.n_clients, event.n_dropouts, event.n_colluding) == (5, 2, 1)
    assert fitted.epsilon_ <= 2.0
    assert verify(certificate.to_json()) == fitted.epsilon_
    assert certificate.n_records == 300
    said = " ".join(str(certificate).split())
    assert "of 5 clients, at most 1 disclose" in said
    assert "summed by" not in said
    assert not certificate.reproducible
    rows = fitted.sample(20)
    assert list(rows.columns) == list(SCHEMA)


def test_each_client_and_the_server_pay():
    agreed = agree()
    clients, keys = start(agreed)
    part = cut(make_table())[2]
    with PrivacyBudget(2.5, 1e-5) as budget:
        clients[2].make_update(part, keys)
        assert budget.spent > 1.9
        again = Client(agreed, 2)
        with pytest.raises(BudgetExceededError):
            again.make_update(part, {**keys, 2: again.public_key})
        with pytest.raises(BudgetExceededError):
            agreed.fit(part, lambda: pytest.fail("Clients were asked."))
