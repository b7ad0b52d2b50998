"""Edits of syntax trees: each replaces what occurs once in an object, however it is written."""

import ast

import pytest

from .fault import Fault, read_faults

SOURCE = '''
"""A module."""

LIMIT = 3


def clip(x, most=LIMIT):
    """Clip a number."""
    if x > most:  # x is too large
        raise ValueError('It is too large.')
    return x + x


class Clipper:
    size = 1

    @property
    def most(self):
        return self.size

    @most.setter
    def most(self, value):
        self.size = value
        del value
'''


@pytest.mark.parametrize(
    ("target", "old", "new", "line"),
    [
        ("m", "LIMIT = 3", "LIMIT = 4", "LIMIT = 4"),
        ("m:clip", "LIMIT", "2", "def clip(x, most=2):"),
        ("m:clip", "(x\n>most)", "False", "if False:"),
        ("m:clip", '"It is too large."', "x", "raise ValueError(x)"),
        ("m:Clipper", "size = 1", "size = 2", "size = 2"),
        ("m:Clipper.most", "self.size = value\ndel value", "self.size = 5", "self.size = 5"),
    ],
)
def test_edits(target, old, new, line, tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    Fault("", target, old, new).apply(tmp_path)
    added = set(path.read_text().split("\n")) - set(ast.unparse(ast.parse(SOURCE)).split("\n"))
    assert [one.strip() for one in added] == [line]


@pytest.mark.parametrize(
    ("target", "old", "count"),
    [("m:clip", "x + y", 0), ("m:clip", "x", 3), ("m:Clipper", "LIMIT", 0), ("m:no", "x", 0)],
)
def test_an_old_text_that_does_not_occur_once_is_refused(target, old, count):
    with pytest.raises(AssertionError, match=f"is {count} times in {target}, not once"):
        Fault("", target, old, "z").edit(ast.parse(SOURCE))


def test_marks_are_read(tmp_path):
    tests = """
@pytest.mark.catches("m", "1", "2")
@pytest.mark.slow
@pytest.mark.catches("m:f", "a", "b", param="x-y")
def test_it(x): ...
"""
    path = tmp_path / "test_m.py"
    path.write_text(tests)
    expected = [Fault("t::test_it", "m", "1", "2"), Fault("t::test_it[x-y]", "m:f", "a", "b")]
    assert list(read_faults(path, "t")) == expected
