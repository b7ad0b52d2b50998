"""Fits of two tables that belong together: privacy, what is kept, what is refused."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest

import skdpgen
from skdpgen import Category, Date, DPSWFlowSampler, Identifier, Number, Schema
from skdpgen.accounting.events import over_sensitivity, plain_multiplier
from skdpgen.generators import DPHistorySampler
from skdpgen.privacy import (
    BudgetExceededError,
    FitQualityWarning,
    PrivacyBudget,
    PrivacyLeakWarning,
    preview,
    verify,
)
from skdpgen.quality import Finding, Findings
from skdpgen.releases import from_release
from skdpgen.tables import Ordered
from skdpgen.testing.common import assert_not_quoted
from skdpgen.testing.spies import release_only

pytestmark = pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning")

SCHEMAS = {
    "patients": Schema({"sex": Category(["f", "m"]), "age": Number(0, 99, decimals=0)}),
    "visits": Schema(
        {
            "day": Date("2020-01-01", "2021-12-31"),
            "ward": Category(["A", "B", "C"]),
            "cost": Number(0, 9),
        }
    ),
}
COMMON = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0, "device": "cpu"}
QUICK = COMMON | {"n_steps": 3, "n_particles": 50, "max_rows_per_person": 4}


def make_tables_of(n, seed=0, most=6):
    """Persons with rows: wards mostly stay, cost depends on sex, and gaps on the ward."""
    rng = np.random.default_rng(seed)
    sex, counts = rng.integers(0, 2, n), rng.integers(0, most + 1, n)
    patients = pd.DataFrame({"id": np.arange(n), "sex": np.array(["f", "m"])[sex]})
    patients["age"] = rng.integers(20, 80, n)
    day, ward, rows = rng.integers(0, 300, n), rng.integers(0, 3, n), []
    for t in range(most):
        ward = np.where(rng.random(n) < 0.8, ward, rng.integers(0, 3, n))
        here = t < counts
        rows.append(
            pd.DataFrame(
                {
                    "id": np.arange(n)[here],
                    "day": np.datetime64("2020-01-01") + day[here] * np.timedelta64(1, "D"),
                    "ward": np.array(["A", "B", "C"])[ward[here]],
                    "cost": (rng.random(n) * 4 + 4 * sex)[here].round(2),
                }
            )
        )
        day = day + 1 + 20 * ward + rng.integers(0, 25, n)
    visits = pd.concat(rows).sample(frac=1, random_state=0).reset_index(drop=True)
    return {"patients": patients, "visits": visits}


def fit(tables, order="day", **params):
    return DPHistorySampler(**QUICK | params).fit(tables, persons="id", order=order)


def list_warnings(tables, order="day", **params):
    """Return a fit, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sampler = fit(tables, order, **params)
    return sampler, [str(w.message) for w in caught if w.category is FitQualityWarning]


class _Fit:
    """A fit with the signature of those of a single table."""

    def __init__(self, sampler):
        self._sampler = sampler

    def fit(self, tables, y):
        return self._sampler.fit(tables, persons="id", order="day")


HISTORIES = {
    "M equal rows": [("2020-05-01", "A", 3.0)] * 4,
    "M different rows": [
        (f"2020-0{t + 1}-01", "ABC"[t % 3], [0.0, 9.0, 4.0, 2.0][t]) for t in range(4)
    ],
    "many rows": [("2021-12-31", "C", 9.0)] * 30,
    "one row": [("2020-01-01", "B", 0.0)],
    "no rows": [],
    "a row that is not as declared": [("2020-05-01", "X", 3.0), ("2020-05-01", "A", 9.0)],
}


