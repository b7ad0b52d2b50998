"""Twenty hospitals add up their rows with shares of noise, beside one curator who is trusted.

Adult is split at random into hospitals of very different sizes; which rows are whose is public.
Each adds up its own rows, adds its share of the noise, and masks the sum; the server learns from
the sum of the survivors. Several fits, each with other noise, of

- one curator whom all trust with their rows,
- the hospitals, of whom all stay,
- the hospitals, of whom two drop out: as many as may,

and one of which three drop out, which releases nothing. Hospitals run in this process,

    SKDPGEN_DATA=folder python benchmarks/run_hospitals.py [--epsilon 1] [--seeds 3]

or, with `--flower`, as clients of a simulation by Flower, in an environment of its own:

    python -m venv flower
    flower/bin/pip install torch==2.13.0 . cryptography "flwr[simulation]==1.42.0"
    FLWR_TELEMETRY_ENABLED=0 RAY_USAGE_STATS_ENABLED=0 SKDPGEN_DATA=folder \\
        flower/bin/python benchmarks/run_hospitals.py --flower

A client then reads its own rows, from a file of its own, and keeps its keys in the state that
Flower keeps for it; the server sees messages. Printed are ε, the standard deviation of the noise on
a cell of a two-way table, in records; areas under ROC curves and mean total variations, as in
run_tables.py; how much a hospital sends, and the seconds until the sum was there.
"""

import argparse
import os
import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from run_tables import NUMBERS, load, make_schema, measure_utility, variations

from skdpgen import DPSWFlowSampler, Number, Schema
from skdpgen.exceptions import SpentError
from skdpgen.privacy import Aggregator, Client, FederatedFit, MaskedUpdate, Sharing

SHARING = Sharing(20, n_dropouts=2, n_colluding=1)
# Who drops out, in this order.
LOST = (3, 11, 17)


def split(table, n_clients):
    """Return the rows of each hospital: the largest has 100 times those of the smallest."""
    rng = np.random.default_rng(0)
    shares = rng.lognormal(sigma=1.2, size=n_clients)
    whose = rng.choice(n_clients, size=len(table), p=shares / shares.sum())
    return [table[whose == i].reset_index(drop=True) for i in range(n_clients)]


def declare(schema):
    """Return the schema with all knots declared, as hospitals have to agree on them beforehand."""
    kinds = {
        name: Number(kind.lower, kind.upper, decimals=kind.decimals, knots=list(kind.positions))
        for name, kind in schema.items()
        if isinstance(kind, Number)
    }
    return Schema({**schema, **kinds})


class InProcess:
    """Hospitals in this process."""

    def __init__(self, joint, folder, lost):
        self.joint, self.folder, self.lost = joint, folder, lost
        self.n_bytes = self.seconds = 0

    def fit(self, head):
        return self.joint.fit(head, self.add_up)

    def add_up(self):
        start = time.perf_counter()
        hospitals = [Client(self.joint, i) for i in range(SHARING.n_clients)]
        keys = {hospital.position: hospital.public_key for hospital in hospitals}
        aggregator = Aggregator(self.joint, keys)
        for hospital in hospitals:
            if hospital.position not in self.lost:
                rows = pd.read_parquet(self.folder / f"{hospital.position}.parquet")
                update = hospital.make_update(rows, keys)
                self.n_bytes = update.numbers.nbytes
                aggregator.add(update)
        survivors = aggregator.close()
        total = aggregator.unmask(
            {position: hospitals[position].unmask(survivors) for position in survivors}
        )
        self.seconds = time.perf_counter() - start
        return total


class ByFlower(InProcess):
    """Hospitals as clients of Flower, which asks them for a key, a sum and masks."""

    def fit(self, head):
        from flwr.serverapp import ServerApp
        from flwr.simulation import run_simulation

        server, fitted = ServerApp(), []

        @server.main()
        def main(grid, context):
            self.grid = grid
            try:
                fitted.append(self.joint.fit(head, self.add_up))
            except SpentError as error:
                fitted.append(error)

        client = make_client(self.joint, self.folder, self.lost)
        resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
        run_simulation(server, client, SHARING.n_clients, backend_config=resources)
        if isinstance(fitted[0], Exception):
            raise fitted[0]
        return fitted[0]

    def add_up(self):
        start = time.perf_counter()
        # Clients of a simulation come one after the other.
        while len(nodes := list(self.grid.get_node_ids())) < SHARING.n_clients:
            time.sleep(0.1)
        keys, node_of = {}, {}
        for node, reply in self.ask("key", {}, nodes):
            keys[reply["position"]], node_of[reply["position"]] = reply["key"], node
        aggregator = Aggregator(self.joint, keys)
        sent = {str(position): key for position, key in keys.items()}
        for _, reply in self.ask("sum", sent, node_of.values()):
            numbers = np.frombuffer(reply["numbers"], dtype=np.uint64).reshape(reply["shape"])
            aggregator.add(MaskedUpdate(reply["position"], reply["digest"], numbers))
            self.n_bytes = numbers.nbytes
        survivors, revealed = aggregator.close(), {}
        nodes = [node_of[i] for i in survivors]
        for _, reply in self.ask("unmask", {"survivors": survivors}, nodes):
            seeds = {int(name): seed for name, seed in reply.items() if name.isdigit()}
            revealed[reply["position"]] = seeds
        total = aggregator.unmask(revealed)
        self.seconds = time.perf_counter() - start
        return total

    def ask(self, what, content, nodes):
        """Send some nodes the same, and return which said what, of those who do not fail."""
        from flwr.app import ConfigRecord, Message, RecordDict

        messages = [
            Message(RecordDict({"asked": ConfigRecord(content)}), node, f"query.{what}")
            for node in nodes
        ]
        replies = self.grid.send_and_receive(messages)
        return [
            (reply.metadata.src_node_id, dict(reply.content["said"]))
            for reply in replies
            if not reply.has_error()
        ]


