"""Each edit of a saved estimator is refused, or it states no more than its certificate then does.

A digest refuses all of them. Whoever computes it anew can change what was learnt; but numbers that
follow from the certificate, and parameters and sizes that it states, still agree with it.
"""

import copy
import functools
import hashlib
import io
import json
import math
import zipfile

import numpy as np
import pandas as pd
import pytest

import skdpgen
from skdpgen import (
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    Schema,
)
from skdpgen.accounting.rounding import show
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.releases import ForwardAggregates, SampledGradients

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.RandomState(0)
X = RNG.uniform(size=(40, 2))
IMAGES = RNG.uniform(size=(40, 64))
Y = np.arange(40) % 2
TERMS = {"epsilon": 5.0, "bounds": (0, 1)}
LABELS = {"classes": [0, 1]}
TABLE = pd.DataFrame({"n": X[:, 0], "c": np.array(["x", "y"])[Y]})
SCHEMA = Schema({"n": Number(0, 1, n_knots=3), "c": Category(["x", "y"])})
FITS = {
    "particles": lambda: DPSWFlowSampler(**TERMS, n_steps=2, n_particles=9).fit(X),
    "table": lambda: DPSlicedWassersteinGenerator(5.0, schema=SCHEMA, n_steps=2).fit(TABLE),
    "gradients": lambda: DPSinkhornGenerator(
        **TERMS, **LABELS, release=SampledGradients(n_steps=2)
    ).fit(X, Y),
    "aggregates": lambda: DPAFGenerator(**TERMS, **LABELS, release=ForwardAggregates(2)).fit(
        IMAGES, Y
    ),
    "local": lambda: LDPEntropicGAN(**TERMS, **LABELS, n_steps=2).fit(X, Y),
    "privatizer": lambda: LocalPrivatizer(**TERMS, **LABELS).fit(X),
    "components": lambda: DPPCA(n_components=2, **TERMS).fit(X, persons=np.arange(40)),
    "adapter": lambda: DPSWDDomainAdapter(
        5.0, n_steps=2, n_components=4, sampler=DPSWFlowSampler(n_steps=2, n_particles=9)
    ).fit(X, Y, X_target=X),
}
# Edits of each estimator in the default run; all of them are slow.
_A_FEW = 12
_CERTIFIED = ("epsilon", "delta", "relation", "accountant", "max_rows_per_person")
_SIZES = ("epsilon_", "sigma_", "n_samples_", "n_target_")


@functools.cache
def _saved(name):
    file = io.BytesIO()
    FITS[name]().save(file)
    with zipfile.ZipFile(file) as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def _write(entries, path, *, is_forged):
    digest = hashlib.blake2b(digest_size=32)
    with zipfile.ZipFile(path, "w") as archive:
        for name, held in entries.items():
            if name != "digest":
                digest.update(name.encode() + held)
            elif is_forged:
                held = digest.hexdigest()
            archive.writestr(name, held)


def _state(estimator):
    """Return what an estimator states of its privacy, beside its certificate."""
    return {name: getattr(estimator, name, None) for name in (*_CERTIFIED, *_SIZES)}


def _find_paths(node, path=()):
    items = {dict: lambda: node.items(), list: lambda: enumerate(node)}.get(type(node), tuple)
    for key, part in items():
        yield (*path, key)
        yield from _find_paths(part, (*path, key))


def _list_values(value):
    others = [None, True, 0, 7, 0.1, "x", [], {}, [value], {"is": "tuple", "of": []}]
    if isinstance(value, str):
        # A certificate is a text of JSON.
        others += [value.replace('"epsilon": ', '"epsilon": 1'), value.replace("records", "rows")]
        others += [value.replace('"name": "', '"name": "x '), f"{value}x"]
    elif isinstance(value, float | int):
        others += [not value] if isinstance(value, bool) else [value * 2, -value]
    elif isinstance(value, list):
        others += [value[:-1], value + value[:1]]
    elif isinstance(value, dict):
        others += [{**value, "also": 1}]
    return [other for other in others if json.dumps(other) != json.dumps(value)]


