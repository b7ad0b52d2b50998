# SPDX-License-Identifier: BSD-3-Clause
"""Command line for synthetic tables from private ones, in files.

skdpgen synthesize private.csv --epsilon 1 --output synthetic
"""

import json
import os
import sys
from importlib import import_module

from .cli.exits import FAILED, STOPPED, StoppedError, describe_error
from .cli.outputs import plain_warnings, print_message
from .cli.parser import make_parser
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
        module = import_module(f"{__package__}.cli.{options.module}")
        with plain_warnings():
            code = getattr(module, options.command)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of the pipe has closed it; redirect what is flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt as interrupt:
        code, message = 128 + getattr(interrupt, "number", 2), str(interrupt) or "interrupted."
    except (BudgetExceededError, StoppedError) as stop:
        # A budget refuses a whole plan, before the first release.
        code, message = STOPPED, str(stop)
    except (SpentError, OSError, ImportError, ValueError) as error:
        code, message = FAILED, describe_error(error)
    print_message(message, "stopped" if code == STOPPED else "error")
    if getattr(options, "as_json", False):
        print(json.dumps({"exit_code": code, "error": message}, ensure_ascii=False))
    return code


if __name__ == "__main__":
    sys.exit(main())
