"""Sentences of comments and docstrings, and names of tests, begin with their subjects."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A capital at the start of a line begins a sentence there. Questions may begin with "What".
INVERTED = re.compile(r"(?:^|[.!?:;] )(?:Of|What)\b(?![^.]*\?)")
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def list_inverted(source):
    """Return the numbers of lines with a sentence, or a name of a test, that begins so."""
    lines = [
        (token.start[0], token.string.lstrip("#: %"))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("test_of_", "test_what_")):
            lines.append((node.lineno, "What"))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            text = node.body[0].value.value
            lines += enumerate(map(str.strip, text.split("\n")), node.body[0].lineno)
    return sorted(number for number, line in lines if INVERTED.search(line))


@pytest.mark.parametrize("folder", ["skdpgen", "tests", "benchmarks", "examples"])
def test_sentences_begin_with_their_subjects(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in list_inverted(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"Sentences begin with 'Of' or 'What': {found}."


def test_inverted_sentences_are_found():
    source = '''"""Rows. Of two, one.

What is it? Whatever is left, of what is there.
    What follows is indented.
"""
x = "Of a string"  # What is assigned.
# Two lines, the second of which is found.
# Of two.
async def f():
    """No more than that: what
    Of course not."""
def test_of_it(): ...
def test_whatever_there_is(): ...
'''
    assert list_inverted(source) == [1, 4, 6, 8, 11, 12]
