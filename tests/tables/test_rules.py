"""Rules of a schema: what they say, what they refuse, and rows that obey them."""

import contextlib
import datetime
import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp

from skdpgen.curator.dataset import Dataset
from skdpgen.tables import (
    Boolean,
    Category,
    Combinations,
    Date,
    Derived,
    Identifier,
    Implies,
    Number,
    Ordered,
    Ordinal,
    Schema,
    Unique,
    Unknown,
)
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.format import TableFormat, declare
from skdpgen.tables.layout import TableLayout
from skdpgen.tables.rules.draws import RuleDraws, check_enough
from skdpgen.tables.rules.feasibility import _check_group, connect, find_impossible
from skdpgen.tables.rules.formulas import Formula

CITIES = [["Wien", "AT"], ["Graz", "AT"], ["Bonn", "DE"]]
KINDS = {
    "insured": Category(["yes", "no"]),
    "insurer": Category(["public", "private"], missing=True),
    "premium": Number(0, 500, decimals=2, n_knots=5, missing=True),
    "admitted": Date("2020-01-01", "2020-12-31", n_knots=5),
    "discharged": Date("2020-01-01", "2021-02-28", n_knots=5),
    "nights": Number(1, 30, decimals=0, n_knots=5),
    "rate": Number(50, 900, decimals=0, n_knots=5),
    "total": Number(decimals=0),
    "ward": Ordinal(["1", "2", "3"]),
    "bed": Number(1, 50, decimals=0, n_knots=5),
    "city": Category(["Wien", "Graz", "Bonn"]),
    "country": Category(["AT", "DE"]),
    "again": Boolean(),
}
RULES = [
    Implies({"insured": "no"}, {"insurer": None, "premium": None}),
    Implies({"insured": "yes"}, {"premium": (10, 400)}),
    Ordered("admitted", "discharged", strict=True),
    Derived("total", "nights * rate"),
    Unique(["ward", "bed"]),
    Combinations(["city", "country"], CITIES),
]
SCHEMA = Schema(KINDS, RULES)


def even_rows(schema, n, seed=0):
    """Return rows of weights by which each column may be anything."""
    weights = np.random.RandomState(seed).uniform(0.1, 1, (n, TableEncoder(schema).n_columns))
    return weights / weights.sum(axis=1, keepdims=True)


def draw(schema, n, rows=None, where=None, seed=0, used=None):
    """Draw rows that obey the rules, by the same weights for all rows, or by random ones."""
    encoder = TableEncoder(schema)
    rng = np.random.RandomState(seed)

    def make_rows(n_rows):
        return (
            even_rows(schema, n_rows, rng.randint(9999))
            if rows is None
            else np.tile(rows, (n_rows, 1))
        )

    conditions = encoder.find_conditions(where or {})
    if not schema.rules:
        return encoder.draw(make_rows(n), rng, conditions)
    draws = RuleDraws(schema, encoder.make_blocks(), conditions, {} if used is None else used)
    return encoder.assemble(draws.draw(lambda left: make_rows(len(left)), n, rng), n, rng)


# Forms of rules.


def test_a_schema_with_rules_goes_through_json_dicts_and_pickles(tmp_path):
    schema = Schema(
        SCHEMA,
        [
            *RULES,
            Implies(
                {"admitted": (datetime.date(2020, 3, 1), None), "again": [True]},
                {"nights": [(None, 3), np.int64(7)], "insurer": [np.nan, "public"]},
            ),
        ],
    )
    path = tmp_path / "schema.json"
    text = schema.to_json(path)
    copies = [
        Schema.from_json(path),
        Schema.from_json(text),
        Schema(schema.to_dict()),
        Schema(dict(schema), [rule.to_dict() for rule in schema.rules]),
        pickle.loads(pickle.dumps(schema)),
    ]
    assert all(copy == schema and hash(copy) == hash(schema) for copy in copies)
    assert schema != SCHEMA != Schema(KINDS)
    written = json.loads(text)["rules"][-1]
    assert written["when"]["admitted"] == {"lower": "2020-03-01", "upper": None}
    assert written["then"]["nights"] == [{"lower": None, "upper": 3}, 7]
    assert written["then"]["insurer"] == [None, "public"]
    assert eval(repr(schema.rules[-1])) == schema.rules[-1]
    assert all(repr(rule) in repr(schema) for rule in schema.rules)


def test_columns_may_be_called_columns_and_rules():
    schema = Schema({"columns": Boolean(), "rules": Boolean()})
    assert Schema.from_json(schema.to_json()) == schema
    schema = Schema(schema, [Implies({"columns": True}, {"rules": False})])
    assert Schema.from_json(schema.to_json()) == schema


