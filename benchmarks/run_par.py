"""Histories of a peer that is not private: PAR, a sequence model of SDV.

It needs an environment of its own (``pip install sdv``), and reads and writes the files of
``run_histories.py --peer FOLDER``:

    python benchmarks/run_histories.py --cases made --persons 2000 --seeds 1 --peer folder
    python benchmarks/run_par.py folder [--epochs 128]
    python benchmarks/run_histories.py --cases made --persons 2000 --seeds 1 --peer folder
"""

import argparse
import time
from pathlib import Path

import pandas as pd
from sdv.metadata import Metadata
from sdv.sequential import PARSynthesizer

KEY, ORDER = "patient", "admitted"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=128)
    options = parser.parse_args()
    persons = pd.read_csv(options.folder / "persons.csv")
    rows = pd.read_csv(options.folder / "rows.csv", parse_dates=[ORDER])
    # Its sequences are in one table, in which context columns repeat those of the person.
    joined = rows.merge(persons, on=KEY).sort_values([KEY, ORDER])
    metadata = Metadata.detect_from_dataframes({"rows": joined})
    metadata.update_column(KEY, sdtype="id")
    metadata.set_sequence_key(KEY)
    metadata.set_sequence_index(ORDER)
    context = [name for name in persons if name != KEY]
    synthesizer = PARSynthesizer(metadata, context_columns=context, epochs=options.epochs)
    start = time.process_time()
    synthesizer.fit({"rows": joined})
    print(f"{time.process_time() - start:.0f} seconds of the processor", flush=True)
    made = synthesizer.sample_sequences(len(persons))
    made = made["rows"] if isinstance(made, dict) else made
    made[[KEY, *context]].drop_duplicates(KEY).to_csv(
        options.folder / "made_persons.csv", index=False
    )
    made[list(rows)].to_csv(options.folder / "made_rows.csv", index=False)


if __name__ == "__main__":
    main()
