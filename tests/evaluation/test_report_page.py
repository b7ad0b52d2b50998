"""The page of a report: its first screen, what it must not hold, charts, and accessibility."""

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
from numpy.testing import assert_allclose

from skdpgen import Category, DPSWFlowSampler, Number, PrivacyBudget
from skdpgen.evaluation import report
from skdpgen.evaluation._charts import Shares, draw_bars, draw_histogram, draw_matrix
from skdpgen.tables import Ordinal, Schema

MARKERS = "marker-a", "marker-b", "987654"
N = 800
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def make_private():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "age": rng.randint(18, 90, N),
            "ward": rng.choice(["A", "B"], N).astype(object),
            "level": rng.choice(["low", "high", "middle"], N),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(0, 900, N), "D"),
        }
    )
    frame.loc[0, ["ward", "age"]] = "marker-a", 987654
    frame.loc[1, "ward"] = "marker-b"
    return frame


@pytest.fixture(scope="module")
def fitted():
    """A fit of few steps to rows with markers, and the budget that it was charged to."""
    schema = Schema(
        {"age": Number(0, 99), "ward": Category(), "level": Ordinal(["low", "middle", "high"])}
    )
    budget = PrivacyBudget(20.0, 1e-5, threshold_delta=1e-6)
    sampler = DPSWFlowSampler(5.0, 1e-6, schema=schema, n_steps=5, n_particles=200)
    with warnings.catch_warnings(), budget:
        warnings.simplefilter("ignore")
        private = make_private().drop(columns="seen")
        sampler.fit(private)
    return sampler, budget


@pytest.fixture(scope="module")
def page(fitted):
    sampler, budget = fitted
    return report(
        sampler.sample(300, random_state=0),
        certificate=sampler.privacy_,
        budget=budget,
        schema=sampler.schema_,
        schema_report=sampler.schema_report_,
    ).to_html()