def test_columns_that_are_left_keep_what_rules_say_of_them():
    assert SCHEMA.replace({"again": Category([1, 2])}).rules == SCHEMA.rules
    assert SCHEMA.with_even_knots().rules == SCHEMA.rules
    assert Schema.from_dtypes(dict.fromkeys(KINDS, np.dtype(float)), declared=SCHEMA) == SCHEMA
    left = SCHEMA.drop(["insurer", "discharged", "bed", "country"])
    assert left.rules == (Implies({"insured": "no"}, {"premium": None}), RULES[1], RULES[3])
    assert SCHEMA.select(["premium", "nights"]).rules == ()
    three = Schema(
        dict.fromkeys("abc", Boolean()), [Combinations("a b c".split(), [[True] * 3, [False] * 3])]
    )
    assert three.drop("b").rules == (Combinations(["a", "c"], [[True, True], [False, False]]),)
    with pytest.raises(ValueError, match=r"'total' cannot be computed without .'rate'.: drop"):
        SCHEMA.drop("rate")
    assert SCHEMA.drop(["rate", "total"]).derived_names == ()


def test_derived_columns_are_not_learnt():
    assert "total" not in SCHEMA.learned
    assert "total" not in dict(TableFormat(SCHEMA).blocks)
    assert SCHEMA.undeclared == ()
    assert not TableFormat(SCHEMA).is_open
    open_schema = Schema(
        {"a": Number(), "b": Number(0, 100), "c": Number()}, [Derived("c", "a - b")]
    )
    assert open_schema.undeclared == ("a",)
    with pytest.raises(ValueError, match=r"'total'., which are derived; use"):
        TableEncoder(SCHEMA).find_conditions({"total": 3})


FORMULAS = {
    "a + 2 * b": 7.0,
    "(a + 2) * b": 9.0,
    "-a / (b - 1)": -0.5,
    "a - b - 1": -3.0,
    "`a b` / a": 10.0,
    "b / (a - 1)": np.nan,
    "1e3 * a": 1000.0,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_computed_as_they_are_read(text):
    values = {"a": np.array([1.0]), "b": np.array([3.0]), "a b": np.array([10.0])}
    assert_array_equal(Formula(text).compute(values), [FORMULAS[text]])


@pytest.mark.parametrize(
    "text",
    [
        "a.b",
        "a[0]",
        "f(a)",
        "a ** 2",
        "a if b else a",
        "a; b",
        "a == b",
        "lambda: a",
        "'a' * 3",
        "a + True",
        "a + 1j",
        "a + 1e999",
        "__import__('os')",
        "a // b",
        "a, b",
        "",
        "1 + 2",
        "a +",
        "-" * 60 + "a",
        "(" * 300 + "a" + ")" * 300,
        3,
    ],
)
def test_texts_that_are_no_formula_are_refused(text):
    with pytest.raises(ValueError, match="formula"):
        Formula(text)


def test_the_range_of_a_formula_holds_all_its_values():
    rng = np.random.RandomState(0)
    ranges = {"a": (-2.0, 3.0), "b": (1.0, 4.0)}
    values = {name: rng.uniform(*ends, 1000) for name, ends in ranges.items()}
    for text in ("a * b - 3", "a / b", "-a * a", "b / a", "2 - a + b * b"):
        lower, upper = Formula(text).find_range(ranges)
        found = Formula(text).compute(values)
        assert lower <= found.min(), text
        assert found.max() <= upper, text
    assert Formula("a * b - 3").find_range(ranges) == (-11.0, 9.0)


# Refusals.

REFUSED = {
    "no list": (3, "rules must be a list"),
    "no rule": (["a <= b"], "Rule 1: it must be one of"),
    "no type": ([{"columns": ["ward"]}], "Rule 1: its 'type' must be one of"),
    "wrong parameter": ([{"type": "unique", "column": "ward"}], "a unique has no .'column'."),
    "too little": ([{"type": "ordered", "lower": "a"}], "ordered needs .'upper'."),
    "unknown column": ([Unique("bod")], "names .'bod'., which are no columns"),
    "unknown level": ([Implies({"insured": "No"}, {"nights": 1})], "'No' is not among the levels"),
    "never missing": ([Implies({"insured": "no"}, {"nights": None})], "missing values of 'nights'"),
    "empty range": ([Implies({"insured": "no"}, {"nights": (40, 50)})], "outside its bounds"),
    "identifier": ([Implies({"insured": "no"}, {"id": None})], "'id' must be declared"),
    "open level": ([Implies({"job": "nurse"}, {"nights": 1})], "'job' must be declared"),
    "levels in order": ([Ordered("ward", "bed")], "both must be numbers, or both dates"),
    "dates of two zones": ([Ordered("admitted", "abroad")], "both dates of one zone"),
    "difference of dates in days": (
        [Ordered("admitted", "discharged", difference=Number(0, 9))],
        "declared with decimals=0",
    ),
    "negative difference": (
        [Ordered("nights", "free", difference=Number(-1, 9, decimals=0))],
        "difference must not be negative",
    ),
    "order of ranges": (
        [Ordered("rate", "nights")],
        "lower bound of 'rate' is 50, the upper bound of 'nights'",
    ),
    "chain of ranges": (
        [Ordered("rate", "wide"), Ordered("wide", "nights")],
        r"rate.*wide.*and.*wide.*nights.*cannot be obeyed",
    ),
    "circle": (
        [Ordered("nights", "bed"), Ordered("bed", "free"), Ordered("free", "nights")],
        "form a cycle",
    ),
    "formula of a text": ([Derived("total", "nights * ward")], "formulas take numbers"),
    "sum of dates": ([Derived("total", "admitted + discharged")], r"a date \+ a date"),
    "date for a number": ([Derived("total", "admitted + nights")], "gives a date"),
    "number for a date": ([Derived("seen", "nights * 2")], "gives a number"),
    "missing operand": ([Derived("total", "nights * premium")], "missing where .'premium'. are"),
    "beyond bounds": ([Derived("nights", "0 - rate")], "between -900 and -50, beyond"),
    "derived circle": (
        [Derived("total", "free + 1"), Derived("free", "total - 1")],
        "formulas of each other",
    ),
    "derived twice": ([Derived("total", "bed"), Derived("total", "rate")], "same column; keep one"),
    "unique identifier": ([Unique(["id", "bed"])], "'id'. are identifiers"),
    "numbers in combinations": ([Combinations(["nights", "ward"], [[1, "1"]])], "has no levels"),
    "combination of unknown": ([Combinations(["city", "ward"], [["Ulm", "1"]])], "'Ulm' is not"),
    "two thens": (
        [RULES[0], Implies({"insured": "no"}, {"insurer": ["public", "private"]})],
        "Implies.*and Implies.*contradict each other.*'insured' is 'no'",
    ),
    "then of a combination": (
        [RULES[5], Implies({"city": "Bonn"}, {"country": "AT"})],
        "Combinations.*and Implies.*'city' is 'Bonn'",
    ),
    "two combinations": (
        [RULES[5], Combinations(["country", "ward"], [["AT", "1"], ["AT", "2"], ["AT", "3"]])],
        "contradict each other: no row obeys both in which 'city' is 'Bonn'",
    ),
    "ranges that do not meet": (
        [
            Implies({"nights": (10, None)}, {"rate": (None, 100)}),
            Implies({"nights": (12, 20)}, {"rate": (101, None)}),
        ],
        "Implies.*and Implies.*contradict each other",
    ),
    "then against an order": (
        [
            Implies({"insured": "no"}, {"nights": (20, 30), "free": (0, 19)}),
            Ordered("nights", "free"),
        ],
        "and Ordered.*contradict each other",
    ),
    "then against a strict order": (
        [
            Implies({"insured": "no"}, {"nights": (20, 30), "free": (0, 20)}),
            Ordered("nights", "free", strict=True),
        ],
        "contradict each other",
    ),
}
MORE = {
    **KINDS,
    "id": Identifier(),
    "job": Unknown(),
    "seen": Date("2020-01-01", "2020-12-31", "second"),
    "abroad": Date("2020-01-01", "2020-12-31", zone="UTC"),
    "free": Number(0, 30, decimals=0),
    "wide": Number(0, 999, decimals=0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rules_that_cannot_be_obeyed_are_refused(name):
    rules, match = REFUSED[name]
    with pytest.raises(ValueError, match=match):
        Schema(MORE, rules)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Implies({}, {"a": 1}), "when must be a dict"),
        (lambda: Implies({"a": 1}, ["b"]), "then must be a dict"),
        (lambda: Implies({"a": 1}, {"a": 2}), "'a'. on both sides"),
        (lambda: Implies({"a": {"from": 1}}, {"b": 2}), "must have 'lower' and 'upper'"),
        (lambda: Ordered("a", "a"), "two columns"),
        (lambda: Ordered("a", "b", "<"), "strict must be"),
        (lambda: Ordered("a", "b", difference=3), "must be one of .*Number"),
        (lambda: Derived("a", "a + b"), "its own column"),
        (lambda: Unique([]), "at least one"),
        (lambda: Unique(["a", "a"]), "different names"),
        (lambda: Combinations(["a"], [[1]]), "two columns"),
        (lambda: Combinations(["a", "b"], []), "at least one"),
        (lambda: Combinations(["a", "b"], [[1]]), "lists of 2 levels"),
    ],
)
def test_rules_that_say_nothing_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()


