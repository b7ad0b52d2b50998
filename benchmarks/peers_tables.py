"""Synthetic tables by other libraries, for run_tables.py to call: each in its own environment.

    mst, aim                    smartnoise-synth 1.0.8
    dpmm-mst, dpmm-aim,         dpmm 0.1.9, for which Python must be below 3.12
    dpmm-aim3, dpmm-privbayes
    opendp-mst, opendp-aim      opendp[mbi] 0.16.0
    copula, ctgan               sdv 2.0.0; they are not private: epsilon has no effect
    privpgd                     the repository jaabmar/private-pgd, whose folder src is --peer-path,
                                with autodp, disjoint-set, networkx, numpy 1.26, pandas 2.1, scipy
                                1.11 and torch
    tabpe                       the repository microsoft/DPSDA, which is --peer-path, with
                                generalimport, omegaconf 2.3, pandas, requests, scikit-learn, torch
    margnet                     the repository KaiChen9909/margnet, which is --peer-path, with
                                networkx, pandas, tomli, torch and tqdm
    napsu                       twinify 2.0.0, with jax 0.4.23, numpyro 0.11, scipy 1.12 and
                                matplotlib below 3.9

Rows are codes from 0. How many levels each column has, which columns are numbers, and how many rows
there are, is public, so that nothing is spent on preprocessing. The presence of a row is protected.
Much of the noise comes from the system and has no seed: the seed is that of the choices of tables,
and of sampling.

MST is fitted as it comes. The others are changed, without which fits take hours on one core:

- AIM divides its budget by 3 rounds per column rather than 16, and its model has at most 4 MB, by
  the size of the junction tree, as in the paper. smartnoise-synth adds up the measured tables only,
  which bounds neither time nor memory. dpmm-aim measures tables of up to two columns, dpmm-aim3 of
  up to three. dpmm-privbayes has two parents a column, and models of at most 4 MB. opendp-aim has
  the rounds and the memory of aim; its tables have up to three columns.
- Private-PGD has as many particles as there are rows, but at most 10,000, rather than 100,000; it
  projects noisy tables in 200 steps of 50 slices rather than 1750 of 200; and it descends for as
  many epochs, at most 1000, as visit 20,000 tables altogether.
- NAPSU-MQ measures all tables of two columns. Its model is evaluated on a list of all cells, rather
  than by elimination of columns, which gives the same numbers, and compiles in seconds rather than
  minutes. One Markov chain is drawn rather than four, with 800 steps of warm-up and 2,000 samples.
  The optimizer of scipy finds its start: that of jax may fail. One record is replaced by another.
- MargNet has its parameters for Adult at ε = 1 and runs on the CPU; how many rows there are is
  estimated from its noisy tables, as it comes.
- Tab-PE makes 1,000 rows in 30 rounds, as in its example for Adult, which are then repeated at
  random. It takes the shares of classes as public.

The models of smartnoise-synth draw independent rows. By default mbi 1.1.0 rounds counts, without
shuffling within the groups that it rounds: columns that are independent given a third then come out
as functions of each other.

    python benchmarks/peers_tables.py mst rows.csv synthetic.csv --sizes 16 9 2 [--epsilon 1]
"""

import argparse
import itertools
import sys
import tempfile
from functools import partial, partialmethod
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

MAX_MEGABYTES = 4
N_ATTEMPTS = 8


def by_smartnoise(method, rows, options):
    import mbi.junction_tree
    import snsynth.aim.aim
    from mbi import MarkovRandomField
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    snsynth.aim.aim.hypothetical_model_size = mbi.junction_tree.hypothetical_model_size
    MarkovRandomField.synthetic_data = partialmethod(
        MarkovRandomField.synthetic_data, method="sample"
    )
    columns = [LabelTransformer(nullable=False) for _ in options.sizes]
    for column, size in zip(columns, options.sizes, strict=True):
        column.fit(range(size))
    params = (
        {"rounds": 3 * len(columns), "max_model_size": MAX_MEGABYTES} if method == "aim" else {}
    )
    synthesizer = Synthesizer.create(method, options.epsilon, delta=options.delta, **params)
    synthesizer.fit(rows, transformer=TableTransformer(columns), preprocessor_eps=0.0)
    if synthesizer.epsilon != options.epsilon:
        raise RuntimeError("A part of epsilon went into preprocessing.")
    return synthesizer.sample(len(rows))