@pytest.mark.parametrize(
    ("schemas", "relation"),
    [
        ("declared", "zero_out"),
        ("declared", "replace_one"),
        ("rules", "replace_one"),
        pytest.param("rules", "zero_out", marks=pytest.mark.slow),
        pytest.param("open", "zero_out", marks=pytest.mark.slow),
        pytest.param("open", "replace_one", marks=pytest.mark.slow),
    ],
)
def test_a_person_moves_no_release_by_more_than_is_accounted_for(relation, schemas):
    """With all their rows: by the sensitivity at most, as it follows from the noise."""
    given = dict(SCHEMAS)
    if schemas == "open":
        visits = dict(given["visits"]) | {"cost": Number(), "day": Date()}
        given["visits"] = Schema(visits)
    others, rules = make_tables_of(20), []
    if schemas == "rules":
        # The days to `out` and the differences of both tables are learned, too.
        rules = [Ordered("patients.age", "visits.cost"), Ordered("visits.day", "visits.out")]
        kinds = {"day": Date(), "cost": Number(), "out": Date()}
        given["visits"] = Schema({**given["visits"], **kinds})

    def release(rows, spies=None, null=None, sex="f"):
        own = pd.DataFrame([(0, *row) for row in rows], columns=["id", "day", "ward", "cost"])
        own["day"] = pd.to_datetime(own["day"]).astype(others["visits"]["day"].dtype)
        visits = others["visits"][others["visits"]["id"] != 0]
        patients = others["patients"].assign(id=others["patients"]["id"])
        patients.loc[0, ["sex", "age"]] = [sex, 0 if sex == "f" else 99]
        visits = pd.concat([visits, own], ignore_index=True)
        if schemas == "rules":
            visits["out"] = visits["day"] + pd.to_timedelta(visits["cost"].round(), "D")
        tables = {"patients": patients, "visits": visits}
        params = {"relation": relation, "schemas": given, "rules": rules}
        sampler = DPHistorySampler(**QUICK | params)
        return release_only(_Fit(sampler), tables, None, spies, null)

    spies = release(HISTORIES["M equal rows"])
    names = ["row tables", "person tables", "person-row tables", "time tables", "step tables"]
    assert [spy.name for spy in spies][-5:] == names
    assert (len(spies) > 6) == (schemas != "declared")
    absent = [spy.exact for spy in release(HISTORIES["M equal rows"], spies, np.arange(20) == 0)]
    cases = [(rows, "f") for rows in HISTORIES.values()]
    cases += [(HISTORIES[name], "m") for name in ("M equal rows", "many rows", "no rows")]
    moved = [[spy.exact for spy in release(rows, spies, sex=sex)] for rows, sex in cases]
    pairs = [(present, absent) for present in moved]
    if relation == "replace_one":
        pairs += [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
    for i, spy in enumerate(spies):
        if spy.name == "frequent values":
            continue  # its counts are of other values for each person
        multiplier = plain_multiplier(over_sensitivity(spy.event, relation))
        largest = max(np.linalg.norm((a[i] - b[i]) / spy.std) for a, b in pairs) * multiplier
        # Not all releases of inference have anything to look at here.
        assert (0.6 if spy.name in names else 0) <= largest <= 1, spy.name


def test_certificates_are_of_persons():
    tables = make_tables_of(60)
    sampler = fit(tables, schemas=SCHEMAS)
    certificate = sampler.privacy_
    assert (certificate.n_records, certificate.max_rows, sampler.n_samples_) == (60, 4, 60)
    assert sampler.epsilon_ <= 3
    assert "Unit: person, with all their rows (at most 4 of them are used)." in str(certificate)
    assert "the first 4 in the order of 'day' are used" in certificate.assumptions[0]
    assert verify(certificate.to_json()) == pytest.approx(sampler.epsilon_)
    planned = preview(DPHistorySampler(**QUICK, schemas=SCHEMAS), tables, persons="id")
    assert planned.epsilon == pytest.approx(3, rel=1e-3)
    with pytest.raises(ValueError, match="columns of two tables say what they cost"):
        preview(DPHistorySampler(), 100, 3)
    # M costs nothing: it changes no event.
    more = fit(tables, schemas=SCHEMAS, max_rows_per_person=40)
    assert more.privacy_.events == certificate.events
    assert more.sigma_ == sampler.sigma_


@pytest.mark.parametrize("order", ["day", None])
def test_samples_belong_together(order):
    tables = make_tables_of(300)
    sampler = fit(tables, order, schemas=SCHEMAS)
    drawn = sampler.sample(120)
    assert list(drawn) == ["patients", "visits"]
    patients, visits = drawn["patients"], drawn["visits"]
    assert patients["id"].tolist() == list(range(120))
    assert set(visits["id"]) <= set(patients["id"])
    assert visits["id"].value_counts().max() <= 4
    for name, table in drawn.items():
        pd.testing.assert_series_equal(
            table.dtypes.drop("id"), tables[name].dtypes.drop("id"), check_index=True
        )
    if order:
        assert visits.groupby("id")["day"].is_monotonic_increasing.all()
        assert visits["day"].between("2020-01-01", "2021-12-31").all()
    batches = list(sampler.sample_batches(25, batch_size=10))
    keys = pd.concat([batch["patients"]["id"] for batch in batches])
    assert keys.tolist() == list(range(25))
    # The same at each call, with a seed there.
    assert sampler.sample(9)["visits"].equals(sampler.sample(9)["visits"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning")
def test_without_noise_all_tables_are_kept():
    tables = make_tables_of(1500, most=4)
    sampler = fit(tables, epsilon=np.inf, schemas=SCHEMAS, n_steps=200, n_particles=700)
    drawn = sampler.sample(1500)

    def describe(tables):
        visits = tables["visits"].merge(tables["patients"], on="id").sort_values(["id", "day"])
        number = visits.groupby("id").cumcount()
        after = visits.groupby("id")[["ward", "day"]].shift(-1)
        gap = (after["day"] - visits["day"]).dt.days
        is_step = after["ward"].notna()
        return {
            "stays": (after["ward"] == visits["ward"])[is_step].mean(),
            "cost by sex": visits.groupby("sex")["cost"].mean().diff().iloc[-1] / 9,
            "gap by ward": gap.groupby(visits["ward"].to_numpy()).mean().diff().iloc[-1] / 60,
            "first rows": (number == 0).mean(),
            "rows": len(visits) / len(tables["patients"]) / 4,
            "ages": tables["patients"]["age"].mean() / 99,
            "none": 1 - visits["id"].nunique() / len(tables["patients"]),
        }

    true, made = describe(tables), describe(drawn)
    assert made == pytest.approx(true, abs=0.09)
    assert true["stays"] > 0.8


def test_identifiers_missing_cells_and_integers_come_back():
    tables = make_tables_of(300)
    n = len(tables["visits"])
    tables["visits"] = tables["visits"].assign(
        visit=np.arange(n), days=np.arange(n) % 9, note=np.where(np.arange(n) % 3, "x", None)
    )
    visits = Schema(
        {
            **SCHEMAS["visits"],
            "visit": Identifier(start=100),
            "days": Number(0, 8, decimals=0),
            "note": Category(["x"], missing=True),
        }
    )
    sampler = fit(tables, schemas={**SCHEMAS, "visits": visits}, epsilon=20.0)
    drawn = sampler.sample(60)["visits"]
    assert drawn["visit"].tolist() == list(range(100, 100 + len(drawn)))
    assert drawn["days"].dtype == np.int64
    assert 0.1 < drawn["note"].isna().mean() < 0.6
    assert sampler.schemas_["visits"]["days"] == visits["days"]
    assert not sampler.schemas_["visits"]["day"].missing
    assert "patients.age" in sampler.schema_report_.index


@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning")
def test_columns_that_a_schema_leaves_out_are_inferred():
    tables = make_tables_of(800)
    ward, age = Category(["A", "B", "C"]), Number(0, 99, decimals=0)
    partial = {"visits": Schema({"ward": ward}), "patients": Schema({"age": age})}
    schemas = {}
    with contextlib.suppress(ValueError):
        schemas = fit(tables, schemas=partial, epsilon=20.0).schemas_
    assert {name: list(schema) for name, schema in schemas.items()} == {
        "patients": ["sex", "age"],
        "visits": ["day", "ward", "cost"],
    }
    assert schemas["visits"]["ward"].categories == ward.categories
    alone = {"patients": tables["patients"][["id"]], "visits": tables["visits"]}
    sampler = fit(alone, epsilon=8.0)
    (schema,) = sampler.schemas_.values()
    assert set(schema["ward"].levels) - {"other"} == {"A", "B", "C"}
    assert None not in (schema["cost"].lower, schema["cost"].upper)
    drawn = sampler.sample(30)["patients"]
    assert (list(drawn), len(drawn)) == (["id"], 30)


def test_rows_beyond_those_that_count_are_told_of():
    def warn(max_rows):
        _, messages = list_warnings(
            make_tables_of(600, most=6), schemas=SCHEMAS, max_rows_per_person=max_rows
        )
        return [
            message for message in messages if f"max_rows_per_person={max_rows} rows" in message
        ]

    (message,) = warn(2)
    share = int(message.split("%")[0].split()[-1])
    assert share == pytest.approx(100 * 4 / 7, abs=8)
    assert not warn(6)


@pytest.mark.parametrize(("n", "is_warned"), [(200, True), (6000, False)])
def test_too_few_persons_are_told_of(n, is_warned):
    _, messages = list_warnings(make_tables_of(n), epsilon=1.0, schemas=SCHEMAS)
    assert any("takes about" in message for message in messages) == is_warned


def test_few_persons_have_any_number_of_rows():
    """Noise hides the persons with two rows, who are among others."""
    counts = np.repeat([1, 2, 3], [200, 3, 200])
    tables = {
        "patients": pd.DataFrame({"id": np.arange(403)}),
        "visits": pd.DataFrame({"id": np.repeat(np.arange(403), counts)}).assign(ward="A"),
    }
    schemas = {"visits": Schema({"ward": Category(["A", "B"])})}
    particles = fit(tables, None, schemas=schemas)._rows
    # 0 to 4 rows, and more.
    assert particles.is_empty[:6].tolist() == [True, False, False, False, True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "visits": t["visits"].assign(id=lambda v: v["id"] + 10**6)}, "rows"),
        (lambda t: {"visits": t["visits"], "patients": t["patients"]}, "several rows"),
        (lambda t: {**t, "visits": t["visits"].drop_duplicates("id")}, "several rows"),
        (lambda t: t, None),
    ],
    ids=["no key matches", "swapped", "one row each", "sound"],
)
def test_persons_without_rows_are_told_of(change, message):
    sampler, messages = list_warnings(change(make_tables_of(600)), None, epsilon=8.0)
    named = [text for text in messages if "Hardly any person" in text]
    assert len(named) == (message is not None)
    assert all(f"Hardly any person has {message} in the second table" in text for text in named)
    drawn = list(sampler.sample(50).values())
    assert len(drawn[0]) == 50
    assert list(drawn[1]) == list(dict.fromkeys(drawn[1]))
    if message == "rows":
        assert len(drawn[1]) < 10


