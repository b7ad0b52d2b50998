"""Dask: sums are those of one machine to the bit, whatever becomes of workers and tasks."""

import os
import signal
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from skdpgen import Category, DPSWFlowSampler, Number, Schema
from skdpgen.__main__ import main
from skdpgen.curator.chunks import adapt_table

from .conftest import (
    SECRET,
    check_same,
    check_same_histories,
    make_histories,
    make_table,
    make_visits,
)

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def cut(table, *stops):
    """Return a Dask table of partitions that end at these rows."""
    starts, stops = (0, *stops), (*stops, len(table))
    parts = [dask.delayed(table[a:b]) for a, b in zip(starts, stops, strict=True)]
    return dd.from_delayed(parts, meta=table[:0])


@pytest.mark.parametrize("stops", [[], [0, 1, 2, 300], range(0, 600, 40)])
def test_sums_are_those_of_one_machine(client, generator, stops):
    check_same(generator, make_table(), cut(make_table(), *stops))


@pytest.mark.parametrize("n_parts", [*range(1, 19), 63, 64, 65, 73])
def test_no_partition_is_left_out_however_many_there_are(n_parts):
    """Sums are added up a few at once, and then the sums of these."""
    table = adapt_table(
        cut(pd.DataFrame({"a": [2.0**i for i in range(n_parts)]}), *range(1, n_parts))
    )
    with dask.config.set(scheduler="synchronous"):
        assert table.n_units == n_parts
        assert table.add_up(lambda part: int(part["a"].sum())) == 2**n_parts - 1


@pytest.mark.parametrize("cell", ["?", "Smith", "x9", "2020-01-01"])
def test_one_cell_changes_nothing_for_others_of_its_partition(tmp_path, cell):
    """Releases tell nothing of records that are absent in any case."""
    digests = set()
    for absent in ("", cell):
        paths = []
        for i in range(3):
            rows = [f"{20 + i + k % 40},0{k % 3}" for k in range(50)]
            rows[20] = f"{absent if i == 1 else 40},01"
            paths.append(tmp_path / f"{i}.csv")
            paths[-1].write_text("\n".join(["age,code", *rows]))
        table = dd.from_map(pd.read_csv, paths, meta=pd.read_csv(paths[0])[:0])
        schema = Schema({"age": Number(0, 90), "code": Category(["00", "01", "02"])})
        sampler = DPSWFlowSampler(2.0, 1e-5, schema=schema, n_steps=2, random_state=0)
        digests.add(sampler.fit(table).privacy_.digest)
    assert len(digests) == 1


def test_arrays_are_not_brought_here_unasked(generator):
    rows = pytest.importorskip("dask.array").zeros((10, 2), chunks=5)
    with pytest.raises(ValueError, match=r"X is no table of dask.*from_dask_array"):
        generator.fit(rows)


def test_without_a_cluster(generator):
    with dask.config.set(scheduler=None):
        check_same(generator, make_table(), cut(make_table(), 100))


def test_columns_and_files(client, generator, tmp_path):
    table = make_table()
    dd.from_pandas(table, npartitions=4).to_parquet(tmp_path)
    read = dd.read_parquet(tmp_path)
    columns = ["age", "job", "is_ill"]
    check_same(generator, table[columns], read[columns])