def by_dpmm(method, rows, options, **params):
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM
    from dpmm.models.priv_bayes import PrivBayesGM

    model = {"aim": AIMGM, "mst": MSTGM, "privbayes": PrivBayesGM}[method]
    if method == "aim":
        params["rounds"] = 3 * len(options.sizes)
    if method != "mst":
        params["max_model_size"] = MAX_MEGABYTES
    generator = model(epsilon=options.epsilon, delta=options.delta, n_jobs=1, **params)
    generator.set_random_state(np.random.RandomState(options.seed))
    generator.set_domain(dict(zip(rows.columns, options.sizes, strict=True)))
    generator.fit(rows)
    return generator.generate(n_records=len(rows))


def by_opendp(method, rows, options):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")

    def spent(rho):
        gaussian = dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), (2 * rho) ** -0.5
        )
        return dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(options.delta)

    rho = dp.binary_search(lambda rho: spent(rho) <= options.epsilon, bounds=(1e-6, 100.0))
    aim = partial(dp.mbi.AIM, rounds=3 * len(options.sizes), max_size=float(MAX_MEGABYTES))
    for attempt in range(N_ATTEMPTS):
        context = dp.Context.compositor(
            data=pl.from_pandas(rows).lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho * (1 - 1e-4 * attempt)),
            split_evenly_over=1,
        )
        query = context.query().select(list(rows.columns))
        keys = {c: list(range(n)) for c, n in zip(rows.columns, options.sizes, strict=True)}
        algorithm = {"mst": dp.mbi.MST, "aim": aim}[method]()
        try:
            table = query.contingency_table(keys=keys, algorithm=algorithm).release()
        except dp.OpenDPException as error:
            # Equal parts that add up to more than the whole by rounding are refused.
            if "insufficient budget" not in str(error) or attempt == N_ATTEMPTS - 1:
                raise
        else:
            break
    made = table.synthesize().to_pandas()
    return made.sample(len(rows), replace=len(made) < len(rows), random_state=options.seed)


def by_sdv(method, rows, options):
    import sdv.single_table
    import torch
    from sdv.metadata import Metadata

    torch.manual_seed(options.seed)
    numbers = {rows.columns[i] for i in options.numbers}
    metadata = Metadata.detect_from_dataframes({"rows": rows})
    for name in rows.columns:
        sdtype = "numerical" if name in numbers else "categorical"
        metadata.update_column(table_name="rows", column_name=name, sdtype=sdtype)
    metadata.remove_primary_key("rows")
    name = {"copula": "GaussianCopulaSynthesizer", "ctgan": "CTGANSynthesizer"}[method]
    synthesizer = getattr(sdv.single_table, name)(metadata)
    synthesizer.fit({"rows": rows})
    made = synthesizer.sample(len(rows))
    return made["rows"] if isinstance(made, dict) else made


