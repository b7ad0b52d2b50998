"""Each edit of a certificate in JSON is refused, or what is printed says what is then true."""

import copy
import json
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent

from skdpgen.accounting.provenance import Provenance
from skdpgen.accounting.rounding import show
from skdpgen.privacy import Certificate, compose, ledger_epsilon, verify

OLD = sorted(Path(__file__).with_name("certificates").glob("*.json"))
# Fields recomputed from the rest: without them, or with other last digits, nothing changes.
FOLLOWS = {("epsilon",), ("mu",), ("rho",)}
# Edits of each certificate in the default run; all of them are slow.
_A_FEW = 60


def find_paths(node, path=()):
    """Give the path of each member of JSON, and of each item, below a node."""
    items = {dict: lambda: node.items(), list: lambda: enumerate(node)}.get(type(node), tuple)
    for key, part in items():
        yield (*path, key)
        yield from find_paths(part, (*path, key))


def change_at(data, path, change):
    """Return a copy of JSON whose part at a path is changed by ``change(holder, key)``."""
    changed = copy.deepcopy(data)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return changed


def list_values(value):
    """List other values, of the same type and of all others."""
    of_type = {
        bool: [not value],
        int: [value + 1, -value, 0] if type(value) is int else [],
        float: [value * 1.01, value * 0.99, -value, 0.0] if type(value) is float else [],
        str: [f"{value} ", f"{value}x", value[:-1], value.upper(), f"{value}\u200b", f"{value}\n"]
        if type(value) is str
        else [],
        list: [value[:-1], value + value[:1]] if type(value) is list else [],
        dict: [{**value, "also": 1}] if type(value) is dict else [],
    }.get(type(value), [])
    others = [None, True, False, 0, 1, 7, 0.5, "7", "", [], {}, "inf", [value], 10**400]
    return [other for other in of_type + others if repr(other) != repr(value)]


def _list_edits(data):
    """Give each edit of one member: its path, what is done, and the text that it makes."""

    def remove(holder, key):
        del holder[key]

    for path in find_paths(data):
        yield path, "removed", json.dumps(change_at(data, path, remove))
        value = data
        for key in path:
            value = value[key]
        for other in list_values(value):

            def replace(holder, key, other=other):
                holder[key] = other

            yield path, f"{other!r:.40}", json.dumps(change_at(data, path, replace))
        if isinstance(path[-1], str):
            yield path, "twice", _double(data, path)
            for name in (path[-1].upper(), f"{path[-1]}_"):

                def rename(holder, key, name=name):
                    holder[name] = holder.pop(key)

                yield path, f"called {name}", json.dumps(change_at(data, path, rename))
    for path in [(), *find_paths(data)]:

        def add(holder, key):
            part = holder if key is None else holder[key]
            part["further"] = 1

        holder = data
        for key in path:
            holder = holder[key]
        if isinstance(holder, dict) and path[-1:] != ("parameters",):
            added = change_at(data, path, add) if path else {**data, "further": 1}
            yield path, "further", json.dumps(added)


def _double(data, path):
    """Write JSON with a member of which there are two, of which the last is the true one."""
    marked = change_at(data, path, lambda holder, key: holder.update({f"{key}<double>": 0}))
    return re.sub('<double>": 0', '": 0', json.dumps(marked))


