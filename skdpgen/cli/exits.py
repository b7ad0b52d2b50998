# SPDX-License-Identifier: BSD-3-Clause
"""Exit codes of the command line."""

DONE, FAILED, USAGE, STOPPED, BAD_RESULT = range(5)

DESCRIPTION = """\
exit codes:
  0  done
  1  failed; the message says so if anything was spent
  2  options that are none
  3  stopped before anything was spent; the message says why, and whether --anyway goes on
  4  done, with a bad result: a violation that an audit finds, a warning with --fail-on-warning
  128 and the number of a signal that ended the command
"""


class StoppedError(Exception):
    """A command stopped before anything was spent, and goes on by --anyway."""
