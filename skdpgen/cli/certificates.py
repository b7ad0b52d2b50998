# SPDX-License-Identifier: BSD-3-Clause
"""Commands on budgets and certificates. They do not import torch, so they start fast."""

import json
from argparse import Namespace
from pathlib import Path

from ..accounting.budget import PrivacyBudget
from ..accounting.certificate import summarize
from ..accounting.rounding import show
from ..accounting.verification import read_certificate
from ..accounting.verification import sign as sign_text
from ..accounting.verification import verify as verify_text
from ..checks import read_file
from .outputs import check_outputs, collected_warnings, print_message

# With the four lines of the verdict, a certificate fits a terminal of 25 lines.
_N_LINES = 21


def budget(options: Namespace) -> int:
    """Create, close or show the budget in a file."""
    if options.action == "init" and Path(options.path).exists():
        raise ValueError(f"{options.path} exists already; name a new file for the budget.")
    with collected_warnings() as caught:
        if options.action == "init":
            threshold_delta = options.threshold_delta
            opened = PrivacyBudget(
                options.epsilon,
                options.delta,
                relation=options.relation,
                threshold_delta=options.delta / 10 if threshold_delta is None else threshold_delta,
                path=options.path,
            )
        else:
            opened = PrivacyBudget.from_file(options.path)
    for message in caught:
        print_message(message)
    if options.action == "close":
        opened.close()
    state = "closed" if opened.is_closed else "open"
    print(
        f"ε = {show(opened.spent)} of {show(opened.epsilon)} is spent at δ = {show(opened.delta)} "
        f"({opened.relation}); the budget is {state}."
    )
    return 0


def verify(options: Namespace) -> int:
    """Recompute the ε of a certificate, check its signature, and print the result."""
    text = read_file(options.certificate)
    with collected_warnings() as caught:
        key = options.public_key
        epsilon = verify_text(text, None if key is None else Path(key).read_bytes())
    certificate = read_certificate(text)
    if options.as_json:
        found = {
            "exit_code": 0,
            "epsilon": epsilon,
            "is_signed": key is not None,
            "warnings": [str(message) for message in caught],
            "certificate": json.loads(certificate.to_json()),
        }
        # Nothing else goes to standard output: programs read it.
        print(json.dumps(found, ensure_ascii=False))
        return 0
    print(certificate if options.full else summarize(certificate, _N_LINES))
    print(
        "This verifies the arithmetic. It cannot verify that the fit took place as stated,\n"
        "nor that the assumptions hold."
        + ("" if options.full else " --full prints all assumptions and events.")
    )
    if key is not None:
        print(f"It is signed by the key of {key}, and unchanged since.")
    print(f"The events cost ε = {show(epsilon)}, as stated.")
    for message in caught:
        print_message(message)
    return 0


def sign(options: Namespace) -> int:
    """Sign a certificate."""
    check_outputs({"--output": options.output}, {"--key": options.key})
    text = Path(options.certificate).read_text(encoding="utf-8")
    # Sign before the output is opened: an error must leave no empty file.
    signed = sign_text(text, Path(options.key).read_bytes())
    Path(options.output).write_text(signed + "\n", encoding="utf-8")
    return 0
