# SPDX-License-Identifier: BSD-3-Clause
"""Checks for authors: of estimators that sample, all in turn, and of their networks.

Those of estimators complement scikit-learn's `check_estimator`, which covers neither `sample` nor
privacy. A check raises AssertionError if an estimator breaks its interface or its certificate.
"""

import math
from collections.abc import Callable, Iterator

import torch

from ..learners.aggregates import try_discriminator
from ..learners.rehearsal import try_generator
from . import interface_checks, privacy_checks

# Checks that need a parameter which not all estimators have.
_NEEDS = {
    "check_class_probabilities": "classes",
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
        An unfitted instance. It is cloned, and the clones are fitted with fewer steps. Its class
        says by ``_takes_classes = False`` that y holds no classes; numbers are checked then.

    Raises
    ------
    AssertionError
        From the first check that fails.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.testing import check_generator
    >>> class Flawed(DPSWFlowSampler):
    ...     def sample(self, *args, **kwargs):
    ...         return self
    >>> check_generator(Flawed())
    Traceback (most recent call last):
    AssertionError: check_sample_shapes, Flawed(): ...
    """
    for name, check in yield_checks(estimator):
        try:
            check(estimator)
        except Exception as error:
            raise AssertionError(f"{name}, {estimator}: {error}") from error


def yield_checks(estimator) -> Iterator[tuple[str, Callable]]:
    """Yield the checks that apply to an estimator.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        ``check(estimator)`` raises AssertionError if the check fails.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.testing import yield_checks
    >>> name, check = next(yield_checks(DPSWFlowSampler()))
    >>> name
    'check_sample_shapes'
    """
    names = {None, *estimator.get_params(deep=False)}
    names -= set() if estimator._takes_classes else {"classes"}
    for module in (interface_checks, privacy_checks):
        # A copy, since a warning in a check adds a name to the module's dictionary.
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and _NEEDS.get(name) in names:
                yield name, check


def validate_network(
    network: str | Callable, n_inputs: int | tuple, n_outputs: int | None = None
) -> list[str]:
    """List what keeps a network from being trained; it costs nothing.

    A generator's is made for `latent_dim` and the number of classes together, trained for a step,
    and used, as before a fit. Only generated rows pass it: batch normalisation and dropout are
    fine. Without `n_outputs`, these are `discriminator_layers` of `DPAFGenerator` for rows of a
    shape, each of which passes them by itself.

    Examples
    --------
    >>> import torch
    >>> from skdpgen.testing import validate_network
    >>> validate_network(torch.nn.Linear, 20, 4)
    []
    >>> validate_network(lambda i, o: torch.nn.Linear(i, o).requires_grad_(False), 20, 4)[0][:34]
    'network has no weights to train: a'
    >>> validate_network(lambda shape: torch.nn.Conv2d(shape[0], 8, 3), (1, 8, 8))
    []
    """
    try:
        if n_outputs is not None and isinstance(n_inputs, int):
            try_generator(network, n_inputs, 0, n_outputs, 8, torch.device("cpu"))
        else:
            shape = (n_inputs,) if isinstance(n_inputs, int) else n_inputs
            try_discriminator(network, math.prod(shape), 1, shape if len(shape) == 3 else None)
    except (TypeError, ValueError) as error:
        return [str(error)]
    return []
