# SPDX-License-Identifier: BSD-3-Clause
"""Exit codes and messages of the command line."""

from ..messages import COMMAND_LINE, write

DONE, FAILED, USAGE, STOPPED, BAD_RESULT = range(5)

DESCRIPTION = """\
exit codes:
  0  done
  1  failed; the message says so if anything was spent
  2  options that are none
  3  stopped before anything, or once column types, were released; the message says why, what was
     spent, and whether --anyway goes on
  4  done, with a bad result: a violation that an audit finds, a warning with --fail-on-warning
  128 and the number of a signal that ended the command
"""


class StoppedError(Exception):
    """A command stopped before more is spent, and goes on by --anyway."""


def describe_error(error: BaseException) -> str:
    """Return the message of an error, in the words of the command line."""
    text = write(error, COMMAND_LINE)
    if getattr(error, "release", None) is None:
        return text
    # Code of Python goes on from a release in memory, which a command has not.
    return text.removesuffix(getattr(error, "advice", "")).rstrip()
