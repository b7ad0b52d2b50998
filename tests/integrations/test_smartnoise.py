"""A generator as a synthesizer of smartnoise-synth, where that is installed (.ci/engines)."""

import numpy as np
import pandas as pd
import pytest

snsynth = pytest.importorskip("snsynth")

from snsynth.transform import NoTransformer, TableTransformer  # noqa: E402

from skdpgen import Category, Number, Schema  # noqa: E402
from skdpgen.integrations.smartnoise import FlowSynthesizer  # noqa: E402


def make_table(n=3000):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n)
    return pd.DataFrame({"age": age, "sex": rng.integers(1, 3, n), "married": age > 50})


def make(**params):
    return snsynth.Synthesizer.create("skdpgen", epsilon=3, delta=1e-6, n_steps=50, **params)


def test_it_is_in_the_list():
    assert "skdpgen" in snsynth.Synthesizer.list_synthesizers()
    assert isinstance(FlowSynthesizer.create(epsilon=1), FlowSynthesizer)
    assert make(relation="replace_one").generator.relation == "replace_one"
    with pytest.raises(TypeError, match="batch"):
        make(batch=3)


@pytest.mark.parametrize("container", ["frame", "array", "tuples"])
def test_rows_come_back_in_their_container(container):
    frame = make_table()
    data = {
        "frame": frame,
        "array": frame.to_numpy(dtype=int),
        "tuples": list(frame.itertuples(index=False, name=None)),
    }[container]
    hint = "sex" if container == "frame" else 1
    synth = make()
    rows = synth.fit_sample(data, categorical_columns=[hint], preprocessor_eps=1.0)
    assert type(rows) is type(data)
    assert len(rows) == len(data)
    assert synth.generator.privacy_.epsilon_at(1e-6) <= 3
    assert isinstance(synth.generator.schema_[str(hint)], Category)
    ages, expected = (np.array([row[0] for row in np.asarray(x)]) for x in (rows, data))
    assert abs(ages.astype(float).mean() - expected.astype(float).mean()) < 3


def test_a_condition_of_sql():
    synth = make()
    synth.fit(make_table())
    assert (synth.sample_conditional(50, "age < 40 AND sex = 1").age < 40).all()


def test_what_is_not_covered_is_refused():
    frame = make_table()
    transformer = TableTransformer.create(frame, style="cube")
    with pytest.raises(ValueError, match="transformer must be None"):
        make().fit(frame, transformer=transformer)
    schema = Schema({"age": Number(18, 90), "sex": Category([1, 2]), "married": Category([0, 1])})
    with pytest.raises(ValueError, match=r"both describe \['sex'\]"):
        make(schema=schema).fit(frame, categorical_columns=["sex"])
    make(schema=schema).fit(frame, transformer=NoTransformer())