ALLOWED = {
    "levels that exclude each other": [
        Implies({"insured": "no"}, {"again": True}),
        Implies({"ward": "1"}, {"again": False}),
    ],
    "an order that narrows another": [Ordered("nights", "free"), Ordered("free", "rate")],
    "equal bounds": [
        Implies({"insured": "no"}, {"nights": (20, 30), "free": (0, 20)}),
        Ordered("nights", "free"),
    ],
    "missing in an open column": [Implies({"insured": "no"}, {"job": None})],
    "combinations without a level": [Combinations(["city", "ward"], [["Wien", "1"]])],
    "what may be missing": [RULES[0], Implies({"insured": "no"}, {"insurer": [None, "public"]})],
}


@pytest.mark.parametrize("name", ALLOWED)
def test_rules_that_can_be_obeyed_are_not_refused(name):
    assert Schema(MORE, ALLOWED[name]).rules == tuple(ALLOWED[name])


def test_small_schemas_are_refused_just_where_brute_force_finds_a_contradiction():
    kinds = {"a": Category([0, 1, 2]), "b": Category([0, 1, 2]), "c": Category([0, 1])}
    rng = np.random.RandomState(0)
    grid = np.array(list(itertools.product(range(3), range(3), range(2))), dtype=float)
    rows = dict(zip("abc", grid.T, strict=True))

    def some(name):
        levels = range(len(kinds[name].levels))
        return [int(v) for v in rng.permutation(levels)[: rng.randint(1, len(levels))]]

    n_refused = 0
    for _ in range(200):
        pair = []
        for _ in range(2):
            when, then = rng.permutation(list("abc"))[:2]
            if rng.rand() < 0.3:
                listed = itertools.product(some(when), some(then))
                pair.append(Combinations([when, then], list(listed)))
            else:
                pair.append(Implies({when: some(when)}, {then: some(then)}))
        obey = [rule.bind(kinds)(rows) for rule in pair]
        both = obey[0] & obey[1]
        lost = any(
            set(rows[name][obey[0]]) & set(rows[name][obey[1]]) - set(rows[name][both])
            for name in kinds
            if any(name in rule.names for rule in pair)
        )
        lost |= not both.any()
        lost |= any(
            not (np.isin(rows[rule.when[0][0]], rule.when[0][1]) & both).any()
            for rule in pair
            if isinstance(rule, Implies)
        )
        lost &= bool(set(pair[0].names) & set(pair[1].names))
        try:
            Schema(kinds, pair)
        except ValueError:
            n_refused += 1
            assert lost, pair
        else:
            assert not lost, pair
    assert 20 < n_refused < 180


