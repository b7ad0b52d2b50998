"""The report: numbers against closed forms, what it refuses and shouts, and a real browser."""

import html
import json
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp

from skdpgen import Boolean, Number, Schema, audit
from skdpgen.evaluation import Report, report
from skdpgen.evaluation._columns import as_table, encode_columns
from skdpgen.evaluation._comparisons import (
    compare_marginals,
    compare_pairs,
    mean_variation,
    score_classifiers,
    score_k_marginals,
    score_propensity,
    score_quality,
    total_variation,
)
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import Certificate, PrivacyLeakWarning
from skdpgen.tables import Implies

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CERTIFICATE = Certificate(
    (GaussianDpEvent(4.0),), ("two-way <tables>",), assumptions=("one record",), n_records=300
)


def make_rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    return pd.DataFrame(
        {
            "age": age,
            "pay": rng.lognormal(7 + shift, 0.4, n) * np.sqrt(age),
            "ward": np.where(rng.random(n) < 0.1, None, rng.choice(["A", "B <b>"], n)),
            "sick": rng.random(n) < age / 120,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        }
    )


@pytest.fixture(scope="module")
def tables():
    return make_rows(300, 0), make_rows(400, 1)


@pytest.fixture(scope="module")
def found(tables):
    schema = Schema(
        {"sick": Boolean(), "age": Number(0, 99)}, [Implies({"sick": True}, {"age": (0, 40)})]
    )
    return report(*tables, certificate=CERTIFICATE, schema=schema, target="sick", title="A & B")


# --- columns -------------------------------------------------------------------------------------


def test_levels_are_those_with_the_larger_share_of_either_table():
    """A level that only the synthetic rows have is not hidden among others."""
    rare = [f"rare {i:02d}" for i in range(40)]
    synthetic, reference = (
        pd.DataFrame({"a": values, "none": None, "one": 1})
        for values in (["other"] * 72 + ["x"] * 27 + [None], ["x"] * 60 + rare)
    )
    column, *nothing = encode_columns(synthetic, reference)
    assert [one.levels for one in nothing] == [("missing",), ("1",)]
    assert column.levels[:2] == ("other", "x")
    assert column.levels[-2:] == ("all others", "missing")
    assert len(column.levels) == 32
    assert_allclose(column.shares(column.synthetic)[[0, 1, -2, -1]], [0.72, 0.27, 0, 0.01])
    assert_allclose(column.shares(column.reference)[[0, 1, -2, -1]], [0, 0.6, 0.12, 0])
    # Merged levels differ, too: only the 27 rows with x agree.
    assert mean_variation(compare_marginals([column])) == pytest.approx(0.73)


def test_merged_levels_are_told_apart_in_marginals():
    synthetic, reference = (
        pd.DataFrame({"a": [f"{which} {i}" for i in range(100)]}) for which in ("one", "two")
    )
    found = compare_marginals(encode_columns(synthetic, reference))
    assert mean_variation(found) == pytest.approx(1)


def test_ordered_categories_are_in_their_order():
    order = ["low", "middle", "high"]
    cells = ["high", "high", "low", "middle", "middle", "middle"]
    table = pd.DataFrame({"a": cells, "b": pd.Categorical(cells, order, ordered=True)})
    first, second = encode_columns(table)
    assert first.levels == ("middle", "high", "low")
    assert second.levels == tuple(order)
    assert encode_columns(table, orders={"a": order})[0].levels == tuple(order)
    assert_allclose(second.shares(second.synthetic), [1 / 6, 1 / 2, 1 / 3])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, "Float64", "category", "string", object])
def test_few_values_are_levels_whatever_the_dtype(dtype):
    tables = [pd.DataFrame({"a": pd.Series([1, 2, 2, 3]).astype(dtype)}) for _ in range(2)]
    (column,) = encode_columns(*tables)
    assert sorted(column.levels) == ["1", "2", "3"]
    assert_allclose(sorted(column.shares(column.reference)), [0.25, 0.25, 0.5])


def test_many_numbers_are_binned_by_quantiles_and_outermost_bins_are_open():
    reference = pd.DataFrame({"a": np.arange(1001.0)})
    synthetic = pd.DataFrame({"a": [*np.arange(1001.0), -1e9, 1e9, np.nan]})
    (column,) = encode_columns(synthetic, reference)
    assert len(column.levels) == 11
    assert column.levels[-1] == "missing"
    assert column.synthetic[-3:].tolist() == [0, 9, 10]
    assert_allclose(column.shares(column.reference)[:10], 0.1, atol=0.01)
    assert column.levels[0].startswith("below")
    assert column.levels[9].startswith("from")
    assert [bin[1] for bin in column.bins[:-1]] == [bin[0] for bin in column.bins[1:]]


