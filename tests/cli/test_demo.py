"""`skdpgen demo`: the whole path on a public table that the package holds."""

import gzip

from skdpgen.__main__ import main


def test_the_demo_runs_all_steps_and_prints_each_as_it_is_typed(folder, capsys, monkeypatch):
    decompress = gzip.decompress

    def take_few(packed):
        rows = decompress(packed).splitlines(keepends=True)
        assert len(packed) <= 300_000
        assert len(rows) == 48_843
        # All of them would take half a minute.
        return b"".join([*rows[:1301], *rows[-200:]])

    monkeypatch.setattr("skdpgen.cli.demo._N_TRAINING", 1300)
    monkeypatch.setattr(gzip, "decompress", take_few)
    assert main(["demo", "--output", "a demo"]) == 0
    printed = capsys.readouterr().out
    steps = ["preview", "synthesize", "report", "verify"]
    shown = [line for line in printed.splitlines() if line.startswith("$ ")]
    assert [line.split()[2] for line in shown] == steps
    assert "'a demo/private.csv' --epsilon 1" in printed
    assert {path.name for path in (folder / "a demo").iterdir()} == {
        *("private.csv", "public.csv", "made", "beside.html")
    }
    # What is there already is not overwritten.
    assert main(["demo", "--output", "a demo"]) == 1
