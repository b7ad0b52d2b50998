"""Warnings of released numbers: when they come, and when they do not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPHistorySampler, DPSWFlowSampler
from skdpgen._process.muting import muted
from skdpgen.privacy import FitQualityWarning
from skdpgen.quality import (
    CAUSES,
    LEAST_SIGNAL,
    Finding,
    Findings,
    collects_findings,
    find_signal,
    warn_of_absent,
    warn_of_columns,
    warn_of_fit,
    warn_of_noise,
    warn_of_sketch,
)
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
    Schema,
    Unknown,
    suggest_rules,
)
from skdpgen.tables.quality import warn_of_levels, warn_of_table
from skdpgen.tables.report import describe
from skdpgen.tables.suggestions import _determines


def said(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    assert all(w.category is FitQualityWarning for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("signal", "warns"), [(0.9, True), (1.1, False)])
def test_mostly_noise(signal, warns):
    """A mean square is that of the noise and that of the signal."""
    numbers = 2 * np.sqrt(1 + signal * LEAST_SIGNAL) * np.array([1.0, -1.0])
    assert find_signal(numbers, 2.0) == pytest.approx(signal * LEAST_SIGNAL)
    messages = said(warn_of_noise, find_signal(numbers, 2.0), "two-way tables")
    assert bool(messages) is warns
    assert not warns or "Use a larger epsilon, more rows, fewer columns" in messages[0]
    assert find_signal(np.full(3, 1e-9), 2.0) == 0
    assert find_signal(np.ones(3), 0.0) == np.inf  # ε = inf
    # Without what is known to be nothing.
    assert find_signal(np.r_[numbers, np.zeros(50)], 2.0) == find_signal(numbers, 2.0)
    assert find_signal(np.zeros(3), 2.0) == np.inf


def test_levels_of_which_there_are_few():
    (message,) = said(warn_of_levels, [9.0, 0.1, 0.3], [880, 117, 500], "y", ["no", "yes", "so"])
    assert "'y' at 'yes' (about 117 records) are mostly noise" in message
    assert not said(warn_of_levels, [9.0, 0.3], [880, 117], "y", ["no", "yes"])
    assert not said(warn_of_levels, [9.0, 0.1], [880, 3], "y", ["no", "other"], "other")


def test_a_sketch_of_nothing_is_noise():
    noise = np.random.default_rng(0).normal(size=(2, 5000)) * 3
    many = np.array([900.0, 900.0])
    assert "mostly noise" in said(warn_of_sketch, noise, 3.0, many, 10.0)[0]
    assert not said(warn_of_sketch, noise + 3, 3.0, many, 10.0)


def test_classes_within_noise():
    sums, counts = np.ones((3, 8)), np.array([29.0, 31.0, 900.0])
    (message,) = said(warn_of_sketch, sums, 0.1, counts, 10.0)
    assert "1 of 3 classes" in message
    assert "at [0] in classes_" in message
    # Without classes there is one count, of all records.
    assert not said(warn_of_sketch, sums[:1], 0.1, counts[:1], 10.0)


def test_absent_records():
    assert "About 5%" in said(warn_of_absent, 0.95, 0.01)[0]
    assert not said(warn_of_absent, 0.95, 0.02)


BOUNDS = ("lower", "upper", "categories")


def warned_of(kind, counts, std=10.0, label=None, inferred=BOUNDS):
    schema, counts = Schema({"a": kind}), np.asarray(counts, dtype=float)
    report = describe(schema, counts, np.full(len(counts), std), counts.sum())
    return said(warn_of_table, report, schema, label, {"a": counts}, {"a": std}, {"a": inferred})


def knots(lower, upper=10, atoms=None):
    return Number(lower, upper, n_knots=4, atoms=atoms)


DECLARED = {"inferred": ()}
TWO, WHOLE = Category(["x", "y"]), Number(0, 1, decimals=0)
OTHER = Category(["x", "y"], "rest")
DATES = Date("2020-01-01", "2020-12-31", n_knots=3)


@pytest.mark.parametrize(
    ("kind", "counts", "options", "messages"),
    [
        # Much at a bound, unless that is 0, no more than beside it, not much, or within noise.
        (knots(-5), [900, 50, 50, 50], {}, ["% at -5"]),
        (knots(-5), [50, 50, 50, 900], {}, ["% at 10"]),
        (knots(-5), [400, 50, 50, 400], {}, ["44% at -5 and 44% at 10"]),
        (knots(0), [900, 50, 50, 50], {}, []),
        (knots(-5), [300, 250, 250, 250], {}, []),
        (knots(-5), [50, 0, 500, 500], {"std": 1.0}, []),
        (knots(-5), [110, 30, 500, 500], {}, []),
        # Declared bounds may cut, too; of each value that has its knot, the counts show the next.
        (knots(-5), [400, 50, 50, 400], DECLARED, ["44% at -5 and 44% at 10"]),
        (knots(-5, atoms=[-5, 10]), [400, 50, 50, 400, 0, 0], {}, []),
        (Number(1, 4, decimals=0), [900, 50, 50, 900], {}, []),
        (Number(1, 2, n_knots=2), [900, 50], {}, []),
        # Rare amounts that no range shows are all counted at 1; flags are clear of noise.
        (WHOLE, [300, 39], {}, ["12% at 1"]),
        (WHOLE, [300, 41], {}, []),
        (WHOLE, [300, 39], DECLARED, []),
        (TWO, [900, 5], {}, ["'a' are constant up to noise"]),
        (TWO, [900, 50], {}, []),
        (Category(["x"]), [900], {}, []),
        # Values at a declared bound are not said to be constant.
        (Number(0.18, 0.8, n_knots=3), [5, 3, 900], DECLARED, ["columns 'a' (0.8) are at a decl"]),
        (Number(100, 200, n_knots=3, atoms=[100]), [0, 0, 3, 900], DECLARED, ["'a' (100) are at"]),
        (DATES, [900, 2, 3], DECLARED, ["'a' (2020-01-01) are at a declared bound"]),
        (Number(0, 9, n_knots=3), [3, 900, 5], DECLARED, ["constant up to noise"]),
        # Others are many where categories were inferred; if none shows, that was said before.
        (OTHER, [30, 40, 30], {"std": 1.0}, ["'a' (30% 'rest') lose their rare categories"]),
        (OTHER, [30, 40, 30], {"std": 1.0, **DECLARED}, []),
        (OTHER, [70, 2, 28], {"std": 1.0, **DECLARED}, ["'a' (28% 'rest') have declared"]),
        (Category(["rest"], "rest"), [95], {}, []),
        (OTHER, [29, 500, 0], {"label": "a"}, ["1 of the 3 levels of 'a'"]),
        (OTHER, [29, 500, 0], {}, []),
        (Number(0, 9, missing=True, n_knots=2), [0, 0, 900], {}, ["'a' (100%) count as missing"]),
    ],
)
def test_findings_of_tables(kind, counts, options, messages):
    found = warned_of(kind, counts, **options)
    assert len(found) == len(messages)
    assert all(part in text for part, text in zip(messages, found, strict=True))


FIRST, LAST = np.array(["2020-01-01", "9999-12-31"], dtype="M8[s]")
SILENT = {
    "ratings": (lambda u: np.where(u < 0.7, 5, 1 + (u * 40) % 4 // 1), Number(1, 5, decimals=0)),
    "two days": (lambda u: FIRST + (u < 0.7) * 86_400, Date("2020-01-01", "2020-01-02")),
    "at a mass": (lambda u: np.where(u < 0.7, 10.0, 10 * u), Number(0, 10, atoms=[10])),
    "code": (lambda u: np.where(u < 0.3, 999.0, 50 * u), Number(0, 50, atoms=[999])),
    "default date": (
        lambda u: np.where(u < 0.3, LAST, FIRST + (u * 9e7).astype(int)),
        Date("2020-01-01", "2022-12-31", atoms=["9999-12-31"]),
    ),
    "far bound": (
        lambda u: np.where(u < 0.2, LAST, FIRST + (u * 7e6).astype(int)),
        Date("2020-01-01", "9999-12-31"),
    ),
    "nearly constant": (lambda u: u < 0.98, Boolean()),
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("epsilon", [pytest.param(1.0, marks=pytest.mark.slow), 10.0])
def test_declared_columns_are_silent(name, epsilon):
    make_cells, column = SILENT[name]
    u = np.random.default_rng(0).random(3000)
    table = pd.DataFrame({"x": make_cells(u), "y": np.sin(1e4 * u)})
    schema = Schema({"x": column, "y": Number(-1, 1)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        DPSWFlowSampler(epsilon, 1e-6, schema=schema, n_steps=2, random_state=0).fit(table)


N_CURED = 1500
U = np.random.default_rng(1).random((3, N_CURED))
DAYS = pd.Series(np.datetime64("2023-01-01") + (300 * U[0]).astype(int)).astype("M8[s]")
TIMES = DAYS + pd.to_timedelta((U[1] * 86_400e6).astype(int), "us")
FEW = np.array(["a", "B"])[(U[0] < 0.4).astype(int)]
MANY = pd.Series(FEW) + (900 * U[1]).astype(int).astype(str)
MIXED = pd.Series(np.round(U[1], 2).astype(str)).where(U[0] > 0.1, "ask")
CODED = np.where(U[0] < 0.1, 1e30, U[1])
LISTS = pd.Series([[1], [2]] * (N_CURED // 2))
WHOLE_NUMBERS = pd.Series([1, 2, 3] * (N_CURED // 3), dtype=object)
RARE = pd.Series(FEW) + np.where(U[1] < 0.6, "", MANY.str[1:])
APART = np.where(U[0] < 0.02, 9000 + 50 * U[1], U[1])
LONG = np.exp(2.2 * np.random.default_rng(2).normal(size=N_CURED))
OFFICE = DAYS + pd.to_timedelta((3600 * (8 + 9 * U[1])).astype(int), "s")
# For each cause a column and its declaration, and the same after what the message says to do.
CURES: dict = {
    "objects": ((LISTS, None), (LISTS.map(str), None), None),
    "missing": ((np.where(U[0] < 0.98, np.nan, U[1]), None), None),
    "looks": (
        (DAYS.dt.strftime("%d.%m.%Y"), None),
        (DAYS.dt.strftime("%d.%m.%Y"), Unknown(date_format="%d.%m.%Y")),
    ),
    "dates as numbers": ((DAYS.dt.strftime("%Y%m%d").astype(int), None), (DAYS, None)),
    "fractions": ((TIMES, None), (TIMES, Date(unit="millisecond"))),
    "no category": ((MANY + MANY.index.map(str), None), (FEW, None), (MANY, Identifier())),
    "beyond": ((CODED, None), (CODED, Number(0, 1, atoms=[1e30])), None),
    "other type": ((MIXED, None), (MIXED.replace("ask", None), None)),
    "identifiers": ((range(N_CURED), None), (range(N_CURED), Identifier()), None),
    "codes": ((WHOLE_NUMBERS, None), (WHOLE_NUMBERS.astype("string"), None)),
    "values unresolved": (
        (1e9 + U[0] / 1e5, None),
        (U[0] / 1e5, None),
        (1e9 + U[0] / 1e5, Number(1e9, 1e9 + 1e-5)),
    ),
    "at bound": ((100 + U[0], Number(0, 1)), (100 + U[0], Number(100, 101))),
    "spelled": (
        (FEW, Category(["a", "b"], "other")),
        (FEW, Category(["a", "B"], "other")),
    ),
    "constant": ((np.zeros(N_CURED), Number(-1, 1)), None),
    "clipped": (
        (U[0], Number(0, 0.7)),
        (U[0], Number(0, 1)),
        (U[0].clip(max=0.7), Number(0, 0.7, atoms=[0.7])),
    ),
    "other": ((RARE, None), (RARE.str[:1], None), (RARE, Category(["a", "B"]))),
    "apart": ((APART, None), (APART, Number(0, 9050))),
    "tail": ((LONG, None), (LONG, Number(0, LONG.max())), (np.log(LONG), None)),
}
# Those that noise brings about.
HIDDEN = {
    "hours": (
        (OFFICE, None),
        (OFFICE, Date(unit="second", hours=[0] * 8 + [1 / 9] * 9 + [0] * 7)),
        (OFFICE.dt.floor("D"), Date(unit="day")),
    )
}


@pytest.mark.parametrize(("cures", "epsilon"), [(CURES, 60.0), (HIDDEN, 0.5)])
def test_each_remedy_that_is_named_makes_its_finding_go(cures, epsilon):
    def find(chosen):
        chosen = {name: given for name, given in chosen.items() if given is not None}
        table = pd.DataFrame({name: column for name, (column, _) in chosen.items()})
        declared = {name: declared for name, (_, declared) in chosen.items() if declared}
        schema = Schema.from_dtypes(table.dtypes, declared=declared)
        with muted():
            sampler = DPSWFlowSampler(epsilon, 1e-6, schema=schema, random_state=1, n_steps=1)
            fitted = sampler.fit(table)
        found = fitted.schema_report_["finding"].dropna()
        return {name: finding.partition(":")[0] for name, finding in found.items()}

    assert find({cause: given for cause, (given, *_) in cures.items()}) == {c: c for c in cures}
    for i in range(2):
        assert find({cause: cured[i % len(cured)] for cause, (_, *cured) in cures.items()}) == {}


ABSENT = Schema({"age": Number(0, 99, decimals=0), "job": Category(["nurse", "Clerk"])})


@pytest.mark.parametrize(
    ("target", "schema"), [(None, ABSENT), ("job", ABSENT), (None, ABSENT.select(["job"]))]
)
def test_consequences_of_absent_records_are_not_said(target, schema):
    """Whether all records are absent, or those with a category that is spelled otherwise."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 99, 1500), "job": rng.choice(["cook", "x"], 1500)})
    table = table[list(schema)]

    def fit(table):
        sampler = DPSWFlowSampler(4.0, 1e-5, schema=schema, n_steps=2)
        return said(lambda: sampler.fit(table, target=target))

    assert ["not even which column it is" in text for text in fit(table)] == [True]
    few = fit(table.assign(job=table["job"].replace("x", "nurse")))
    found = [text for text in few if "Columns 'job' have declared categories that" in text]
    assert len(found) == 1
    assert not [text for text in few if "constant up to noise" in text]