def test_saved_and_published_fits_are_the_same(tmp_path):
    tables = make_tables_of(100)
    sampler = fit(tables, schemas=SCHEMAS)
    sampler.save(tmp_path / "fit")
    sampler.release_.to_file(tmp_path / "release")
    again = from_release(tmp_path / "release", DPHistorySampler(**QUICK))
    drawn = sampler.sample(20, random_state=1)
    for copied in (skdpgen.load(tmp_path / "fit"), again):
        assert copied.privacy_ == sampler.privacy_
        for name, table in copied.sample(20, random_state=1).items():
            assert table.equals(drawn[name])
    from_release(tmp_path / "release", DPHistorySampler(**QUICK, schemas=SCHEMAS))
    others = DPHistorySampler(**QUICK, schemas={"patients": Schema({"sex": Category(["other"])})})
    with pytest.raises(ValueError, match="schemas of DPHistorySampler is not that"):
        from_release(tmp_path / "release", others)
    with pytest.raises(ValueError, match="cannot be fitted to the HistoryTables"):
        from_release(tmp_path / "release", DPSWFlowSampler())
    with pytest.raises(ValueError, match="drawn without y and where"):
        sampler.sample(5, where={"sex": "f"})
    with pytest.warns(PrivacyLeakWarning):
        assert -1 < sampler.score(tables) < 0