def make_client(joint, folder, lost):
    """Return the hospitals' part; what it holds is public."""
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.clientapp import ClientApp

    client = ClientApp()

    def recall(context):
        return pickle.loads(context.state["hospital"]["hospital"])

    def answer(message, context, hospital, **said):
        # Nodes keep their state to themselves.
        context.state["hospital"] = ConfigRecord({"hospital": pickle.dumps(hospital)})
        said = ConfigRecord({"position": hospital.position, **said})
        return Message(RecordDict({"said": said}), reply_to=message)

    @client.query("key")
    def give_key(message, context):
        hospital = Client(joint, int(context.node_config["partition-id"]))
        return answer(message, context, hospital, key=hospital.public_key)

    @client.query("sum")
    def send_sum(message, context):
        hospital = recall(context)
        if hospital.position in lost:
            raise ConnectionError("This hospital has dropped out.")
        keys = {int(name): key for name, key in message.content["asked"].items()}
        rows = pd.read_parquet(folder / f"{hospital.position}.parquet")
        update = hospital.make_update(rows, keys)
        numbers = update.numbers
        said = {"digest": update.digest, "shape": list(numbers.shape)}
        return answer(message, context, hospital, **said, numbers=numbers.tobytes())

    @client.query("unmask")
    def unmask(message, context):
        hospital = recall(context)
        seeds = hospital.unmask(list(message.content["asked"]["survivors"]))
        return answer(message, context, hospital, **{str(i): seed for i, seed in seeds.items()})

    return client


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3, help="how many fits; noise has no seed")
    parser.add_argument("--n-steps", type=int, help="of training, where the default takes long")
    parser.add_argument("--flower", action="store_true", help="hospitals are clients of Flower")
    options = parser.parse_args()
    if options.flower:
        # Before Flower and Ray are imported.
        os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}

    train, test = load("adult")
    schema, numbers = declare(make_schema("adult", train, test)), list(NUMBERS["adult"])
    parts = split(train, SHARING.n_clients)
    sampler = DPSWFlowSampler(
        options.epsilon, options.delta, schema=schema, release="pairs", n_steps=options.n_steps
    )
    joint = FederatedFit(sampler, SHARING, len(train), target="target")
    sizes = sorted(map(len, parts))
    print(f"{len(train):,} rows of {len(parts)} hospitals, of {sizes[0]:,} to {sizes[-1]:,}")
    heads = ("epsilon", "noise", "LR", "trees", "1-way", "2-way", "3-way", "kB", "seconds")
    print(f"{'':<32}" + "".join(f"{head:>9}" for head in heads), flush=True)

    def report(what, generator, n_stay, joined=None):
        # As in the docstring of TablesMechanism, of m columns beside the target, with w = 1.
        sigma = generator.sigma_ * (len(schema) - 1) / np.sqrt(2)
        if joined is not None:
            sigma *= np.sqrt(n_stay / SHARING.n_shares)
        rows = generator.sample(len(train))
        figures = [generator.epsilon_, sigma, *measure_utility(rows, test, numbers)]
        figures += variations(rows, train, schema)
        text = f"{what:<32}" + "".join(f"{figure:>9.4f}" for figure in figures)
        if joined is not None:
            text += f"{joined.n_bytes / 1e3:>9.0f}{joined.seconds:>9.1f}"
        print(text, flush=True)

    real = [*measure_utility(train, test, numbers)]
    print(f"{'real rows':<50}" + "".join(f"{figure:>9.4f}" for figure in real), flush=True)
    join = ByFlower if options.flower else InProcess
    with tempfile.TemporaryDirectory() as folder:
        for i, part in enumerate(parts):
            part.to_parquet(Path(folder, f"{i}.parquet"))
        for seed in range(options.seeds):
            report(f"one trusted curator, {seed}", sampler.fit(train, target="target"), 0)
            for lost in (LOST[:0], LOST[:2]):
                joined = join(joint, Path(folder), lost)
                n_stay = SHARING.n_clients - len(lost)
                report(f"{n_stay} of 20 hospitals, {seed}", joined.fit(train), n_stay, joined)
        try:
            join(joint, Path(folder), LOST).fit(train)
        except SpentError as error:
            print(f"three dropped out: {error}")


if __name__ == "__main__":
    main()
