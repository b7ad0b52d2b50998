"""Scores of synthetic tables by other libraries, for run_judges.py, which calls it.

    python judges.py nist|sdmetrics|anonymeter REAL SYNTHETIC [--test ROWS] [--metadata JSON]

It runs in the environment of the judge, and prints a JSON object of scores.
"""

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd


def judge_nist(real, synthetic, options):
    """SDNist: k-marginal of numbers in 20 bins of ranks, and as they are; pMSE; inconsistencies."""
    import sdnist.report  # first, as its modules import each other
    from sdnist.metrics.inconsistency import Inconsistencies
    from sdnist.metrics.kmarginal import KMarginal
    from sdnist.metrics.propensity import PropensityMSE

    binning = sdnist.report.dataset.binning

    numbers = [c for c in ("AGEP", "POVPIP", "PINCP", "PWGTP", "WGTP") if c in real]
    if "DENSITY" in real:
        words = {"DENSITY": {"values": {"max": real["DENSITY"].max()}}}
        real, synthetic = (binning.bin_density(table, words) for table in (real, synthetic))
    ranks = binning.percentile_rank_target(real, numbers)
    ranks = binning.add_bin_for_NA(ranks, real, numbers)
    ranked = binning.percentile_rank_synthetic(synthetic, real, ranks, numbers)
    ranked = binning.add_bin_for_NA(ranked, synthetic, numbers)
    # As its report does: what does not apply is -1, and PUMA has the number of its level.
    codes = [table.replace("N", -1) for table in (real, synthetic)]
    for table in codes:
        if "PUMA" in table:
            table["PUMA"] = pd.Categorical(table["PUMA"], sorted(real["PUMA"].unique())).codes
    codes = [table.astype(float) for table in codes]
    typed = synthetic.astype({c: int for c in ("HOUSING_TYPE", "OWN_RENT") if c in synthetic})
    with tempfile.TemporaryDirectory() as folder:
        found = Inconsistencies(typed, Path(folder))
        found.compute()
        pmse = PropensityMSE(*codes, Path(folder)).compute_score()
    broken = {
        index
        for group in ("age", "work", "housing")
        for kind in found.report_data[group]["inconsistencies"]
        for index in kind["inconsistent_data_indexes"]
    }
    scores = {"k-marginal": KMarginal(ranks, ranked).compute_score()}
    if numbers == ["AGEP"]:
        scores["k-marginal, single years"] = KMarginal(real, synthetic).compute_score()
    return scores | {"pMSE": pmse, "inconsistent": len(broken)}


def judge_sdmetrics(real, synthetic, options):
    """SDMetrics: overall scores of both reports, and the parts of the quality report."""
    from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

    metadata = json.loads(Path(options.metadata).read_text())
    # Reports take the metadata of one table.
    metadata = next(iter(metadata["tables"].values())) if "tables" in metadata else metadata
    scores = {}
    for name, report in (("quality", QualityReport()), ("diagnostic", DiagnosticReport())):
        report.generate(real, synthetic, metadata, verbose=False)
        scores[name] = report.get_score()
        scores |= dict(report.get_properties().itertuples(index=False))
    return scores


def judge_anonymeter(real, synthetic, options):
    """Anonymeter: three risks, each with its 95 % interval; of inference, the worst column's."""
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    control, columns = pd.read_csv(options.test, keep_default_na=False), list(real)
    np.random.seed(0)  # noqa: NPY002 (the generator that attacks draw from)
    tables = {"ori": real, "syn": synthetic, "control": control}
    half = columns[: len(columns) // 2], columns[len(columns) // 2 :]
    attacks = {
        "singling out, one column": (SinglingOutEvaluator(**tables, n_attacks=500), "univariate"),
        "singling out, four columns": (
            SinglingOutEvaluator(**tables, n_attacks=500, n_cols=4),
            "multivariate",
        ),
        "linkability": (
            LinkabilityEvaluator(**tables, n_attacks=2000, n_neighbors=10, aux_cols=half),
            None,
        ),
    }
    scores = {}
    for name, (attack, mode) in attacks.items():
        attack.evaluate(**({} if mode is None else {"mode": mode}))
        scores |= write_risk(name, attack.risk(confidence_level=0.95))
    risks = {}
    for secret in columns:
        known = [column for column in columns if column != secret]
        attack = InferenceEvaluator(**tables, aux_cols=known, secret=secret, n_attacks=1000)
        attack.evaluate()
        risks[secret] = attack.risk(confidence_level=0.95)
    worst = max(risks, key=lambda secret: risks[secret].value)
    return scores | write_risk(f"inference, of {worst}", risks[worst])


def write_risk(name, risk):
    return {name: risk.value, f"{name}, upper": risk.ci[1]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("judge", choices=["nist", "sdmetrics", "anonymeter"])
    parser.add_argument("real")
    parser.add_argument("synthetic")
    parser.add_argument("--test")
    parser.add_argument("--metadata")
    options = parser.parse_args()
    tables = [
        pd.read_csv(path, keep_default_na=False) for path in (options.real, options.synthetic)
    ]
    scores = globals()[f"judge_{options.judge}"](*tables, options)
    json.dump({name: float(score) for name, score in scores.items()}, sys.stdout)