SECRET = "Smith-271828"


def change_visits(change):
    return lambda tables: {**tables, "visits": change(tables["visits"])}


def identity(tables):
    return tables


@pytest.mark.parametrize(
    ("change", "params", "message"),
    [
        (lambda t: t["visits"], {}, "X must be a dict of two tables.*got DataFrame"),
        (lambda t: {**t, "third": t["visits"]}, {}, "got 3 tables. Join further tables"),
        (lambda t: dict(enumerate(t.values())), {}, "names of tables must be texts"),
        (change_visits(lambda v: v.drop(columns="id")), {}, "'visits' has no column 'id'"),
        (change_visits(lambda v: v[["id"]]), {}, "'visits' has no column to learn"),
        (change_visits(lambda v: v.drop(columns="day")), {}, "order must be a column of"),
        (
            change_visits(lambda v: v.assign(day=v["day"].dt.to_period("D"))),
            {},
            "Table 'visits': Column 'day' has dtype period",
        ),
        (identity, {"schemas": SCHEMAS["visits"]}, "schemas must be a dict of a Schema for each"),
        (
            identity,
            {"schemas": {"stays": SCHEMAS["visits"]}},
            r"schemas names \['stays'\], but the tables",
        ),
        (identity, {"schemas": {"visits": Schema({"wrd": Category(["A"])})}}, "'wrd'"),
        (
            identity,
            {"schemas": {"visits": Schema({"id": Number(0, 9), **SCHEMAS["visits"]})}},
            r"declares 'id', which identifies.*schema.drop\('id'\)",
        ),
        (
            lambda t: {"a.b": t["patients"], "a": t["visits"].rename(columns={"ward": "b.sex"})},
            {},
            "Columns of both tables would be a.b.sex: rename a table",
        ),
        (identity, {"max_rows_per_person": 0}, "max_rows_per_person"),
        (identity, {"order": "ward", "schemas": SCHEMAS}, "'ward' is a Category"),
    ],
)
def test_what_does_not_belong_together_is_refused_for_nothing(change, params, message):
    tables = make_tables_of(20)
    tables["patients"].loc[0, "sex"] = SECRET
    with PrivacyBudget(1.0, 1e-5) as budget, pytest.raises(ValueError, match=message) as caught:
        fit(change(tables), **{"random_state": None, **params})
    assert budget.spent == 0
    assert_not_quoted(caught.value, SECRET)


