"""At the end of a run, how many mutations of each kind were caught, and which were not."""

import pytest

_COLLECTED = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    config.stash[_COLLECTED] = {item.nodeid for item in items}


@pytest.fixture
def collected(pytestconfig):
    """Names of all tests that this run collected, with and without their parameters."""
    names = pytestconfig.stash[_COLLECTED]
    return names | {name.partition("[")[0] for name in names}


def pytest_terminal_summary(terminalreporter):
    outcomes = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            test, _, name = report.nodeid.removesuffix("]").partition("[")
            if test.endswith("::test_mutation_is_caught"):
                outcomes[name] = outcome == "passed"
    if not outcomes:
        return
    terminalreporter.section("mutations")
    for kind in dict.fromkeys(name.partition(": ")[0] for name in outcomes):
        of_kind = [caught for name, caught in outcomes.items() if name.startswith(f"{kind}: ")]
        caught, tried = sum(of_kind), len(of_kind)
        terminalreporter.line(f"{kind:<10}{caught} of {tried} were caught ({caught / tried:.1%}).")
    for name, caught in outcomes.items():
        if not caught:
            terminalreporter.line(f"Not caught: {name}")