def _read(text):
    """Return what is printed of a certificate that is verified, or None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verify(text)
        except ValueError:
            return None
        return str(Certificate.from_json(text))


# One with each member that there is.
_FULL = Certificate(
    (GaussianDpEvent(4.0), SelfComposedDpEvent(GaussianDpEvent(9.0), 3)),
    ("slice sketch", "value ranges"),
    n_records=1000,
    assumptions=("one person has one record", "bounds are public"),
    provenance=Provenance("DPSWFlowSampler", (("bounds", "[0, 8]"),), "1.0", "2026-01-31"),
    digests=[("0123456789abcdef" * 4,)] * 2,
    engine="dask",
)
CERTIFICATES = {path.stem: json.loads(path.read_text()) for path in OLD}
CERTIFICATES["full"] = json.loads(_FULL.to_json())
_OTHER = replace(_FULL, digests=[("89abcdef01234567" * 4,)] * 2)
CERTIFICATES["composed"] = json.loads(compose(_FULL, _OTHER).to_json())


def _check(name, edits):
    data = CERTIFICATES[name]
    plain = _read(json.dumps(data))
    assert plain is not None
    n_accepted = 0
    for path, edit, text in edits:
        printed = _read(text)
        case = f"{path}: {edit}"
        if printed is None:
            continue
        n_accepted += 1
        if path in FOLLOWS:
            assert printed == plain, case
            continue
        assert printed != plain, f"{case} is not to be seen."
        read = Certificate.from_json(text)
        epsilon = ledger_epsilon(
            read.events, read.delta, accountant=read.accountant, relation=read.relation
        )
        assert f"with ε = {show(epsilon)} at δ = {show(read.delta)}." in printed, case
    return n_accepted


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_few_edits_are_refused_or_seen(name):
    edits = list(_list_edits(CERTIFICATES[name]))
    chosen = np.random.RandomState(0).permutation(len(edits))[:_A_FEW]
    _check(name, [edits[i] for i in chosen])


@pytest.mark.catches(
    "accounting.strict_json:check_members",
    "data.keys() - known.keys()",
    "[data.pop(name) for name in data.keys() - known.keys()][:0]",
    param="full",
)
@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFICATES)
def test_all_edits_are_refused_or_seen(name):
    edits = list(_list_edits(CERTIFICATES[name]))
    assert len(edits) > 300
    n_accepted = _check(name, edits)
    # Most are refused; names and assumptions may be any, and are printed.
    assert 0 < n_accepted < len(edits) / 2


def _refused(change):
    return json.dumps(change(copy.deepcopy(CERTIFICATES["full"])))


def _without_noise_or_data(event):
    """Return a certificate of an event that costs nothing, which says so truly."""
    return lambda data: {
        **data,
        **{"epsilon": 0.0, "mu": 0.0, "rho": 0.0},
        "releases": [{"name": "slice sketch", **event}],
    }


_GAUSSIAN = {"type": "GaussianDpEvent", "noise_multiplier": 4.0}
_NO_OP = {"type": "NoOpDpEvent"}


@pytest.mark.catches("accounting.certificate_form:read_event", "reveals_nothing(event)", "False")
@pytest.mark.catches(
    "accounting.strict_json:check_members", "not known[name].allows(value)", "False"
)
@pytest.mark.catches("accounting.units:check_unit", "others in assumptions", "False")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_noise_or_data(_NO_OP), "'slice sketch' releases nothing"),
        (
            _without_noise_or_data({"type": "ComposedDpEvent", "events": [_NO_OP, _NO_OP]}),
            "'slice sketch' releases nothing",
        ),
        (_without_noise_or_data({"type": "ComposedDpEvent", "events": []}), "releases nothing"),
        (
            _without_noise_or_data({"type": "SelfComposedDpEvent", "event": _NO_OP, "count": 9}),
            "releases nothing",
        ),
        (
            _without_noise_or_data({"type": "SelfComposedDpEvent", "event": _GAUSSIAN, "count": 0}),
            "at least 1 and at most 10000000 as count",
        ),
        (_without_noise_or_data({**_GAUSSIAN, "noise_multiplier": math.inf}), "Infinity is no"),
        (_without_noise_or_data({**_GAUSSIAN, "noise_multiplier": -4.0}), "as noise_multiplier"),
        (_without_noise_or_data({**_GAUSSIAN, "noise_multiplier": 1e101}), "as noise_multiplier"),
        (
            _without_noise_or_data(
                {"type": "PoissonSampledDpEvent", "event": _GAUSSIAN, "sampling_probability": 0.0}
            ),
            "releases nothing",
        ),
        (lambda data: {**data, "unit": "person"}, "for persons has unknown members: .'n_records'"),
        (lambda data: {**data, "unit": "record"}, "for persons has unknown members"),
        (lambda data: {**data, "max_rows": 3}, "for records has unknown members: .'max_rows'"),
        (lambda data: _of_persons(data, max_rows=0), "at least 1 as max_rows; got 0"),
        (lambda data: _of_persons(data, max_rows=True), "at least 1 as max_rows; got True"),
        (lambda data: _of_persons(data, max_rows=3), "for persons must not assume that one"),
        (
            lambda data: {**data, "assumptions": ["one person has one identifier"]},
            "for records must not assume that one person has one identifier",
        ),
        (lambda data: {**data, "local": True}, "Local releases need relation='replace_one'"),
        (
            lambda data: {
                **_of_persons(data, max_rows=1),
                "local": True,
                "relation": "replace_one",
            },
            "Local releases are of records",
        ),
        (lambda data: {**data, "statement": "secrecy"}, "as statement; got 'secrecy'"),
        (lambda data: {**data, "digest": "0F" * 32}, "64 lower-case hexadecimal digits as digest"),
        (lambda data: [data], "must be an object of JSON"),
    ],
)
def test_contradictory_or_empty_certificates_are_refused(change, message):
    with pytest.raises(ValueError, match=f"^Not a certificate: .*{message}"):
        verify(_refused(change))


def _of_persons(data, max_rows):
    del data["n_records"]
    return {**data, "unit": "person", "max_rows": max_rows, "n_persons": 1000}


def test_local_releases_have_no_samples():
    data = copy.deepcopy(CERTIFICATES["sampled_gradients"])
    with pytest.raises(ValueError, match="Local releases noise each record"):
        verify(json.dumps({**data, "local": True}))


@pytest.mark.catches(
    "accounting.certificate:Certificate._list_statements", "self.digest is not None", "False"
)
def test_all_that_a_certificate_states_is_printed():
    text = " ".join(str(_FULL).split())
    for stated in (_FULL.digest, "dask", "1,000", "DPSWFlowSampler of skdpgen 1.0", "2026-01-31"):
        assert stated in text