def test_consequences_of_absent_persons_are_not_said():
    persons = pd.DataFrame({"id": range(400), "job": "cook"})
    stays = pd.DataFrame({"id": range(400), "ward": "A"})
    job, ward = Category(["nurse", "clerk"]), Category(["A", "B"])
    schemas = {"persons": Schema({"job": job}), "stays": Schema({"ward": ward})}
    sampler = DPHistorySampler(4.0, 1e-5, schemas=schemas, n_steps=2, max_rows_per_person=2)
    found = said(lambda: sampler.fit({"persons": persons, "stays": stays}, persons="id"))
    assert ["not even which column it is" in text for text in found] == [True]


def test_a_column_is_named_for_its_worst_cause_alone():
    found = Findings()
    found.add(Finding("constant", "a"), Finding("constant", "b"), Finding("no category", "a"))
    found.add(Finding("other", "c", "71% 'other'"))
    found.add(*[Finding("fit", None, "The release is mostly noise.")] * 2)
    messages = list(map(str, found.list_messages()))
    assert len(messages) == 4
    general, lost, other, constant = messages
    assert general == "The release is mostly noise."
    assert "Columns 'a' have no category" in lost
    assert "Columns 'c' (71% 'other') lose their rare categories" in other
    assert "Columns 'b' are constant" in constant
    worst = {name: str(finding) for name, finding in found.find_worst().items()}
    assert worst == {"a": "no category", "c": "other: 71% 'other'", "b": "constant"}


