# SPDX-License-Identifier: BSD-3-Clause
"""First screen of a report: protection, uses, limits and signatures."""

import math
from html import escape

from ..accounting.rounding import show
from ..quality import GOOD, GOOD_NOISE, LEAST_SIGNAL, NOISE, ROUGH
from ._markup import make_list, show_verdict
from ._verdicts import CONSTANTS

RULE = (
    f"<b>Rule.</b> {show_verdict(GOOD)}: the noise on a count (one standard deviation) is at most "
    f"{GOOD_NOISE:.0%} of the average count of its table. {show_verdict(NOISE)}: above "
    f"{LEAST_SIGNAL**-0.5:.0%}. {show_verdict(ROUGH)}: between, or much is merged or cut. Errors "
    "of training come on top."
)


def write_front(results: dict) -> str:
    """Return the header of the page, and the four cards of its first screen."""
    made = f"A report by skdpgen {results['version']}, {results['date']}"
    compared = "no reference rows"
    if results["n_reference"] is not None:
        which = "private rows" if results["reads_private_rows"] else "public reference rows"
        compared = f"compared with {results['n_reference']:,} {which}"
    cards = (
        _make_card("Protection", "protection", _tell_protection(results)),
        _make_card("Good for", "uses", _tell_uses(results)),
        _make_card("Not good for", "limits", make_list(results["limits"])),
        _make_card("Who signs", "signatures", _tell_signers(results)),
    )
    return (
        f"<header>{''.join(_list_alarms(results))}<h1>{escape(results['title'])}</h1>"
        f'<p class="faint">{made}: {results["n_rows"]:,} synthetic rows, {compared}.</p></header>\n'
        f'<main>\n<div class="cards">\n{"".join(cards)}</div>'
    )


def _make_card(title: str, name: str, content: str) -> str:
    return (
        f'<section class="card" aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{content}'
        "</section>\n"
    )


def _list_alarms(results: dict) -> list[str]:
    """Return the warnings at the top of the page."""
    certificate, audit, alarms = results["certificate"], results["audit"] or {}, []
    if results["reads_private_rows"]:
        alarms.append(
            "This report was computed from PRIVATE rows. No ε covers it: it is as secret as the "
            "rows themselves. Do not publish it."
        )
    # Both may hold: rows without a certificate can be compared with private ones.
    if certificate is None:
        alarms.append("No certificate was given: nothing here shows that these rows are private.")
    elif certificate["reproducible"]:
        alarms.append(
            "The noise of this fit follows from a seed. Whoever knows or guesses it can remove "
            "the noise: this is an experiment, not a private release."
        )
    # JSON has no infinity: the certificate writes it as a text.
    if certificate is not None and certificate["epsilon"] == "inf":
        alarms.append("ε is infinite: no noise was added, and there is no privacy.")
    if audit.get("verdict") == "violation found":
        alarms.append("An audit found that more is revealed than the certificate claims.")
    if audit.get("is_of_certificate") is False:
        alarms.append(
            "The audit is of other releases than those of the certificate, or of the same with "
            "other noise: it is no evidence for these rows."
        )
    return [f'<p class="alarm" role="alert">{escape(alarm)}</p>' for alarm in alarms]


def _tell_protection(results: dict) -> str:
    certificate, protection = results["certificate"], results["protection"]
    if certificate is None:
        return "<p>Unknown: there is no certificate.</p>"
    epsilon = float(certificate["epsilon"])
    max_rows = certificate.get("max_rows")
    unit = "record" if max_rows is None else "person"
    tiles = {"ε": show(epsilon), "δ": show(certificate["delta"])}
    tiles |= {"each is protected": unit, "protection": protection["verdict"]}
    shown = "".join(f"<div><dt>{a}</dt><dd>{escape(b)}</dd></div>" for a, b in tiles.items())
    # Rounded up: the page must not promise more than the certificate.
    right = math.ceil(1000 * protection["best_attack"]) / 10
    whose = "one record" if max_rows is None else f"a person (with up to {max_rows:,} rows)"
    guess = f"whether {whose} was among the private rows"
    if certificate["relation"] == "replace_one":
        guess = f"which of two {unit}s was among the private rows"
    attack = (
        f"Somebody who knows all other {unit}s, and guesses {guess}, is right in <b>at most "
        f"{right:g} of 100</b> cases; guessing blindly, in 50."
    )
    costs = {name: float(certificate.get(key) or 0) for name, key in (("μ", "mu"), ("ρ", "rho"))}
    readings = [f"{name} = {show(cost)}" for name, cost in costs.items() if 0 < cost < math.inf]
    covered = (
        "It covers these rows and all that is computed from them, not other results or releases "
        "from the private rows."
    )
    return (
        f'<dl class="tiles">{shown}</dl><p>{attack}</p><p>{covered}</p>'
        f'<p class="faint">Strong: ε up to '
        f"{CONSTANTS.strong:g}. Reasonable: up to {CONSTANTS.reasonable:g}. Weak: above."
        f"{' The same as ' * bool(readings)}{', '.join(readings)}{'.' * bool(readings)}</p>"
    )


def _tell_uses(results: dict) -> str:
    texts = list(results["uses"])
    if results["counts"] is None:
        texts.append(
            "Unknown from the releases: this needs the certificate and the report on columns "
            "(schema_report) of a fit that releases counts."
        )
    elif not texts:
        texts.append("Nothing that was counted: all tables are mostly noise.")
    if results["n_reference"] is not None:
        means = [part for part in (results["marginals"], results["pairs"]) if "halves" in part]
        measured = " and ".join(f"{part['mean_total_variation']:.1%}" for part in means)
        halves = " and ".join(f"{part['halves']:.1%}" for part in means)
        what = "a column and a pair of columns differ" if len(means) > 1 else "a column differs"
        texts.append(
            f"Measured: {what} from the reference in {measured} of the rows "
            f"on average; two halves of the reference differ in {halves}."
        )
    rule = f'<p class="faint">{RULE}</p>' if results["counts"] is not None else ""
    return make_list(texts) + rule


def _tell_signers(results: dict) -> str:
    certificate, budget = results["certificate"] or {}, results["budget"]
    made = certificate.get("made_by")
    texts = []
    if made:
        n_units = certificate.get("n_persons", certificate.get("n_records"))
        # Certificates that were composed of several data sets state no number of records.
        of = "" if n_units is None else f" to {n_units:,} private "
        of += "" if n_units is None else "persons" if "n_persons" in certificate else "records"
        texts.append(
            f"Fitted by {made['estimator']} of skdpgen {made['version']} on {made['date']}{of}."
        )
    if certificate.get("digest"):
        texts.append(f"Digest of the releases: {certificate['digest'][:16]}…")
    if budget is None:
        texts.append(
            "Earlier releases from the same rows: unknown, as no budget was given. Their ε add up."
        )
    else:
        texts.append(
            f"The budget counts {budget['n_fits']} fit{'s' * (budget['n_fits'] != 1)} to the same "
            f"rows: ε = {show(budget['spent'])} of {show(budget['epsilon'])} is spent at δ = "
            f"{show(budget['delta'])}{'; it is closed' * budget['is_closed']}."
        )
    names = "Private data, owner", "Run by, date", "Data protection, date", "Released to, date"
    lines = "".join(f"<span>{name}</span><span></span>" for name in names)
    return f'{make_list(texts)}<div class="sign">{lines}</div>'