def _random_rules(rng, kinds, n_rules):
    rules = []
    for _ in range(n_rules):
        first, second = rng.permutation(list(kinds))[:2]
        numbers = [n for n in (first, second) if n in "abc"]
        if len(numbers) == 2 and rng.rand() < 0.5:
            # In alphabetical order, so that there are no cycles.
            rules.append(Ordered(*sorted(numbers), strict=bool(rng.rand() < 0.5)))
            continue
        sides = [
            {
                n: tuple(sorted(int(v) for v in rng.randint(0, 4, 2)))
                if n in "abc"
                else [str(rng.randint(3))]
            }
            for n in (first, second)
        ]
        rules.append(Implies(*sides))
    return list(dict.fromkeys(rules))


def _is_refused(rules, kinds):
    with contextlib.suppress(ValueError):
        return _check_group(rules, kinds) is not None
    return True


def test_connected_rules_are_refused_just_where_brute_force_finds_no_row():
    number, levels = Number(0, 3, decimals=0), Category(["0", "1", "2"])
    kinds = {"a": number, "b": number, "c": number, "u": levels, "v": levels}
    grid = np.array(list(itertools.product(*[range(4)] * 3, *[range(3)] * 2)), dtype=float)
    rows = dict(zip(kinds, grid.T, strict=True))
    rng, n_refused = np.random.RandomState(0), 0
    for _ in range(6):
        for group in connect(_random_rules(rng, kinds, 14)):
            can = np.all([rule.bind(kinds)(rows) for rule in group], axis=0).any()
            assert _is_refused(group, kinds) != can
            n_refused += not can
    assert 0 < n_refused < 6


def test_rules_of_which_all_but_one_can_be_obeyed_are_refused():
    number = Number(0, 9, decimals=0)
    kinds = {"a": Boolean(), "b": Category(["x", "y"]), "c": number, "d": number}
    rules = [
        Implies({"a": True}, {"c": (0, 4)}),
        Implies({"a": False}, {"c": (0, 4)}),
        Implies({"c": (0, 4)}, {"b": "x"}),
        Implies({"b": "x"}, {"d": (0, 4)}),
        Implies({"d": (0, 4)}, {"c": (5, 9)}),
    ]
    for left in itertools.combinations(rules, 4):
        Schema(kinds, left)
    with pytest.raises(ValueError, match=r"contradict each other: no row obeys all of them"):
        Schema(kinds, rules)


@pytest.mark.parametrize(("highest", "can"), [(8, True), (7, False)])
def test_chains_of_strict_orders_are_not_refused_where_they_fit(highest, can):
    names = list("abcdefghi")
    rules = [Ordered(*pair, strict=True) for pair in itertools.pairwise(names)]
    kinds = dict.fromkeys(names, Number(0, highest, decimals=0))
    assert _is_refused(rules, kinds) != can


def test_keys_are_held_against_the_number_of_rows():
    kinds = {"town": Category(), "month": Number(1, 12, decimals=0), "x": Number(0, 1)}
    key, month = Unique(["town", "month"]), Unique("month")
    check_enough([key], kinds, 10_000)  # the number of towns is not known
    check_enough([key], kinds, 120, most_levels=10)
    check_enough([Unique(["town", "x"])], kinds, 10_000, most_levels=1)
    check_enough([key], {**kinds, "town": Category(missing=True)}, 10_000, most_levels=1)
    with pytest.raises(ValueError, match=r"121 rows: there are 120 .*\['town'\] as one. Declare"):
        check_enough([key], kinds, 121, most_levels=10)
    with pytest.raises(ValueError, match=r"13 rows: there are 12 different values. Ask for fewer"):
        check_enough([month], kinds, 13)


# Rows that obey.


