"""At the end of a run, how many mutations were caught, and which were not."""


def pytest_terminal_summary(terminalreporter):
    caught, missed = (
        [
            report.nodeid.partition("[")[2].removesuffix("]")
            for report in terminalreporter.getreports(outcome)
            if "::test_mutation_is_caught[" in report.nodeid
        ]
        for outcome in ("passed", "failed")
    )
    tried = len(caught) + len(missed)
    if tried:
        share = len(caught) / tried
        terminalreporter.section("mutations")
        terminalreporter.line(f"{len(caught)} of {tried} were caught ({share:.1%}).")
        for name in missed:
            terminalreporter.line(f"Not caught: {name}")
