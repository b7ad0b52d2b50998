"""Spark: sums are those of one machine to the bit; a task that runs twice counts once."""

import os
import sys

import pandas as pd
import pytest

from skdpgen import Category, DPSWFlowSampler, Number, Schema
from skdpgen.curator.chunks import adapt_table

from .conftest import (
    SECRET,
    check_same,
    check_same_histories,
    make_histories,
    make_table,
    make_visits,
)

pyspark = pytest.importorskip("pyspark")

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Spark Connect, whose sessions have no RDDs; its server is started here."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.remote("local[2,4]")  # a task may be tried four times
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "5")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.parametrize("n_parts", [1, 7])
def test_sums_are_those_of_one_machine(session, generator, n_parts):
    table = make_table()
    check_same(generator, table, session.createDataFrame(table).repartition(n_parts))


def test_partitions_of_no_row_and_of_one(session, generator):
    table = make_table(3)
    check_same(generator, table, session.createDataFrame(table).repartition(8))


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("n_parts", [1, 7])
def test_persons_in_several_partitions_are_those_of_one_machine(session, flow, n_parts, max_rows):
    flow.set_params(max_rows_per_person=max_rows)
    visits = make_visits()
    parts = session.createDataFrame(visits).repartition(n_parts)
    check_same(flow, visits, parts, persons="patient")
    assert (flow.privacy_.max_rows, flow.n_samples_) == (max_rows, 60)


def test_persons_in_partitions_of_no_row_and_of_one(session, flow):
    visits = make_visits(20)
    parts = session.createDataFrame(visits).repartition(12)
    check_same(flow, visits, parts, persons="patient")


@pytest.mark.parametrize("n_parts", [(1, 1), (3, 12)])
def test_histories_in_several_partitions_are_those_of_one_machine(session, n_parts):
    tables = make_histories()
    parts = {
        name: session.createDataFrame(table).repartition(n)
        for (name, table), n in zip(tables.items(), n_parts, strict=True)
    }
    check_same_histories(tables, "spark", parts)


def test_large_numbers_are_different_persons_beside_missing_ones(session, flow):
    """Doubles, as which columns with missing values come to Python, would take them for one."""
    numbers = [2**60 + i for i in range(50)] * 2 + [None] * 20
    visits = make_table(120).assign(patient=pd.Series(numbers, dtype=object))
    parts = session.createDataFrame(
        visits, "age long, job string, income double, is_ill boolean, patient long"
    )
    assert adapt_table(parts.repartition(3)).by_person("patient").n_units == 50


def test_one_cell_changes_nothing_for_others_of_its_partition(session):
    """Beside a missing cell, whole numbers come as floats: they are the same codes."""
    digests = set()
    for absent in (None, 99):
        rows = [(20 + k % 40, absent if k == 40 else k % 3) for k in range(90)]
        frame = session.createDataFrame(rows, "age long, code long").repartition(2)
        schema = Schema({"age": Number(0, 90), "code": Category(["0", "1", "2"])})
        sampler = DPSWFlowSampler(2.0, 1e-5, schema=schema, n_steps=2, random_state=0)
        digests.add(sampler.fit(frame).privacy_.digest)
    assert len(digests) == 1


def test_a_task_that_is_tried_again_chooses_the_same_rows(session, flow, tmp_path):
    marker, visits = str(tmp_path / "was_here"), make_visits(100)

    def die_once(parts):
        for part in parts:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield part
            else:
                os._exit(1)

    parts = session.createDataFrame(visits).repartition(4)
    flow.set_params(max_rows_per_person=3)
    check_same(flow, visits, parts.mapInPandas(die_once, parts.schema), persons="patient")
    assert os.path.exists(marker)


def test_a_task_that_is_tried_again_counts_once(session, tmp_path):
    marker = str(tmp_path / "was_here")

    def count_or_die(part):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return len(part)
        os._exit(1)

    table = session.createDataFrame(make_table(100)).repartition(4)
    assert adapt_table(table).add_up(count_or_die) == 100
    assert os.path.exists(marker)


def test_output_of_workers_is_dropped(session):
    def fail(part):
        raise ValueError(part.to_string())

    table = session.createDataFrame(make_table(5).assign(job=SECRET))
    with pytest.raises(RuntimeError, match="workers failed") as info:
        adapt_table(table).add_up(fail)
    assert SECRET not in str(info.value)
    assert info.value.__cause__ is None
    assert info.value.__context__ is None


def test_rows_are_brought_here_where_they_have_to_be(session):
    table = make_table(30)
    brought = list(adapt_table(session.createDataFrame(table).repartition(3))())
    assert sum(map(len, brought)) == 30
    assert sorted(age for part in brought for age in part["age"]) == sorted(table["age"])