def test_obeying_rows_are_told_one_by_one():
    table = pd.DataFrame(
        {
            "insured": ["no", "no", "yes", "yes"],
            "insurer": [None, "public", None, "private"],
            "premium": [np.nan, np.nan, np.nan, 500],
            "admitted": pd.to_datetime(["2020-01-02"] * 4),
            "discharged": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-02-01"]),
            "nights": [1, 2, 3, 4],
            "rate": [50, 60, 70, 80],
            "total": [50, 120, 211, 320],
            "ward": ["1", "1", "1", "2"],
            "bed": [1, 2, 1, 1],
            "city": ["Wien", "Wien", "Bonn", "Graz"],
            "country": ["AT", "DE", "DE", "AT"],
        }
    )
    values = {name: KINDS[name].to_values(column) for name, column in table.items()}
    obeyed = {
        0: [True, False, True, True],
        1: [True, True, False, False],
        2: [False, False, True, True],
        3: [True, True, False, True],
        4: [False, True, False, True],
        5: [True, False, True, True],
    }
    for i, expected in obeyed.items():
        assert_array_equal(RULES[i].bind(KINDS)(values), expected, err_msg=repr(RULES[i]))
    assert_allclose(SCHEMA.share_obeying(table), [0.75, 0.5, 0.5, 0.75, 0.5, 0.75])


def test_missing_values_obey_orders_and_are_no_repetition():
    kinds = {name: Number(0, 9, decimals=0, missing=True) for name in "ab"}
    values = {"a": np.array([3.0, np.nan, np.nan, 5]), "b": np.array([np.nan, 1, 1, 4])}
    assert_array_equal(Ordered("a", "b").bind(kinds)(values), [True, True, True, False])
    assert Unique(["a", "b"]).bind(kinds)(values).all()
    assert_array_equal(Unique("b").bind(kinds)(values), [True, False, False, True])


def test_dates_count_in_days_whatever_their_unit():
    kinds = {"day": KINDS["admitted"], "time": MORE["seen"], "n": Number()}
    values = {"day": np.array([18262.0]), "time": np.array([18262.5 * 86_400])}
    assert_allclose(Derived("n", "time - day").compute(values, kinds), [0.5])
    assert_allclose(Derived("time", "day + 1 / 4").compute(values, kinds), [18262.25 * 86_400])


# Rows that are drawn.


def test_all_rows_obey():
    table = draw(SCHEMA, 120)
    assert len(table) == 120
    assert (SCHEMA.share_obeying(table) == 1).all()
    assert list(table) == list(KINDS)
    assert str(table["total"].dtype) == "int64"
    assert_array_equal(table["total"], table["nights"] * table["rate"])
    assert table["insured"].nunique() == 2
    assert not table.duplicated(["ward", "bed"]).any()


def test_conditions_and_rules_hold_together():
    table = draw(SCHEMA, 100, where={"insured": "no", "nights": (3, 4), "country": "DE"})
    assert (SCHEMA.share_obeying(table) == 1).all()
    assert set(table["city"]) == {"Bonn"}
    assert table["nights"].between(3, 4).all()
    assert table["premium"].isna().all()


def test_the_law_under_rules_is_that_of_the_model_given_the_code():
    kinds = {"a": Category([0, 1, 2]), "b": Category([0, 1], missing=True), "c": Category([0, 1])}
    rules = [Implies({"a": 0}, {"b": None}), Combinations(["b", "c"], [[0, 0], [1, 1], [None, 0]])]
    schema = Schema(kinds, rules)
    weights = np.array([0.5, 0.3, 0.2, 0.4, 0.2, 0.4, 0.7, 0.3])
    a, b, c = weights[:3], weights[3:6], weights[6:]
    law = a[:, None, None] * b[None, :, None] * c[None, None]
    law[0, :2] = 0
    law[:, 0, 1] = law[:, 1, 0] = law[:, 2, 1] = 0
    law /= law.sum()
    table = draw(schema, 40_000, weights)
    codes = [kinds[name].to_values(table[name]) for name in kinds]
    codes[1] = np.nan_to_num(codes[1], nan=2)
    found = np.zeros_like(law)
    np.add.at(found, tuple(code.astype(int) for code in codes), 1 / len(table))
    assert_allclose(found, law, atol=4 * 0.5 / np.sqrt(len(table)))
    assert (found[law == 0] == 0).all()


def test_rows_are_drawn_again_by_their_own_code():
    kinds = {"a": Category([0, 1]), "b": Category([0, 1, 2]), "c": Category([0, 1])}
    schema = Schema(kinds, [Implies({"a": 0}, {"b": 0})])
    encoder, rng = TableEncoder(schema), np.random.RandomState(0)
    # By one code a row is nearly always broken at first, by the other it never is.
    codes = np.array([[0.9, 0.1, 0.1, 0.9, 0, 1, 0], [0, 1, 1, 0, 0, 0, 1]])

    def make_rows(n):
        return np.tile(codes, (n, 1))[:n]

    draws = RuleDraws(schema, encoder.make_blocks(), {}, {})
    columns = draws.draw(lambda left: make_rows(len(left)), 4000, rng)
    table = pd.DataFrame(columns)
    assert_allclose((table["c"] == 0).mean(), 0.5, atol=0.02)
    assert (table["b"][table["c"] == 1] == 0).all()
    assert_allclose((table["a"][table["c"] == 0] == 0).mean(), 0.09 / 0.19, atol=0.05)


