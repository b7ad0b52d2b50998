"""Try all mutations, and print how many the tests catch: `python -m tests.mutations`."""

import argparse
import sys
from pathlib import Path

import pytest


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--report", action="store_true", help="the table alone, not each test")
    parser.add_argument("--only", metavar="WORDS", help="of which the name holds these words")
    options = parser.parse_args()
    chosen = ["-k", f"test_mutation_is_caught and ({options.only})"] if options.only else []
    quiet = ["-q", "-q", "--no-header", "--tb=no"] if options.report else ["-v"]
    return pytest.main([str(Path(__file__).parent), "-m", "", *quiet, *chosen])


if __name__ == "__main__":
    sys.exit(main())