def _die_once(part, marker):
    """Kill the worker that comes here first."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return part
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_changes_nothing(client, generator, tmp_path):
    table, marker = make_table(), str(tmp_path / "was_here")
    dying = cut(table, 200, 400).map_partitions(_die_once, marker, meta=table[:0])
    check_same(generator, table, dying)
    assert Path(marker).exists()


def _fail_once(part, marker):
    if not os.path.exists(marker):
        Path(marker).touch()
        raise OSError
    return part


def test_a_task_that_is_tried_again_counts_once(client, generator, tmp_path):
    table, marker = make_table(), str(tmp_path / "was_here")
    failing = cut(table, 200, 400).map_partitions(_fail_once, marker, meta=table[:0])
    with dask.annotate(retries=2):
        check_same(generator, table, failing.persist(retries=2))
    assert Path(marker).exists()


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("stops", [[], [0, 1, 2, 300], range(0, 600, 40)])
def test_persons_in_several_partitions_are_those_of_one_machine(client, flow, stops, max_rows):
    flow.set_params(max_rows_per_person=max_rows)
    check_same(flow, make_visits(), cut(make_visits(), *stops), persons="patient")
    assert (flow.privacy_.max_rows, flow.n_samples_) == (max_rows, 60)


@pytest.mark.parametrize(
    "stops", [([], []), ([0, 1, 30], [0, 1, 1, 200]), (range(0, 60, 20), range(0, 240, 5))]
)
def test_histories_in_several_partitions_are_those_of_one_machine(client, stops):
    tables = make_histories()
    parts = {name: cut(table, *at) for (name, table), at in zip(tables.items(), stops, strict=True)}
    check_same_histories(tables, "dask", parts)


def test_histories_without_a_cluster():
    tables = make_histories()
    parts = {name: cut(table, 7, 30) for name, table in tables.items()}
    with dask.config.set(scheduler=None):
        check_same_histories(tables, "dask", parts, schemas=None)


def test_persons_in_files_without_a_cluster(flow, tmp_path):
    visits = make_visits()
    dd.from_pandas(visits, npartitions=4).to_parquet(tmp_path)
    with dask.config.set(scheduler=None):
        check_same(flow, visits, dd.read_parquet(tmp_path), persons="patient")


@pytest.mark.parametrize("task", ["dies", "fails"])
def test_a_task_that_is_tried_again_chooses_the_same_rows(client, flow, tmp_path, task):
    visits, marker = make_visits(), str(tmp_path / "was_here")
    stumble = {"dies": _die_once, "fails": _fail_once}[task]
    parts = cut(visits, 200, 400).map_partitions(stumble, marker, meta=visits[:0])
    flow.set_params(max_rows_per_person=3)
    with dask.annotate(retries=2):
        parts = parts.persist(retries=2) if task == "fails" else parts
        check_same(flow, visits, parts, persons="patient")
    assert Path(marker).exists()


def test_nothing_of_persons_is_said(client, flow, capfd):
    """Not by tasks, in logs, and where nobody has an identifier."""
    visits = make_visits(100)
    parts = cut(visits, 7, 8)
    flow.set_params(verbose=1).fit(parts, persons="patient")
    graph = adapt_table(parts).by_person("patient")._plan_sum(len).__dask_graph__()
    with pytest.raises(ValueError, match="no identifier") as info:
        flow.fit(cut(visits.assign(patient=" "), 7), persons="patient")
    with pytest.raises(RuntimeError):
        adapt_table(parts).by_person("patient").add_up(_fail_for)
    said = [client.get_worker_logs(), client.get_scheduler_logs(), capfd.readouterr()]
    said += [list(graph), info.value, flow.privacy_.to_json()]
    assert SECRET not in str(said)


def _fail_for(rows, persons):
    raise ValueError(persons.to_string())


def _fail(part):
    raise ValueError(part.to_string())


def test_names_of_tasks_are_no_digests():
    graphs = [adapt_table(cut(make_table(20), 7))._plan_sum(len).__dask_graph__() for _ in range(2)]
    ours = [{key for key in graph if str(key).startswith("skdpgen-")} for graph in graphs]
    # The four are a function, two partitions, and their sum.
    assert len(ours[0]) == len(ours[1]) == 4
    assert not ours[0] & ours[1]


def test_our_tasks_say_nothing_in_logs(client):
    table = make_table(20).assign(job=SECRET)
    with pytest.raises(RuntimeError):
        adapt_table(cut(table, 7)).add_up(_fail)
    assert SECRET not in str(client.get_worker_logs())
    assert SECRET not in str(client.get_scheduler_logs())


def test_a_fit_prints_and_warns_of_nothing_private(client, capfd):
    table = make_table(40).assign(job=SECRET)
    DPSWFlowSampler(1.0, 1e-6, schema="private", n_steps=2).fit(cut(table, 11))
    assert SECRET not in "".join(capfd.readouterr())


def test_output_of_workers_is_dropped(client):
    table = make_table(5).assign(job=SECRET)
    for failing in (lambda part: _fail(part), len):
        broken = cut(table, 2)
        function = failing
        if failing is len:
            broken = broken.map_partitions(_fail, meta=table[:0])
        with pytest.raises(RuntimeError, match="workers failed") as info:
            adapt_table(broken).add_up(function)
        assert SECRET not in str(info.value)
        assert info.value.__cause__ is None
        assert info.value.__context__ is None


@pytest.mark.parametrize("whose", [["--drop", "patient"], ["--person-column", "patient"]])
def test_the_command_line(client, tmp_path, monkeypatch, whose):
    monkeypatch.chdir(tmp_path)
    table = make_visits(200)
    for i in range(3):
        table[i * 70 : (i + 1) * 70].to_parquet(f"{i}.parquet")
    made = []
    for folder, engine in (("memory", []), ("dask", ["--engine", "dask"])):
        given = ["--epsilon", "9", "--delta", "1e-6", "--method", "flow", "--anyway"]
        given += ["--output", folder, "--seed", "0", "--quiet", *engine, *whose]
        assert main(["synthesize", "*.parquet", *given]) == 0
        made.append(pd.read_parquet(Path(folder, "synthetic.parquet")))
    assert_frame_equal(*(frame.astype(str) for frame in made))


def test_the_command_line_of_histories(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in make_histories().items():
        for i in range(3):
            table[i::3].to_parquet(f"{name}-{i}.parquet")
    made = []
    for folder, engine in (("memory", []), ("dask", ["--engine", "dask"])):
        given = ["--table", "patients=patients-*.parquet", "--table", "visits=visits-*.parquet"]
        given += ["--key", "patient", "--epsilon", "9", "--delta", "1e-6", "--anyway", "--quiet"]
        given += ["--order", "day", "--output", folder, "--seed", "0", *engine]
        assert main(["histories", *given]) == 0
        made.append(pd.read_parquet(Path(folder, "visits.parquet")))
    assert_frame_equal(*(frame.astype(str) for frame in made))