def by_privpgd(rows, options):
    import torch
    from inference.dataset import Dataset
    from inference.domain import Domain
    from inference.privpgd.inference import AdvancedSlicedInference
    from mechanisms.kway import KWay

    torch.manual_seed(options.seed)
    domain = Domain(rows.columns, options.sizes, d=rows.shape[1])
    pairs = list(itertools.combinations(rows.columns, 2))
    params = {
        "n_particles": min(len(rows), 10_000),
        "iters": min(1000, 20_000 // len(pairs)),
        "iters_proj": 200,
        "num_projections_proj": 50,
    }
    # The steps get as small as they would in 1000 epochs.
    params["scheduler_step"] = max(1, params["iters"] // 20)
    mechanism = KWay(options.epsilon, options.delta, degree=2, bounded=False)
    engine = AdvancedSlicedInference(domain, params)
    synthetic, _ = mechanism.run(Dataset(rows, domain), engine, pairs)
    return synthetic.df.sample(len(rows), replace=True, random_state=options.seed)


def by_tabpe(rows, options):
    # The parts for images and texts need much else, and are not used here.
    for part in itertools.product(("api", "data", "embedding"), ("image", "text")):
        sys.modules[".".join(("pe", *part))] = MagicMock()
    from pe.api.tabular import TabularAPI
    from pe.constant.data import LABEL_ID_COLUMN_NAME, TABULAR_DATA_COLUMN_NAME
    from pe.data import Data, TabularColumnType
    from pe.embedding.tabular import TabularEmbedding
    from pe.histogram import NearestNeighbors
    from pe.population import CompositePopulation, PEPopulation
    from pe.runner import PE

    *features, label = rows.columns
    numbers = [features[i] for i in options.numbers]
    features = [name for name in features if name not in numbers] + numbers
    sizes = dict(zip(rows.columns, options.sizes, strict=True))
    info = {
        name: {"type": TabularColumnType.INTEGER, "min": 0, "max": sizes[name] - 1}
        if name in numbers
        else {"type": TabularColumnType.CATEGORICAL, "categories": list(range(sizes[name]))}
        for name in features
    }
    frame = pd.DataFrame(
        {
            TABULAR_DATA_COLUMN_NAME: rows[features].to_numpy().tolist(),
            LABEL_ID_COLUMN_NAME: rows[label],
        }
    )
    metadata = {
        "label_columns": [label],
        "label_info": [{"name": str(code)} for code in range(sizes[label])],
        "cat_columns": [name for name in features if name not in numbers],
        "int_columns": numbers,
        "float_columns": [],
        "feature_columns": features,
    }
    # The settings of its example for Adult.
    n_rounds = 30
    api = TabularAPI(info=info, num_iterations=n_rounds)
    populations = [PEPopulation(api=api, histogram_threshold=0)] * 5
    late = {"initial_variation_api_fold": 3, "next_variation_api_fold": 3, "keep_selected": True}
    populations += [PEPopulation(api=api, selection_mode="rank", **late)] * (n_rounds - 5)
    histogram = NearestNeighbors(
        embedding=TabularEmbedding(info=info), mode="L2", lookahead_degree=0, backend="torch"
    )
    runner = PE(Data(frame, metadata), CompositePopulation(populations), histogram)
    made = runner.run(
        num_samples_schedule=[1000] * n_rounds,
        delta=options.delta,
        epsilon=options.epsilon,
        save_checkpoint=False,
    ).data_frame
    synthetic = pd.DataFrame(made[TABULAR_DATA_COLUMN_NAME].tolist(), columns=features)
    synthetic[label] = made[LABEL_ID_COLUMN_NAME].to_numpy()
    return synthetic.astype(int).sample(len(rows), replace=True, random_state=options.seed)


def by_margnet(rows, options):
    import torch

    torch.manual_seed(options.seed)
    torch.cuda.reset_peak_memory_stats = torch.cuda.max_memory_allocated = lambda **_: 0
    # Baselines that it imports, and does not use here.
    sys.modules["method.privsyn.PrivSyn.privsyn"] = MagicMock()
    from method.AIM.cdp2adp import cdp_rho
    from method.MargDL.main import MargDLGen

    train = {"selection_iterations": 200, "final_iterations": 200, "lr": 0.001, "batch_size": 512}
    config = {"train": train, "model_params": {"d_layers": [256, 256], "dropout": 0.0}}
    args = argparse.Namespace(iter=None, lr=None, batch=None, test=False, resample=False)
    sizes = dict(zip(rows.columns, options.sizes, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        generator = MargDLGen(args, rows, sizes, "cpu", config, folder, "gan")
        generator.fit_adaptive(cdp_rho(options.epsilon, options.delta))
    return pd.DataFrame(generator.model.sample(len(rows)), columns=rows.columns)


def by_napsu(rows, options):
    import jax
    import jax.numpy as jnp
    import scipy.optimize
    from d3p.random import PRNGKey
    from twinify.napsu_mq import napsu_mq
    from twinify.napsu_mq.markov_network import MarkovNetwork

    class Enumerated(MarkovNetwork):
        def __init__(self, domain, queries):
            super().__init__(domain, queries)
            self.cells = np.array(list(itertools.product(*domain.values())))
            self.values = jnp.array(self.flat_queries(self.cells), float)

        def suff_stat_mean_and_cov(self, lambdas):
            shares = jax.nn.softmax(self.values @ lambdas)
            mean = shares @ self.values
            return mean, (self.values * shares[:, None]).T @ self.values - jnp.outer(mean, mean)

        def sample(self, rng, lambdas, n_sample=1):
            drawn = jax.random.categorical(rng, self.values @ lambdas, shape=(n_sample,))
            return self.cells[np.asarray(drawn)]

    def minimize(function, start, **_):
        return scipy.optimize.minimize(
            jax.jit(jax.value_and_grad(function)), start, jac=True, method="L-BFGS-B"
        )

    napsu_mq.MarkovNetwork = Enumerated
    jax.scipy.optimize.minimize = minimize
    run_chains = napsu_mq.mei.run_numpyro_mcmc_normalised
    napsu_mq.mei.run_numpyro_mcmc_normalised = lambda *args, **params: run_chains(
        *args, **{**params, "num_chains": 1}
    )
    sizes = zip(rows.columns, options.sizes, strict=True)
    frame = rows.astype({name: pd.CategoricalDtype(range(size)) for name, size in sizes})
    pairs = list(itertools.combinations(rows.columns, 2))
    model = napsu_mq.NapsuMQModel(column_feature_set=[])
    key = PRNGKey(options.seed)
    result = model.fit(frame, key, options.epsilon, options.delta, query_sets=pairs)
    return result.generate(PRNGKey(options.seed + 1_000_000), options.sets, len(rows)).astype(int)


METHODS = {
    "mst": partial(by_smartnoise, "mst"),
    "aim": partial(by_smartnoise, "aim"),
    "dpmm-mst": partial(by_dpmm, "mst"),
    "dpmm-aim": partial(by_dpmm, "aim"),
    "dpmm-aim3": partial(by_dpmm, "aim", degree=3),
    "dpmm-privbayes": partial(by_dpmm, "privbayes", degree=3),
    "opendp-mst": partial(by_opendp, "mst"),
    "opendp-aim": partial(by_opendp, "aim"),
    "copula": partial(by_sdv, "copula"),
    "ctgan": partial(by_sdv, "ctgan"),
    "privpgd": by_privpgd,
    "tabpe": by_tabpe,
    "margnet": by_margnet,
    "napsu": by_napsu,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("method", choices=list(METHODS))
    parser.add_argument("rows")
    parser.add_argument("synthetic")
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--numbers", type=int, nargs="*", default=[], help="places of columns")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sets", type=int, default=1, help="synthetic data sets, by napsu only")
    parser.add_argument("--peer-path", help="of code that is not installed")
    options = parser.parse_args()
    if options.peer_path:
        sys.path.insert(0, options.peer_path)
    np.random.seed(options.seed)  # noqa: NPY002, the one that they draw from
    rows = pd.read_csv(options.rows)
    synthetic = METHODS[options.method](rows, options)
    synthetic[rows.columns].to_csv(options.synthetic, index=False)


if __name__ == "__main__":
    main()