def test_warnings_of_a_fit_are_five_at_most():
    found = Findings()
    for i, cause in enumerate(CAUSES):
        found.add(*(Finding(cause, f"c{i}_{j}") for j in range(9)))
    lines = list(map(str, found.list_messages()))
    assert len(lines) == 5
    assert "'c0_0', 'c0_1', 'c0_2', 'c0_3', 'c0_4', 'c0_5', and 3 more (see schema" in lines[0]
    assert lines[4] == f"{len(CAUSES) - 4} more kinds of findings on columns are in " + (
        "schema_report_['finding']."
    )
    assert len(found.find_worst()) == 9 * len(CAUSES)


def test_findings_wait_for_the_end_of_a_fit():
    class Fitted:
        schema_report_ = pd.DataFrame(index=["a", "b"])

    def fit(fails):
        with collects_findings(Fitted()):
            warn_of_columns("constant", ["b"])
            warn_of_columns("cut", {"b": "44% at 3"})
            warn_of_fit("This is all noise.")
            if fails:
                raise RuntimeError("stop")

    with pytest.warns(FitQualityWarning) as caught:
        fit(False)
    first, second = (str(w.message) for w in caught)
    assert first == "This is all noise."
    assert second.startswith("Columns 'b' are constant")
    assert caught[0].filename == __file__
    assert Fitted.schema_report_["finding"].tolist() == [None, "constant"]
    with pytest.warns(FitQualityWarning, match="all noise"), pytest.raises(RuntimeError):
        fit(True)


