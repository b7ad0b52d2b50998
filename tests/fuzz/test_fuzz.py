"""Whatever is asked: a sound result, a clear refusal that costs nothing, or what was spent.

The default run takes the same cases each time; with ``-m slow``, there are more, by a seed that a
failure prints.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .declarations import declarations
from .files import files, judge_files
from .fits import askings, fits
from .oracle import judge
from .tables import tables

_KINDS = {
    "fits": (fits, lambda case: judge(case.call()), 70),
    "askings": (askings, lambda case: judge(case.call()), 50),
    "tables": (tables, lambda case: judge(case.call()), 20),
    "declarations": (declarations, lambda case: judge(case.call()), 50),
    "files": (files, judge_files, 10),
}
_PLAIN = {
    "database": None,
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": list(HealthCheck),
}


def _run(kind, **options):
    cases, judge_case, n_cases = _KINDS[kind]
    n_cases = int(n_cases * options.pop("times", 1))

    @settings(max_examples=n_cases, **_PLAIN, **options)
    @given(cases())
    def check(case):
        judge_case(case)

    check()


@pytest.mark.parametrize("kind", _KINDS)
def test_a_few_cases(kind):
    _run(kind, times=0.3, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.parametrize("kind", _KINDS)
def test_many_cases(kind):
    _run(kind, times=10, derandomize=False)
