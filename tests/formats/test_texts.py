"""From texts to values."""

import pandas as pd
import pytest

from skdpgen.formats import Category, Ordinal, Schema
from skdpgen.formats.texts import parse_texts
from skdpgen.privacy.files import MISSING_TEXTS


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("level", sorted(MISSING_TEXTS))
def test_declared_levels_are_no_missing_values(level, missing):
    """The NA of a schema may be Namibia."""
    texts = [level, "A", *(sorted(MISSING_TEXTS - {level}) if missing else [])]
    frame = pd.DataFrame({"a": texts, "b": texts})
    schema = Schema(
        {"a": Category([level, "A"], missing=missing), "b": Ordinal([level, "A"], missing)}
    )
    for name, column in parse_texts(frame, schema).items():
        assert column.tolist()[:2] == [level, "A"], name
        assert column[2:].isna().all()


@pytest.mark.parametrize("other", ["", "abc", "inf", "2.5"])
def test_a_number_is_read_as_it_is_alone(other):
    """Large integers are not kept exactly in a column of integers only."""
    large, kind = "9007199254740993", Category(None, other=-1)
    alone = parse_texts(pd.DataFrame({"id": [large]}), Schema({"id": kind}))["id"][0]
    beside = parse_texts(pd.DataFrame({"id": [large, other]}), Schema({"id": kind}))["id"][0]
    assert alone == beside