def test_muted_findings_of_a_part_of_a_fit_are_not_shown():
    def fit():
        with collects_findings(None):
            with collects_findings(None):
                warn_of_fit("A part is all noise.")
            with muted(), collects_findings(None):
                warn_of_fit("Another one is.")

    with pytest.warns(FitQualityWarning) as caught:
        fit()
    assert [str(w.message) for w in caught] == ["A part is all noise."]


def test_a_column_without_categories_is_told_of_once():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"name": [f"n{i}" for i in range(2000)], "b": rng.random(2000) < 0.5})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitQualityWarning)
        fitted = DPSWFlowSampler(2.0, random_state=0, n_steps=2).fit(table)
    told = [w for w in caught if "'name'" in str(w.message)]
    assert len(told) == 1
    assert "no category" in str(told[0].message)
    assert told[0].filename == __file__
    assert fitted.schema_report_["finding"].to_dict() == {"name": "no category", "b": None}


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        # y and z were forgotten, levels and names are swapped.
        (Combinations(["k", "f"], [["x", True], ["x", False]]), "10% of the records obey"),
        (Implies({"k": "x"}, {"lo": (150, None)}), "of the records obey"),
        (Ordered("hi", "lo"), "of the records obey"),
        (Ordered("hi", "near"), "hardly ever above"),
        (Implies({"k": "x"}, {"lo": (None, 60)}), None),
        (Ordered("lo", "hi"), None),
        (Ordered("near", "hi"), None),
    ],
)
def test_rules_that_many_records_break_are_named(rule, word):
    rng = np.random.default_rng(0)
    n = 2000
    table = pd.DataFrame(
        {
            "k": rng.choice(["x", "y", "z"], n, p=[0.1, 0.5, 0.4]),
            "f": rng.random(n) < 0.4,
            "lo": rng.integers(0, 50, n),
            "hi": rng.integers(200, 300, n),
        }
    )
    table["near"] = table["hi"] - rng.integers(1, 5, n)
    schema = Schema(
        {
            "k": Category(["x", "y", "z"]),
            "f": Boolean(),
            **dict.fromkeys(["lo", "hi", "near"], Number(0, 300, decimals=0)),
        },
        [rule],
    )
    caught = said(DPSWFlowSampler(10.0, 1e-6, schema=schema, n_steps=2).fit, table)
    assert any(word in text for text in caught) if word else not caught, caught