class Tree(HTMLParser):
    """Lists tags with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def of(self, *names):
        return [attrs for tag, attrs in self.tags if tag in names]


def text_of(page):
    shown = page.partition("</style>")[2].partition("<script>")[0]
    return " ".join(re.sub("<[^>]*>", " ", shown).split())


def test_each_reader_has_a_part_and_the_first_has_no_terms_of_privacy(page, fitted):
    parts = re.split(r'<h2 id="(\w+)">', page.partition("<script>")[0])
    assert parts[1::2] == ["short", "protection", "analysts", "detail"]
    short, protection, analysts = (text_of(f"</style>{part}") for part in parts[2:8:2])
    assert not re.search("[εδμρσ]|privacy|noise multiplier", short)
    for text in ("rows are expected in the right cell", "Use it for", "Do not use it for", "± "):
        assert text in short
    for text in ("Membership.", "Attributes.", "Singling out", "Linking", "Inference"):
        assert text in protection
    assert "Fitted by DPSWFlowSampler" in protection
    assert "The budget counts 1 fit to the same rows: ε = " in protection
    assert protection.count("Data protection, date") == 1
    report = fitted[0].schema_report_
    assert "averages and charts of 3 of 3 columns" in analysts
    assert f"±{np.ceil(1.96 * report['noise'].min()):.0f}" in analysts
    assert "age (0 to 99)" in analysts


def test_released_counts_are_behind_the_synthetic_ones(fitted):
    sampler, _ = fitted
    rows = sampler.sample(N, random_state=0)
    given = {"certificate": sampler.privacy_, "schema_report": sampler.schema_report_}
    found = report(rows, **given, release=sampler.release_)
    age, ward, level = found.results["released"]["columns"]
    # 800 rows at ε = 5: sharply counted.
    assert_allclose(age["mean"], make_private()["age"][1:].mean(), atol=2 * age["mean_margin"] + 1)
    assert_allclose(level["released"], 1 / 3, atol=0.1)
    assert_allclose(sum(ward["synthetic"]), 1)
    # Independent columns: tables are products, as far as the noise shows.
    pair = next(p for p in found.results["released"]["pairs"] if p["second"] == "level")
    expected = np.outer(ward["released"], level["released"])
    if pair["first"] == "age":
        expected = np.outer(age["released"], level["released"])
    assert np.abs(np.array(pair["released"]) - expected).max() < 3 * pair["margin"] + 0.02
    # Rows of another table are found to differ by more than the noise.
    wrong = report(rows.assign(level="low"), **given, release=sampler.release_)
    gaps = [r.results["released"]["pairs"][0]["beyond_noise"] for r in (found, wrong)]
    assert gaps[1] > gaps[0] + 0.3
    assert "as released" in found.to_html()
    # 100 persons have as many rows as were counted.
    of_persons = replace(sampler.privacy_, max_rows=8, n_records=100)
    judged = report(rows, **given | {"certificate": of_persons}, release=sampler.release_)
    errors = [r.results["counts"]["columns"][0]["error"] for r in (found, judged)]
    assert_allclose(*errors, rtol=0.1)
    assert "Pairs that were learned worst" in wrong.to_html()


def test_without_a_budget_or_released_counts_it_says_so(fitted):
    sampler = fitted[0]
    bare = text_of(report(sampler.sample(300), certificate=sampler.privacy_).to_html())
    assert "Earlier releases from the same rows: unknown" in bare
    assert "Unknown from the releases" in bare
    assert "How far the counts" not in bare


def test_the_rarest_level_is_that_of_the_synthetic_rows(fitted):
    sampler, _ = fitted
    rows = sampler.sample(1000).assign(level=["low"] * 990 + ["high"] * 10)
    given = {"certificate": sampler.privacy_, "schema_report": sampler.schema_report_}
    found = report(rows, **given, schema=sampler.schema_).results["counts"]["columns"]
    (level,) = (table for table in found if table["column"] == "level")
    assert level["reasons"] == ["only about 8 rows with high"]


def test_the_json_of_a_fitted_schema_gives_the_same_verdicts(fitted):
    sampler, _ = fitted
    frame = sampler.schema_report_
    records = json.loads(frame.rename_axis("column").reset_index().to_json(orient="records"))
    rows = sampler.sample(50)
    first, second = (
        report(rows, certificate=sampler.privacy_, schema_report=given).results
        for given in (frame, records)
    )
    for name in ("summary", "limits", "columns"):
        assert first[name] == second[name]
    # One of an earlier version knows no pairs.
    earlier = frame.drop(columns="noise_pair")
    results = report(rows, certificate=sampler.privacy_, schema_report=earlier).results
    assert results["counts"]["pairs"] == []
    with pytest.raises(ValueError, match="schema_report has no kind, n_levels, noise"):
        report(rows, schema_report=rows)


def test_no_private_value_is_on_the_page(page, fitted):
    private = make_private()
    assert set(MARKERS[:2]) <= set(private["ward"])
    for marker in MARKERS:
        assert marker not in page
    # The same page with a marker that was not kept out would show it.
    shown = fitted[0].sample(300).assign(ward=MARKERS[0])
    assert MARKERS[0] in report(shown).to_html()


def test_numbers_of_a_certificate_are_rounded(page):
    assert "GaussianDpEvent(noise_multiplier=" in page
    assert not re.search(r"\d\.\d{5,}", text_of(page))


# --- accessibility -------------------------------------------------------------------------------


def test_landmarks_headings_and_labels(page):
    tree = Tree(page)
    assert tree.of("html") == [{"lang": "en"}]
    assert [len(tree.of(name)) for name in ("header", "main", "h1")] == [1, 1, 1]
    levels = [int(tag[1]) for tag, _ in tree.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    ids = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    labelled = [attrs["aria-labelledby"] for _, attrs in tree.tags if "aria-labelledby" in attrs]
    assert set(labelled) <= set(ids)
    assert len(labelled) == 7
    assert all(attrs["scope"] in ("row", "col") for attrs in tree.of("th"))
    assert all(attrs["role"] == "img" for attrs in tree.of("svg"))
    labels = " ".join(attrs["aria-label"] for attrs in tree.of("svg"))
    assert re.search(r"Shares of the values of ward\. .*A: \d+\.\d% of synthetic rows", labels)
    assert {"@page { size: A4;", "@media print"} <= set(
        re.findall("@page { size: A4;|@media print", page)
    )
    # Elements that scroll take the focus and have a name.
    assert all(attrs["aria-label"] for _, attrs in tree.tags if "tabindex" in attrs)


def test_verdicts_have_words_and_signs_and_not_colours_alone(page):
    shown = re.findall('<span class="light (.*?)">(.*?)</span>', page)
    assert {name for name, _ in shown} >= {"good", "rough", "noise"}
    signs = {name: text.split()[0] for name, text in shown}
    assert len(set(signs.values())) == len(signs)
    assert all(text.split()[1] == name for name, text in shown)


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


def test_text_has_enough_contrast_in_both_schemes(page):
    """WCAG 2.2, AA: at least 4.5."""
    schemes = re.findall(r":root {(.*?)}", page.partition("</style>")[0], re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        for name in ("ink", "faint", "link", "good", "rough", "noise", "alarm"):
            papers = ["alarm-paper"] if name == "alarm" else ["paper"]
            light, dark = sorted(luminance(colors[c]) for c in [name, *papers])[::-1]
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, colors)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_sorts_and_filters_and_clips_nothing(page, tmp_path, width):
    probe = """<script>
    const table = document.querySelectorAll("table.sorted")[0], rows = [...table.tBodies[0].rows];
    const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent.trim());
    const before = names();
    table.querySelector("th button").click();
    const wide = [...document.querySelectorAll("body *")].filter((part) =>
      !part.closest(".wide, svg") && part.getBoundingClientRect().right > innerWidth + 1);
    const after = names(), input = document.querySelector(".filter input");
    input.value = "LEVEL";
    input.dispatchEvent(new Event("input"));
    const left = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    document.title = JSON.stringify({before, after, wide: wide.length, left: left.length,
      sort: table.querySelector("th").ariaSort, loaded: performance.getEntriesByType("resource")});
    </script></body>"""
    more = "".join(f"<tr><th scope='row'>row {i}</th></tr>" for i in range(10))
    longer = page.replace("</tbody>", f"{more}</tbody>").replace("</body>", probe)
    (tmp_path / "page.html").write_text(longer, encoding="utf-8")
    flags = f"--headless --no-sandbox --disable-gpu --window-size={width},900 --dump-dom"
    command = [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    address = (tmp_path / "page.html").as_uri()
    ran = subprocess.run([*command, address], capture_output=True, timeout=120, check=True)
    found = json.loads(html.unescape(re.search("<title>(.*?)</title>", ran.stdout.decode())[1]))
    assert found["after"] == sorted(found["before"], reverse=True)
    assert (found["sort"], found["wide"], found["loaded"]) == ("descending", 0, [])
    assert found["left"] == 1


# --- charts --------------------------------------------------------------------------------------


def rects(svg):
    found = re.findall(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)" fill="(.*?)"', svg)
    return [(*map(float, numbers), fill) for *numbers, fill in found]


def test_areas_of_a_histogram_are_shares():
    bins, shares = [(0, 1), (1, 2), (2, 10)], [0.2, 0.5, 0.3]
    svg = draw_histogram(Shares("x", ["a", "b", "c"], shares), bins)
    # Nothing is behind, which would be seen through.
    assert set(re.findall('opacity="(.*?)"', svg)) == {"1"}
    drawn = rects(svg)
    areas = np.array([width * height for _, _, width, height, _ in drawn])
    assert_allclose(areas / areas.sum(), shares, rtol=1e-2)


def test_point_masses_are_lines_with_their_share():
    shares = Shares("x", ["0", "over 0"], [0.9, 0.1], [0.8, 0.2], 0.01)
    svg = draw_histogram(shares, [(0, 0), (0, 10)])
    lines = [drawn for drawn in rects(svg) if drawn[2] == 3]
    assert len(lines) == 2
    assert_allclose(lines[1][3] / lines[0][3], 0.9 / 0.8, rtol=1e-2)
    assert ">90%</text>" in svg
    # The bin is as much lower than the line as it has fewer rows.
    assert max(drawn[3] for drawn in rects(svg) if drawn[2] > 3) < 0.3 * lines[1][3]


def test_error_bars_are_around_released_shares():
    shares, released = [0.5, 0.3, 0.0], [0.4, 0.3, 0.0]
    svg = draw_bars(Shares("x", ["a", "b", "c"], shares, released, margin=0.1))
    lines = [list(map(float, ends)) for ends in re.findall('x1="(.*?)" .*?x2="(.*?)"', svg)]
    scale = rects(svg)[0][2] / released[0]
    low, high = np.clip([[share - 0.1, share + 0.1] for share in released], 0, None).T
    assert_allclose(np.transpose(lines), [110 + low * scale, 110 + high * scale], rtol=1e-2)
    assert np.max(lines) < 280
    assert "as released" in svg


@pytest.mark.parametrize(
    ("first", "last", "ticks"),
    [
        ("2020-01-01", "2023-06-01", ["2020", "2021", "2022", "2023"]),
        ("1932-05-01", "2002-01-01", ["1940", "1960", "1980", "2000"]),
        ("2020-01-01", "2020-03-20", ["2020-01", "2020-02", "2020-03"]),
        ("2020-01-01", "2020-01-03", ["2020-01-01", "2020-01-02", "2020-01-03"]),
        ("0001-01-01", "2200-01-01", None),
    ],
)
def test_dates_have_a_time_axis(first, last, ticks):
    low, high = (float(np.datetime64(date, "s").astype(float)) for date in (first, last))
    svg = draw_histogram(Shares("x", ["all"], [1.0]), [(low, high)], is_date=True)
    found = re.findall(r">(\d{4}(?:-\d\d)*)</text>", svg)
    assert ticks is None or found == ticks


def test_heat_maps_have_numbers():
    svg = draw_matrix(["a", "b"], {(0, 1): 0.25, (1, 0): 1.0}, "Associations")
    assert ">.25</text>" in svg
    assert ">1.00</text>" in svg
    assert "synthetic" in svg
    many = draw_matrix([str(i) for i in range(100)], {(0, 1): 0.5}, "x")
    assert ">.50</text>" not in many