def _list_edits(entries):
    """Give each edit: what it is, and the entries that it makes."""
    contents = json.loads(entries["estimator.json"])

    def changed(path, change):
        copied = copy.deepcopy(contents)
        holder = functools.reduce(lambda part, key: part[key], path[:-1], copied)
        change(holder, path[-1])
        return entries | {"estimator.json": json.dumps(copied).encode()}

    for path in _find_paths(contents):
        value = functools.reduce(lambda part, key: part[key], path, contents)
        yield (
            f"{path} removed",
            functools.partial(changed, path, lambda holder, key: holder.pop(key)),
        )
        for other in _list_values(value):

            def replace(holder, key, other=other):
                holder[key] = other

            yield f"{path} = {other!r:.60}", functools.partial(changed, path, replace)
    for name in entries:
        if name.startswith("arrays/"):
            array = np.load(io.BytesIO(entries[name]))
            made = [array[:0]] if array.ndim and len(array) else []
            made += [array.astype("U9"), np.array(7)]
            if array.dtype.kind in "iuf":
                made += [array + 1, array * 0]
            for other in made:
                file = io.BytesIO()
                np.save(file, other)
                held = file.getvalue()
                if held != entries[name]:
                    edited = functools.partial(dict, entries, **{name: held})
                    yield f"{name} = {other!r:.60}", edited
            yield f"{name} cut", functools.partial(dict, entries, **{name: entries[name][:-1]})


def _check(name, edits, path):
    entries = _saved(name)
    _write(entries, path, is_forged=True)
    honest = skdpgen.load(path)
    printed, stated = str(honest.privacy_), _state(honest)
    n_loaded = 0
    for edit, make in edits:
        _write(make(), path, is_forged=False)
        with pytest.raises(ValueError, match=r"damaged|was written in format"):
            skdpgen.load(path)
        _write(make(), path, is_forged=True)
        try:
            loaded = skdpgen.load(path)
        except ValueError:
            continue
        n_loaded += 1
        certificate = loaded.privacy_
        if str(certificate) == printed:
            assert _state(loaded) == stated, edit
        else:
            # Certificates print what they state, and their price is that of their events.
            epsilon = "inf" if math.isinf(certificate.epsilon) else show(certificate.epsilon)
            assert f"ε = {epsilon}" in str(certificate).split("\n", 1)[0], edit
            assert loaded.epsilon_ == certificate.epsilon, edit
            agreed = {n: value for n, value in _state(loaded).items() if n != "n_target_"}
            assert agreed == {n: value for n, value in stated.items() if n != "n_target_"}, edit
    return n_loaded


@pytest.mark.parametrize("name", FITS)
def test_a_few_edits_of_files(name, tmp_path):
    edits = list(_list_edits(_saved(name)))
    chosen = np.random.RandomState(0).permutation(len(edits))[:_A_FEW]
    _check(name, [edits[i] for i in chosen], tmp_path / "estimator")


@pytest.mark.parametrize("name", FITS)
def test_edits_of_what_is_certified(name, tmp_path):
    """Parameters, attributes and certificates are few, and some edited in each run."""
    words = ("epsilon", "delta", "relation", "accountant", "n_samples_", "n_target_", "privacy_")
    edits = [
        (edit, make)
        for edit, make in _list_edits(_saved(name))
        if edit.startswith("('estimator', 'of', 'attributes'")
        and any(f"'{word}'" in edit.split(")")[0] for word in words)
    ]
    assert len(edits) > 60
    _check(name, edits[:: len(edits) // 15], tmp_path / "estimator")


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_all_edits_of_files(name, tmp_path):
    edits = list(_list_edits(_saved(name)))
    n_loaded = _check(name, edits, tmp_path / "estimator")
    # Learnt values may be changed by whoever computes the digest anew.
    assert 0 < n_loaded < len(edits)