@pytest.mark.parametrize("written", ["%Y-%m-%d", "week %V", "of Python"])
def test_orders_are_inferred_from_texts(written):
    tables = make_tables_of(600)
    day = tables["visits"]["day"].dt
    texts = day.date if written == "of Python" else day.strftime(written)
    tables["visits"] = tables["visits"].assign(day=texts)
    sampler, messages = list_warnings(tables, epsilon=20.0)
    named = [text for text in messages if "The order, 'day', has no numbers or dates" in text]
    days = sampler.sample(50)["visits"].groupby("id")["day"]
    if written != "week %V":
        assert not named
        assert type(days.first().iloc[0]) is type(texts[0])
        assert days.is_monotonic_increasing.all()
    else:
        assert len(named) == 1
        assert (days.nunique() == 1).all()


@pytest.mark.parametrize("max_rows", [1, 60])
def test_one_row_and_many_rows_of_a_person(max_rows):
    tables = make_tables_of(60)
    sampler = fit(tables, schemas=SCHEMAS, max_rows_per_person=max_rows, n_particles=1)
    drawn = sampler.sample(700)
    counts = drawn["visits"]["id"].value_counts()
    assert counts.max() <= max_rows
    assert drawn["patients"]["id"].is_unique


@pytest.mark.catches(
    "histories.history_format:HistoryFormat.open", "replace(rows.layout, listed={})", "rows.layout"
)
def test_private_categories_of_dtypes_are_not_held():
    tables = make_tables_of(60)
    tables["visits"]["ward"] = pd.Categorical(
        tables["visits"]["ward"], categories=["A", "B", "C", SECRET], ordered=True
    )
    sampler = fit(tables, random_state=None)
    assert SECRET not in str([vars(layout) for layout in sampler._format.layouts])
    assert SECRET not in repr(sampler._format)


@pytest.mark.parametrize("zoned", ["day", "left", "both", "none"])
def test_dates_of_another_time_zone_than_the_order_are_named_for_nothing(zoned, recwarn):
    tables = make_tables_of(60)
    visits = tables["visits"].assign(left=tables["visits"]["day"] + pd.Timedelta(days=3))
    columns = {"both": ["day", "left"], "none": []}.get(zoned, [zoned])
    zone = "Europe/Vienna"
    tables["visits"] = visits.assign(**{n: visits[n].dt.tz_localize(zone) for n in columns})
    with PrivacyBudget(1.0, 1e-5) as budget, pytest.raises(BudgetExceededError):
        fit(tables, random_state=None)
    assert budget.spent == 0
    found = [w for w in recwarn if "other time zones" in str(w.message)]
    assert len(found) == (zoned in ("day", "left"))
    for warning in found:
        assert "Dates ['visits.left'] and the order 'visits.day'" in str(warning.message)
        assert f".dt.tz_localize({zone if zoned == 'day' else None!r})" in str(warning.message)


def test_warnings_of_columns_that_no_schema_declares_say_what_to_declare():
    tables = make_tables_of(300)
    visits = tables["visits"]
    tables["visits"] = visits.assign(left=visits["day"] + pd.to_timedelta(visits["cost"], "D"))
    sampler = fit(tables, epsilon=50.0)
    found, since = Findings(), "visits.left since visits.day"
    found.advise(sampler._format.list_advice())
    found.add(*(Finding("tail", name) for name in ("visits gap", since, "visits.cost")))
    (text,) = map(str, found.list_messages())
    assert "For 'visits gap', declare the bounds of 'day'." in text
    assert f"For '{since}', declare Ordered('visits.day', 'visits.left', difference=Nu" in text
    assert "For 'visits.cost'" not in text