def test_heavy_tails_have_bins_of_equal_shares():
    (column,) = encode_columns(pd.DataFrame({"a": np.geomspace(1, 1e9, 5000)}))
    assert column.shares(column.synthetic).max() < 0.12


def test_point_masses_are_levels_and_leave_bins_for_other_values():
    reference = np.append(np.zeros(900), np.arange(100, 200.0))
    synthetic = np.append(np.zeros(900), np.linspace(0.01, 1, 100))
    (column,) = encode_columns(*(pd.DataFrame({"a": a}) for a in (synthetic, reference)))
    assert column.levels[0] == "0"
    assert column.bins[0] == (0, 0)
    assert column.levels[1].startswith("over 0 to")
    assert mean_variation(compare_marginals([column])) == pytest.approx(0.1, abs=0.02)
    # Here values between two tables are one number.
    (column,) = encode_columns(pd.DataFrame({"a": np.append(np.full(2000, 7.5), range(20))}))
    assert "7.5" in column.levels


def test_arrays_are_tables_too():
    assert list(as_table(np.eye(3))) == ["x0", "x1", "x2"]
    with pytest.raises(ValueError, match="matrix or a DataFrame"):
        as_table(np.zeros(3))


# --- numbers -------------------------------------------------------------------------------------


def test_total_variation_in_closed_form():
    first, second = np.array([0] * 7 + [1] * 3), np.array([0] * 2 + [1] * 3 + [2] * 5)
    assert total_variation(first, second) == pytest.approx(0.5)
    assert total_variation(first, first) == 0
    assert total_variation(np.zeros(3, int), np.ones(5, int)) == 1


def test_marginals_and_pairs_of_independent_columns():
    """Alike one by one, and not together."""
    same = pd.DataFrame({"a": np.repeat([0, 1], 50), "b": np.repeat([1, 0], 50)})
    crossed = same.assign(b=np.tile([0, 1], 50))
    columns = encode_columns(crossed, same)
    assert mean_variation(compare_marginals(columns)) == 0
    (pair,) = compare_pairs(columns)
    found = [pair[name] for name in ("total_variation", "synthetic", "reference")]
    assert_allclose(found, [0.5, 0, 1], atol=1e-12)
    assert compare_pairs(encode_columns(same)) == [
        {"first": "a", "second": "b", "synthetic": pytest.approx(1)}
    ]
    assert score_k_marginals(columns, 0) == {"k": 2, "n_marginals": 1, "score": 500.0}
    # Correlations of 0 and -1, and columns that agree.
    assert score_quality(columns) == pytest.approx((1 + 0.5) / 2)


