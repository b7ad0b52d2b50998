"""Members of JSON: what each may be, and what looks like it."""

import math

import pytest

from skdpgen.accounting.strict_json import (
    DATE,
    FLAG,
    TEXT,
    choice,
    constant,
    hexadecimal,
    list_of,
    number,
    optional,
    parse_json,
    refuse_constant,
    whole,
)

# JSON that each member takes, and other that it does not.
MEMBERS = {
    "constant": (constant("person"), ['"person"'], ['"persons"', '"person "', "null"]),
    "constant number": (constant(1), ["1"], ["true", "1.0", '"1"']),
    "choice": (choice("a", "b"), ['"a"', '"b"'], ['"c"', '"A"', '["a"]', "null"]),
    "number": (
        number("at least 0", lambda given: given >= 0),
        ["0", "1", "0.5", "1e308"],
        ["true", "false", "-1", '"1"', "null", "1e999", f"1{'0' * 400}", "[1]"],
    ),
    "whole": (whole(), ["1", "7"], ["0", "-1", "1.0", "7.5", "true", '"7"', "null"]),
    "few": (whole(0, 2), ["0", "2"], ["3", "-1", "false"]),
    "optional": (optional(whole()), ["null", "3"], ["0", "true", '""']),
    "hexadecimal": (
        hexadecimal(2),
        ['"01af"'],
        ['"01AF"', '"01af0"', '"01a"', '"01af\\n"', '" 01af"', '"0x01"', '"٠١af"', "10"],
    ),
    "list": (list_of(whole()), ["[]", "[1, 2]"], ["[1, true]", "[0]", '"12"', "{}", "null"]),
    "text": (
        TEXT,
        ['"slice sketch"', '"ε ≤ 1"'],
        [
            '""',
            '" "',
            '" a"',
            '"a "',
            '"a\\n"',
            '"a\\tb"',
            # No width, another direction, no letter, half of a pair, a space that is none.
            '"a\\u200bb"',
            '"a\\u202eb"',
            '"a\\u0007b"',
            '"a\\ud800b"',
            '"a\\u00a0b"',
            "7",
            "null",
        ],
    ),
    "date": (
        DATE,
        ['"2026-01-31"'],
        ['"20260131"', '"2026-1-31"', '"2026-02-30"', '"2026-01-31T00:00"', '"2026-W05-6"', "2026"],
    ),
    "flag": (FLAG, ["true", "false"], ["0", "1", '"true"', "null"]),
}


@pytest.mark.catches(
    "accounting.strict_json:_is_a",
    "isinstance(given, cls) and not isinstance(given, bool)",
    "isinstance(given, cls)",
    param="number",
)
@pytest.mark.catches(
    "accounting.strict_json:hexadecimal",
    "pattern.fullmatch(given)",
    "pattern.match(given)",
    param="hexadecimal",
)
@pytest.mark.catches(
    "accounting.strict_json:_is_text",
    'type(given) is str and given.isprintable() and given == given.strip() != ""',
    'type(given) is str and given == given.strip() != ""',
    param="text",
)
@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_is_what_is_declared_and_nothing_that_looks_like_it(name):
    member, allowed, refused = MEMBERS[name]
    for text in allowed:
        assert member.allows(parse_json(text, "the text")), text
    for text in refused:
        assert not member.allows(parse_json(text, "the text")), text


@pytest.mark.parametrize("text", ["NaN", "Infinity", "[-Infinity]", '{"a": {"b": NaN}}'])
def test_constants_that_are_no_json(text):
    assert parse_json(text, "the text") is not None
    with pytest.raises(ValueError, match="is no number of JSON"):
        parse_json(text, "the text", parse_constant=refuse_constant)


@pytest.mark.parametrize("depth", range(3))
def test_names_occur_once_at_any_depth(depth):
    text = '{"a": 1, "b": 2, "a": 1}'
    for _ in range(depth):
        text = f'{{"c": [{text}]}}'
    with pytest.raises(ValueError, match=r"has \['a'\] more than once"):
        parse_json(text, "the text")


def test_no_number_is_larger_than_a_double():
    member = number("any", lambda given: True)
    assert member.allows(-1.7e308)
    assert not any(map(member.allows, (math.inf, -math.inf, math.nan, -(10**309))))
