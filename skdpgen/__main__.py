# SPDX-License-Identifier: BSD-3-Clause
"""Command line for synthetic tables from private ones, in files.

    skdpgen synthesize private.csv --schema schema.json --epsilon 1 --delta 1e-6 \
        --output synthetic.csv --certificate certificate.json
"""

import os
import sys

from ._cli.parser import make_parser
from .exceptions import BudgetExceededError, SpentError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit code.

    Parameters
    ----------
    arguments : list of str, default=None
        None: those of the process.
    """
    options = make_parser().parse_args(arguments)
    try:
        # Imported after parsing, since it takes seconds.
        from ._cli import commands

        code = getattr(commands, options.command)(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe has closed it; redirect what is flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"skdpgen: error: {str(interrupt) or 'interrupted.'}", file=sys.stderr)
        return 128 + getattr(interrupt, "number", 2)
    except (BudgetExceededError, SpentError, OSError, ImportError, ValueError) as error:
        print(f"skdpgen: error: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