def test_quality_is_that_of_sdmetrics():
    """0.464435: KS- and TVComplement, Correlation- and ContingencySimilarity, SDMetrics 0.32."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=400), "n": rng.integers(0, 9, 400)})
    real["c"] = np.where(real["x"] > 0.5, "high", rng.choice(["low", "middle"], 400))
    real["d"] = rng.choice(list("abc"), 400)
    made = real.assign(x=real["x"].clip(-1) * 2, n=real["n"] // 2, d=real["c"].str[0])
    real.loc[:39, "x"] = np.nan
    assert score_quality(encode_columns(made, real)) == pytest.approx(0.464435, abs=1e-6)
    infinite = real.assign(x=np.inf)
    assert score_quality(encode_columns(infinite, infinite)) == 1


def test_gaps_of_distribution_functions_are_those_of_scipy(tables):
    found = compare_marginals(encode_columns(*tables))
    marginals = {column["column"]: column["kolmogorov_smirnov"] for column in found}
    expected = ks_2samp(tables[0]["pay"], tables[1]["pay"]).statistic
    assert marginals["pay"] == pytest.approx(expected)
    assert marginals["ward"] is None


def test_k_marginals_are_drawn_where_there_are_many():
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame(rng.integers(0, 2, (200, 40))) for _ in range(2)]
    score = score_k_marginals(encode_columns(*tables), 0)
    assert (score["k"], score["n_marginals"]) == (3, 100)
    assert 850 < score["score"] < 970
    assert score_k_marginals(encode_columns(tables[0], tables[0]), 0)["score"] == 1000


def test_classifiers_learn_from_the_one_table_and_are_tested_on_the_other():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    right = pd.DataFrame({"x": x, "y": np.where(x > 0, "p", "n")})
    wrong = right.assign(y=np.where(x > 0, "n", "p"))
    for score in score_classifiers(wrong, right, "y")["scores"]:
        assert score["synthetic"] < 0.1
        assert score["reference"] > 0.9


def test_propensity_is_a_half_for_the_same_rows_and_one_for_others():
    same = score_propensity(make_rows(1000, 0), make_rows(1000, 1), 0)
    assert 0.4 < same["roc_auc"] < 0.6
    other = score_propensity(make_rows(300, 0), make_rows(300, 1, shift=5), 0)
    assert other["roc_auc"] > 0.99
    assert other["pmse"] > 0.9 > 0.2 > same["pmse"]


# --- the report ----------------------------------------------------------------------------------


def test_json_and_page_say_the_same(found, tmp_path):
    results = json.loads(found.to_json(tmp_path / "r.json"))
    assert results == found.results
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == results
    page = text_of(found.to_html(tmp_path / "r.html"))
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == found.to_html()
    assert f"{results['k_marginals']['score']:.0f}" in page
    for column in results["marginals"]["columns"]:
        assert f"{column['column']} {column['total_variation']:.1%} differ" in page
    assert (
        f"differ from the reference in {results['marginals']['mean_total_variation']:.1%}" in page
    )
    frame = found.to_frame()
    assert frame.loc["pMSE, of its maximum"].tolist()[::2] == [results["propensity"]["pmse"], 0]
    # Halves of the same rows are as near as sampling allows.
    assert frame.loc["Propensity, area under the ROC curve", "reference"] == pytest.approx(
        0.5, abs=0.1
    )
    for score in results["classifiers"]["scores"]:
        assert f"{score['synthetic']:.3f}" in page
    assert f"{results['propensity']['roc_auc']:.3f}" in page
    assert f"{results['rules'][0]['share_breaking']:.2%}" in page
    assert f"{results['marginals']['halves']:.1%}" in page
    assert results["n_rows"] == 300
    assert results["n_reference"] == 400


def text_of(page):
    shown = page.partition("</style>")[2].partition("<script>")[0]
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", shown).split()))


class _Tags(HTMLParser):
    """Checks that tags are closed in order, and lists attributes that load something."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.tags.append((tag, dict(attrs)))
        self.loads += [a for a in attrs if a[0] in ("src", "href", "srcset", "style", "onload")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_by_itself_and_escapes_what_is_in_it(found):
    page = found.to_html()
    tags = _Tags()
    tags.feed(page)
    assert not tags.open
    assert all(value.startswith("#") for _, value in tags.loads)
    assert page.count("<script") == page.count("<script>") == 1
    assert "B <b>" not in page
    assert "two-way <tables>" not in page
    assert "<title>A &amp; B</title>" in page
    assert "url(" not in page
    assert "@import" not in page


def test_the_certificate_is_on_the_page(found):
    page = text_of(found.to_html())
    assert "Differential privacy with ε = 0.9264 at δ = 1e-05." in page
    assert "two-way <tables> GaussianDpEvent(noise_multiplier=4.0)" in page
    assert "one record" in page
    assert "What voids the protection" in page
    # e^ε, and Φ(μ/2), rounded up.
    assert "by a factor of at most 2.526" in page
    assert "at most 55 of 100 cases" in page
    assert "μ = 0.25" in page
    assert 'class="alarm"' not in found.to_html()


@pytest.mark.parametrize(
    ("options", "alarm"),
    [
        ({"certificate": None}, "No certificate was given"),
        (
            {"certificate": Certificate((GaussianDpEvent(4.0),), ("a",), reproducible=True)},
            "The noise of this fit follows from a seed",
        ),
        ({"certificate": Certificate((NonPrivateDpEvent(),), ("a",))}, "there is no privacy"),
        ({"audit": '{"verdict": "violation found", "bound": 3.0}'}, "An audit found that more"),
        (
            {"audit": json.dumps({"verdict": "no violation found", "certificate": {"delta": 0.1}})},
            "The audit is of other releases",
        ),
    ],
)
def test_alarms(tables, options, alarm):
    page = report(tables[0], **{"certificate": CERTIFICATE, **options}).to_html()
    assert page.index('<p class="alarm" role="alert">') < page.index("<h1>")
    assert page.count('class="alarm"') == 1
    assert alarm in page


def test_private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top(tables):
    with pytest.raises(ValueError, match="exact numbers about them, which no ε covers"):
        report(tables[0], private=tables[1])
    with pytest.raises(ValueError, match="either reference"):
        report(*tables, private=tables[1], reads_private_rows=True)
    with pytest.warns(PrivacyLeakWarning, match="as secret as the rows") as caught:
        found = report(
            tables[0], private=tables[1], reads_private_rows=True, certificate=CERTIFICATE
        )
    assert caught[0].filename == __file__
    assert found.results["reads_private_rows"]
    body = found.to_html().partition("<body>")[2].replace("<header>", "")
    assert body.lstrip().startswith('<p class="alarm" role="alert">This report was computed from')
    assert "compared with 400 private rows" in body
    assert "public reference" not in body


def test_without_a_reference_rows_are_described(tables):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = report(tables[0], certificate=CERTIFICATE)
    for name in ("k_marginals", "classifiers", "propensity"):
        assert found.results[name] is None
    page = found.to_html()
    assert "Pairs of columns" in page
    assert "differ" not in text_of(page)
    assert "the reference" not in text_of(page)


def test_codes_may_be_numbers_in_one_table_and_texts_in_the_other():
    rng = np.random.default_rng(0)
    reference = pd.DataFrame({"code": rng.integers(3, size=60), "ill": rng.integers(2, size=60)})
    synthetic = reference.astype({"code": str})
    results = report(synthetic, reference, target="ill").results
    assert results["marginals"]["mean_total_variation"] == 0
    other = synthetic.replace({"code": {"1": "other"}})
    assert report(other, reference, target="ill").results["marginals"]["mean_total_variation"] > 0


def test_results_repeat_and_columns_may_be_in_any_order(tables, found):
    other = report(tables[0], tables[1][list(tables[1])[::-1]])
    for name in ("marginals", "pairs", "k_marginals"):
        assert other.results[name] == found.results[name]


@pytest.mark.parametrize(
    ("synthetic", "reference", "options", "message"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3)), {}, "must have the same columns; drop these.*'x2'"),
        (np.zeros((1, 2)), None, {}, "synthetic needs at least 2 rows"),
        (np.zeros((3, 2)), np.zeros((1, 2)), {}, "reference needs at least 2 rows"),
        (np.zeros((3, 2)), None, {"target": "y"}, "target must be one of the columns"),
    ],
)
def test_refusals(synthetic, reference, options, message):
    with pytest.raises(ValueError, match=message):
        report(synthetic, reference, **options)