def test_an_order_is_drawn_by_its_difference():
    kinds = {"a": Number(0, 1, n_knots=3), "b": Number(0, 2, n_knots=3)}
    schema = Schema(kinds, [Ordered("a", "b", difference=Number(0, 1, n_knots=3))])
    # In most draws from their own weights, `b` is the smaller one.
    own, difference = [0.3, 0.4, 0.3, 0.8, 0.2, 0.0], [0.2, 0.5, 0.3]
    table = draw(schema, 20_000, np.array(own + difference))
    assert (table["a"] <= table["b"]).all()
    free = draw(Schema(kinds | {"c": Number(0, 1, n_knots=3)}), 20_000, np.array(own + difference))
    assert ks_2samp(free["a"], table["a"]).statistic < 0.02
    assert ks_2samp(free["c"], table["b"] - table["a"]).statistic < 0.02


DIFFERENCES = {
    "days": (Date("2020-01-01", "2020-12-31"), Date("2020-01-01", "2021-02-28"), 424, False),
    "a coarser lower date": (Date("2020-01-01", "2020-12-31"), MORE["seen"], 365, False),
    "a coarser upper date": (MORE["seen"], Date("2020-01-01", "2020-12-31"), 365, False),
    "minutes": (
        Date("2020-01-01", "2020-01-02T00:00", "minute"),
        Date("2020-01-01", "2020-01-02T00:00", "minute", missing=True),
        1440,
        True,
    ),
    "whole numbers": (Number(1, 5, decimals=0), Number(0, 9, decimals=0), 8, False),
    "decimals": (Number(1, 5, decimals=0), Number(0, 9, decimals=2), 8.0, False),
    "a sentinel": (Number(1, 5), Number(0, 9, atoms=[-1]), 8.0, True),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_type_of_a_difference_follows_from_those_of_its_columns(name):
    lower, upper, last, missing = DIFFERENCES[name]
    kinds = {"a": lower, "b": upper, "z": Boolean()}
    schema = Schema(kinds, [Ordered("a", "b")])
    found = schema["b - a"]
    assert (found.lower, found.upper, found.missing) == (0, last, missing)
    assert found.takes_knots == (found.n_values > 16)
    assert list(schema) == list(kinds)
    assert list(schema.learned) == [*kinds, "b - a"]
    # With even knots there is nothing to infer; small differences have more of them.
    assert not schema.with_even_knots()["b - a"].takes_knots
    rows = draw(schema.with_even_knots(), 300, seed=1)
    assert (schema.share_obeying(rows) == 1).all()
    assert (TableEncoder(schema.with_even_knots()).encode(rows) >= 0).all()
    for column in "ab":
        values, number = kinds[column].to_values(rows[column]), kinds[column].to_number()
        is_other = np.isnan(values) | np.isin(values, number.atoms or ())
        assert (is_other | ((number.lower <= values) & (values <= number.upper))).all()
    copy = schema.replace({"b - a": Number(0, 3, decimals=found.decimals)})
    assert copy.rules[0].difference.upper == 3
    assert Schema.from_json(copy.to_json()) == copy
    assert eval(repr(copy.rules[0])) == copy.rules[0]


@pytest.mark.catches(
    "tables.rules.ordered:Ordered.subtract", "upper - lower", "upper - np.roll(lower, 1)"
)
def test_a_difference_is_of_the_cells_of_one_row():
    day, time = Date("2020-01-01", "2020-01-31", missing=True), Date(unit="second", missing=True)
    schema = Schema({"a": day, "b": time, "n": Number(), "m": Number(0, 9, atoms=[99])})
    schema = Schema(schema, [Ordered("a", "b"), Ordered("n", "m")])
    table = pd.DataFrame(
        {
            "a": ["2020-01-02", "2020-01-02", None, "2020-01-02", "2019-01-01"],
            "b": ["2020-01-02T23:59:59", "2020-01-04", "2020-01-04", None, "2020-01-02"],
            "n": [1.0, -np.inf, 3, 1, 7],
            "m": [4.0, 12, 99, np.inf, 2],
        }
    )
    table[["a", "b"]] = table[["a", "b"]].astype("M8[s]")
    found = schema.add_differences(table)
    # Dates are clipped to their bounds, a missing value and a sentinel have no difference.
    assert_array_equal(found["b - a"], [0, 2, np.nan, np.nan, 1])
    assert_array_equal(found["m - n"].iloc[[0, 2, 3, 4]], [3, np.nan, 8, -5])
    assert np.isfinite(found["m - n"].iloc[1])
    assert_array_equal(schema.add_differences(table[::-1])["b - a"], found["b - a"][::-1])


def test_columns_are_put_at_differences_from_others():
    kinds = {
        "day": Date("2020-01-01", "2020-12-31"),
        "time": Date("2020-01-01", "2020-12-31", "hour"),
        "whole": Number(0, 9, decimals=0),
        "exact": Number(0, 9, decimals=1),
    }
    own = np.array([24 * 50 + 7, 24 * 60 + 23.0])
    # Hours are those of the own draw, at so many days from the other date.
    after = Ordered("day", "time").add("time", np.array([3.0, 4]), np.array([0.0, 2]), own, kinds)
    assert_array_equal(after, [24 * 3 + 7, 24 * 6 + 23])
    before = Ordered("time", "day").add("time", np.array([3.0, 4]), np.array([0.0, 2]), own, kinds)
    assert_array_equal(before, [24 * 3 + 7, 24 * 2 + 23])
    # Numbers are rounded away from the other one, so that the order holds.
    for rule, expected in (
        (Ordered("exact", "whole"), [3, 6]),
        (Ordered("whole", "exact"), [2, 1]),
    ):
        found = rule.add("whole", np.array([2.5, 3.6]), np.array([0.1, 1.9]), own, kinds)
        assert_array_equal(found, expected)


def test_the_column_of_the_narrowest_range_is_drawn_first():
    kinds = {"birth": Number(0, 1000, n_knots=5), "visit": Number(990, 1000, n_knots=3)}
    schema = Schema(kinds, [Ordered("birth", "visit")])
    table = draw(schema, 5000, seed=3)
    assert ks_2samp(table["visit"], draw(Schema(kinds), 5000)["visit"]).statistic < 0.05


def test_differences_are_learned_of_a_forest_of_orders():
    kinds = {name: Number(0, 99, decimals=0, n_knots=4, missing=name == "b") for name in "abcd"}
    rules = [Ordered("a", "b"), Ordered("b", "c", True), Ordered("a", "c"), Ordered("d", "c")]
    schema = Schema(kinds, rules)
    assert list(schema.differences) == ["b - a", "c - b", "c - d"]
    table = draw(schema, 200)
    assert (schema.share_obeying(table) == 1).all()
    assert 0.01 < table["b"].isna().mean() < 0.9
    # Columns under conditions are drawn on their own, others at differences from them.
    for where in ({"b": (40, 50)}, {"c": (90, 99)}, {"a": (50, None), "c": (None, 70)}):
        table = draw(schema, 40, where=where)
        assert (schema.share_obeying(table) == 1).all()
        for name, (lower, upper) in where.items():
            assert table[name].between(lower or 0, upper or 99).all()
    fixed = Schema({"a": Number(5, 9), "b": Number(0, 5)}, [Ordered("a", "b")])
    assert not fixed.differences
    computed = Schema(kinds | {"e": Number()}, [Derived("e", "a + d"), Ordered("c", "e")])
    assert not computed.differences


def test_names_of_differences_are_no_columns():
    kinds = {name: Number(0, 9) for name in ("a", "b", "b - a")}
    schema = Schema(kinds, [Ordered("a", "b")])
    assert list(schema.differences) == ["(b - a)"]
    assert schema["b - a"] == kinds["b - a"]


def test_rules_alone_wait_for_columns():
    rules = Schema(rules=[Ordered("a", "b")])
    assert (len(rules), rules.rules) == (0, (Ordered("a", "b"),))
    assert Schema.from_json(rules.to_json()) == rules
    table = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    found = declare(rules, Dataset(table))
    assert found == Schema.from_dtypes(table.dtypes, declared=rules)
    assert found.undeclared == ("a", "b", "b - a")
    with pytest.raises(ValueError, match=r"names .'b'., which are no columns"):
        declare(rules, Dataset(table[["a"]]))
    with pytest.raises(ValueError, match="at least one column, or a rule"):
        Schema()


def find_rows(schema, n, weights):
    """Return whether rows are found, and obey."""
    try:
        table = draw(schema, n, np.array(weights))
    except ValueError:
        return False
    return len(table) == n and (schema.share_obeying(table) == 1).all()


def test_rules_that_codes_nearly_exclude_are_met_all_the_same():
    kinds = {"a": Number(0, 100, decimals=0, n_knots=3), "b": Number(0, 100, decimals=0, n_knots=3)}
    # One pair in thousands obeys.
    where = {"a": (60, 90), "b": (70, 95)}
    for strict in (False, True):
        schema = Schema(kinds, [Ordered("a", "b", strict)])
        n_weights = TableEncoder(schema).n_columns
        rows = np.array([1e-4, 1e-4, 1, 1, 1, 1e-4, *np.ones(n_weights - 6)])
        table = draw(schema, 200, rows, where=where)
        assert (schema.share_obeying(table) == 1).all()
    levels = {"a": Boolean(), "b": Category([0, 1, 2])}
    schema = Schema(levels, [Implies({"a": True}, {"b": 2})])
    assert find_rows(schema, 200, [0.0, 1.0, 0.5, 0.5, 1e-9])


def test_learnt_weights_may_exclude_a_rule_which_is_named():
    kinds = {"a": Boolean(), "b": Category([0, 1]), "c": Boolean()}
    schema = Schema(kinds, [Implies({"a": True}, {"c": True}), Implies({"c": True}, {"b": 1})])
    with pytest.raises(ValueError, match=r"obey Implies.*'c': True.*'b': 1.*too rare"):
        draw(schema, 20, np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="under the conditions of where="):
        draw(schema, 20, where={"a": True, "b": 0})


def test_combinations_that_a_code_excludes_do_not_overrule_what_is_asked_for():
    schema = Schema({name: KINDS[name] for name in ("city", "country")}, [RULES[5]])
    never = np.array([0.5, 0.5, 0, 0.5, 0.5])
    with pytest.raises(ValueError, match="obey Combinations"):
        draw(schema, 20, never, where={"country": "DE"})
    with pytest.raises(ValueError, match=r"No row obeys Combinations.* under the conditions"):
        draw(schema, 20, where={"country": "DE", "city": "Wien"})
    assert set(draw(schema, 20, never)["city"]) == {"Wien", "Graz"}


def test_values_stay_different_from_piece_to_piece_until_there_are_no_more():
    schema = Schema({"a": Number(1, 9, decimals=0), "b": Boolean()}, [Unique(["a", "b"])])
    used = {}
    first = draw(schema, 8, used=used)
    second = draw(schema, 6, used=used, seed=1)
    assert not pd.concat([first, second]).duplicated().any()
    with pytest.raises(ValueError, match=r"Unique.*by 19 rows: there are 18 different values"):
        draw(schema, 5, used=used)


def test_a_number_may_be_derived_from_dates_and_a_date_from_a_number():
    schema = Schema(
        {
            "admitted": Date("2020-01-01", "2020-12-31", n_knots=4),
            "stay": Number(0, 30, decimals=0, n_knots=4, missing=True),
            "left": Date(missing=True),
            "paid": Date(unit="second", missing=True),
            "weeks": Number(decimals=1, missing=True),
        },
        [
            Derived("left", "admitted + stay"),
            Derived("paid", "left + 1 / 2"),
            Derived("weeks", "(left - admitted) / 7"),
        ],
    )
    table = draw(schema, 300)
    assert (schema.share_obeying(table) == 1).all()
    days = table["left"] - table["admitted"]
    assert table["stay"].isna().any()
    assert_array_equal(table["left"].isna(), table["stay"].isna())
    assert_array_equal(days.dt.days.dropna(), table["stay"].dropna())
    assert_array_equal(table["weeks"].dropna(), (table["stay"].dropna() / 7).astype(float).round(1))
    assert (table["paid"] - table["left"]).dropna().eq(pd.Timedelta("12h")).all()


def test_derived_columns_stay_within_their_bounds_and_divisions_by_zero_are_missing():
    kinds = {name: Number(0, 10, decimals=0, n_knots=3) for name in "ab"}
    schema = Schema(
        kinds | {"s": Number(5, 8, decimals=0), "q": Number(missing=True)},
        [Derived("s", "a + b"), Derived("q", "a / b")],
    )
    table = draw(schema, 400)
    assert table["s"].between(5, 8).all()
    assert_array_equal(table["q"].isna(), table["b"] == 0)
    assert table["q"].isna().any()
    whole = Schema(kinds | {"q": Number()}, [Derived("q", "a / b")])
    assert (draw(whole, 400)["b"] > 0).all()


# Cells of two-way tables that rules leave out.


def test_impossible_pairs_are_those_that_no_row_has_which_obeys():
    schema = Schema(
        {**KINDS, "half": Number(0, 1), "age": Number(0, 90, knots=[0, 20, 40, 90])},
        [
            *RULES,
            Implies({"age": (None, 40)}, {"ward": ["1", "2"]}),
            Implies({"again": True}, {"age": (40, 60)}),
        ],
    )
    impossible = find_impossible(schema.rules, TableEncoder(schema).make_blocks())
    assert_array_equal(impossible, TableFormat(schema).find_impossible())
    assert_array_equal(impossible, impossible.T)
    many = Schema(schema, [rule for rule in schema.rules if not isinstance(rule, Unique)])
    rows = TableEncoder(schema).encode(draw(many, 10_000))
    assert not ((rows.T @ rows > 0) & impossible).any()
    blocks = dict(TableEncoder(schema).blocks)

    def pair(first, second):
        return impossible[blocks[first], blocks[second]]

    assert_array_equal(pair("insured", "insurer"), [[0, 0, 0], [1, 1, 0]])
    assert_array_equal(pair("insured", "premium"), [[0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0]])
    assert_array_equal(pair("city", "country"), [[0, 1], [0, 1], [1, 0]])
    assert_array_equal(pair("age", "ward"), [[0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert_array_equal(pair("again", "age"), [[0, 0, 0, 0], [1, 1, 0, 0]])
    assert_array_equal(pair("admitted", "discharged").sum(), 3)
    assert not pair("nights", "rate").any()


def test_a_rule_is_about_values_as_they_are_handed_back():
    table = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5]})
    schema = Schema({"a": Number(0, 9), "b": Number(0, 9)}, [Ordered("a", "b", strict=True)])
    with pytest.raises(ValueError, match="'a' holds integers: declare it with decimals=0"):
        TableLayout.of(schema, Dataset(table))
    assert TableLayout.of(schema, Dataset(table.astype(float))).names == ("a", "b")