@pytest.mark.slow
@pytest.mark.parametrize("vacant", [0.0, 0.6])
def test_rules_that_nearly_all_records_obey_are_suggested(vacant):
    rng = np.random.default_rng(0)
    n = 4000
    table = pd.DataFrame(rng.gamma(8, [[10, 15, 12]], (n, 3)) * rng.gamma(8, 1, (n, 1)))
    table = table.set_axis(["a", "b", "c"], axis=1).round(1)
    table[rng.random(n) < vacant] = 0
    table["sum"] = table.sum(axis=1).round(1)
    table["idle"] = rng.gamma(3, 300, n).round(1)
    table["code"] = rng.choice(["A1", "B2", "C3"], n)
    table["name"] = table["code"].map({"A1": "one", "B2": "two", "C3": "three"})
    table["other"] = rng.choice(["x", "y", "z"], n)
    found = suggest_rules(DPSWFlowSampler(10.0, 1e-6, n_steps=2).fit(table))
    pairs = [["A1", "one"], ["B2", "two"], ["C3", "three"]]
    assert found == [Combinations(["code", "name"], pairs), Derived("sum", "`a` + `b` + `c`")]


def test_noise_on_the_rest_of_a_constant_column_suggests_no_rule():
    counts = np.array([[445, 11_556, 18, 41], [-32, -91, 72, -5], [-111, -185, -93, 50]])
    assert not any(_determines(table, 74.0) for table in (counts, counts.T))
    assert _determines(np.diag([4000, 3000, 5000]), 74.0)


def test_zeros_that_coincide_come_back_together():
    """Those of a sum are not lost, and others stay apart."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.gamma(2, 100, (4000, 3)).round(1) + 1, columns=list("abc"))
    table.loc[rng.random(4000) < 0.05, ["a", "b"]] = 0
    table.loc[rng.random(4000) < 0.05, "c"] = 0
    columns = dict.fromkeys("abc", Number(0, 2000, decimals=1, atoms=[0]))
    columns["sum"] = Number(0, 4000, decimals=1)
    schema = Schema(columns, [Derived("sum", "a + b")])
    sampler = DPSWFlowSampler(3.0, 1e-6, schema=schema, n_steps=20)
    found = sampler.fit(table.assign(sum=(table["a"] + table["b"]).round(1))).sample(4000) == 0
    assert abs(found["sum"].mean() - 0.05) < 0.012
    assert (found["a"] & found["c"]).mean() < 0.01
