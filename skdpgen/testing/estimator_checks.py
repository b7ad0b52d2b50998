# SPDX-License-Identifier: BSD-3-Clause
"""Checks for estimators that sample, beside those of scikit-learn.

scikit-learn's `check_estimator` knows nothing of `sample`, nor of privacy. These checks do: they
raise AssertionError where an estimator breaks what its interface or its certificate promises.
"""

from . import interface_checks, privacy_checks

# Parameters that not all estimators have.
_NEEDS = {
    "check_class_warning": "classes",
    "check_labels": "classes",
    "check_number": "y_bounds",
    "check_unknown_labels": "classes",
}


def check_generator(estimator) -> None:
    """Run all checks on an estimator that samples.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance; it is cloned, and its numbers of steps are lowered.

    Raises
    ------
    AssertionError
        From the first check that fails.

    Examples
    --------
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> from skdpgen.testing import check_generator
    >>> check_generator(DPSlicedWassersteinGenerator())
    """
    for name, check in yield_checks(estimator):
        try:
            check(estimator)
        except AssertionError as error:
            raise AssertionError(f"{name}, {estimator}: {error}") from error


def yield_checks(estimator):
    """Yield the checks that suit what an estimator can do.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        ``check(estimator)`` raises AssertionError if something is wrong.
    """
    names = [None, *estimator.get_params(deep=False)]
    for module in (interface_checks, privacy_checks):
        # A copy: a warning that a check lets by writes to the module's own dictionary.
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and _NEEDS.get(name) in names:
                yield name, check