@pytest.mark.parametrize("target", ["pay", "constant"])
def test_a_target_without_classes_has_no_classifier(tables, target):
    found = report(*(table.assign(constant=1) for table in tables), target=target)
    assert (
        "classes" in found.results["classifiers"]["none"]
        or "one class" in (found.results["classifiers"]["none"])
    )
    assert "No classifier was trained" in found.to_html()


def test_an_audit_is_shown_and_of_the_same_releases_no_alarm(tables):
    audited = audit(DPPCA(bounds=(0, 1)), 20, 2, n_runs=100, random_state=0)
    options = {"certificate": audited.certificate, "audit": audited}
    page = report(tables[0], **options).to_html()
    assert 'class="alarm"' not in page
    assert "ε is shown to be above" in page
    assert f"{audited.bound:.3g}" in page
    other = replace(audited.certificate, delta=1e-9)
    results = report(tables[0], **options | {"certificate": other}).results
    assert results["audit"]["is_of_certificate"] is False
    releases = [{"name": "sums <i>", "verdict": "no violation found", "reasons": []}]
    given = json.dumps({"verdict": "no violation found", "releases": releases})
    assert "sums &lt;i&gt;" in report(tables[0], audit=given).to_html()


@pytest.mark.parametrize("name", ["certificate", "audit"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"age": {"type": "number"}}', "{name} is not the JSON of a {name}"),
        ("{never closed", "The {name} is not valid JSON"),
    ],
)
def test_files_of_something_else_are_refused(tables, name, text, message):
    with pytest.raises(ValueError, match=message.format(name=name)):
        report(tables[0], **{name: text})


def test_long_lists_are_folded(tables):
    cells = [f"level {i:02d}" for i in range(25) for _ in range(30 - i)]
    table = pd.DataFrame({"a": cells})
    certificate = replace(CERTIFICATE, assumptions=(", ".join("a" * 200),))
    page = report(table, table, certificate=certificate).to_html()
    assert "<summary>11 more values</summary>" in page
    folded = "".join(re.findall("<details>(.*?)</details>", page, re.DOTALL))
    assert all((f">level {i}<" in folded) == (i >= 14) for i in range(10, 25))
    assert "a, a, a" in folded
    page = report(tables[0][["ward", "sick"]], certificate=CERTIFICATE).to_html()
    assert "<details>" not in page


def test_in_a_notebook_the_page_is_in_a_frame(found):
    assert isinstance(found, Report)
    framed = found._repr_html_()
    assert framed.startswith("<iframe srcdoc=")
    assert html.unescape(re.search('srcdoc="(.*?)"', framed, re.DOTALL)[1]) == found.to_html()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_it(found, tmp_path):
    found.to_html(tmp_path / "report.html")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    flags += " --disable-background-networking --disable-component-update --disable-sync"
    command = [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    page = (tmp_path / "report.html").as_uri()
    ran = subprocess.run(
        [*command, "--dump-dom", page], capture_output=True, timeout=120, check=True
    )
    shown = ran.stdout.decode()
    for heading in re.findall("<h2.*?</h2>", found.to_html()):
        assert heading in shown
    # The parser of a browser has moved, closed and dropped nothing.
    assert shown.count("<rect") == found.to_html().count("<rect")
    assert text_of(shown) == text_of(found.to_html())
