# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of estimators: shared docstrings, checks and specifications."""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import indent
from typing import Any, ClassVar, TypeVar

import torch
from sklearn.base import BaseEstimator, clone

from ._process.isolation import isolated
from .accounting.accountants import ACCOUNTANTS, RELATIONS
from .accounting.calibration import check_epsilon, find_delta
from .accounting.rounding import plain, plain_numbers, show
from .checks import flag, in_range, one_of, radius
from .data.record_functions import clears_frames
from .exceptions import warn_caller
from .quality import collects_findings
from .registry import Savable

__all__ = ["parameters"]

Class = TypeVar("Class")

# Descriptions of parameters and attributes that several estimators share.
_TEXTS = {
    "privacy": """\
epsilon : float, default=1.0
    Privacy budget. ``inf``: no noise, as the certificate states.
delta : float, default=None
    Probability scale at which ε may fail, well below 1 / n_samples. None: the largest power of ten
    that is at most 1e-5 and 0.1 / n_samples.
relation : {"zero_out", "replace_one"}, default="zero_out"
    Neighbouring relation: one record is replaced by a null record, which counts as absent, or by
    any other record. The number of records is public.
accountant : {"pld", "rdp", "autodp"}, default="pld"
    Accountant that calibrates the noise and certifies its cost.""",
    "arrays": """\
bounds : None or (lower, upper), default=None
    Public bounds of the features, numbers or arrays of shape (n_features,), to which features are
    clipped. Unless an object encodes them, they are mapped to [0, 1] and divided by the root of
    their number, including a numeric `y`. None: those of the dtype if it is bool or uint8;
    otherwise `fit` infers them from noisy counts at a cost: a range for each of up to 50 columns,
    or one for all columns. Declare them if you can. `fit` warns of columns that are at a bound, if
    released sums, rows or second moments show it; beside gradients, aggregates and encoders, only
    of rows that are so in all columns.
y_bounds : None or (lower, upper), default=None
    Public bounds of a numeric `y`. None: `fit` infers them at a cost.
classes : array-like, default=None
    Labels in `y`. None: inferred from `y`, with a `PrivacyLeakWarning`.
image_shape : "auto", None or tuple of int, default="auto"
    Shape of the images that records are: (height, width), or with channels first or last, as
    (3, 32, 32) or (32, 32, 3). ``"auto"``: that of `X`, if it has three or four dimensions. Flat
    rows are then guessed to be images if their columns are those of a square of at least 16×16
    pixels, grey or RGB with channels first, within bounds from 0 to one number. None: records are
    no images.
clip_norm : "auto" or float, default="auto"
    Radius, in the units after `bounds`, to which each row is scaled down; 1 changes nothing there.
    ``"auto"``: 1 + 6/d times the root mean square norm of d columns, from noisy counts at a
    cost.""",
    "schema": """\
schema : "auto", "private", Schema or None, default="auto"
    Column types of a table. ``"auto"``: a DataFrame is a table, of which all columns are
    inferred, as with ``"private"``; anything else is an array. A DataFrame is an array, too, if
    its columns have no names, if a parameter of arrays is not at its default (`bounds`,
    `y_bounds`, `clip_norm`, `classes`, `encoder`, or rows of images), or if `release` takes no
    undeclared columns. ``"private"``: only names and dtypes of columns are public. A `Schema`
    declares column types, bounds and levels, and may leave some open. Whatever is not declared
    is inferred from noisy histograms of numbers and dates and noisy counts of categories,
    which get a fifth of the budget (of Σ s⁻² over the noise multipliers s of Gaussian
    releases) and a tenth of δ; rare categories become ``"other"``. None: X is an array.""",
    "encoder": """\
encoder : "auto", None, "dp-pca", PrivatePCA, object or list, default="auto"
    Dimension reduction before the release. ``"dp-pca"``: a `PrivatePCA`, principal components
    from noisy second moments at a cost. ``"auto"``: ``"dp-pca"`` or None, by the numbers of rows
    and columns, the bounds and the budget. An object has `transform` and `inverse_transform` and
    was fitted on public data, such as scikit-learn's `PCA` or a network of your own, wrapped in
    scikit-learn's `FrozenEstimator`. A list: such an object, and a `PrivatePCA` of its output.""",
    "persons": """\
max_rows_per_person : int, default=1
    Number of rows of each person that count, chosen at random, if `fit` is given `persons`; other
    rows are absent. The noise is multiplied by it. From 2 on, a hundredth of the budget is spent on
    the total number of rows.""",
    "running": """\
random_state : None, int or RandomState, default=None
    None: noise from the operating system. Anything else is for reproducing an experiment,
    **not a private release**: whoever has the seed can recompute the noise. Torch then computes on
    one thread of the CPU, so that results do not depend on the number of threads.
device : str, default="auto"
    Device: "cpu", "cuda", or "auto" for CUDA if available.
verbose : int, default=0
    1 shows a progress bar, and for tables the interactions that have tables of their own.
strict : bool, default=False
    Whether `fit` raises an error for invalid records: an undeclared label, a number that is not
    finite, or a cell of another type than declared. The error is an exact statement about the
    rows, which ε does not cover, as the certificate states. By default such records count as
    absent, and are not disclosed.""",
    "local": """\
mechanism : {"laplace", "gaussian"}, default="laplace"
    Noise, which determines the norm of the ball: L1 or L2.
basis : None or "dct", default=None
    ``"dct"``: noise is added to the coefficients of the orthonormal cosine transform of a row,
    which for images have a smaller L1 norm than the pixels.
keep : float, default=None
    Share of the largest coefficients of a row that are kept with ``basis="dct"``; the others become
    0 before the row is projected. None: all.
label_share : float, default=0.2
    Share of ε for labels.""",
    "certified": """\
privacy_ : skdpgen.privacy.Certificate
    The releases and their cost.
epsilon_ : float
    ε spent at `delta`; at most `epsilon`.""",
    "release_": """\
release_ : object
    The release with resolved numbers. For a table, a sketch is of two-way tables.""",
    "found": """\
bounds_ : (lower, upper) or None
    Bounds of the features, arrays of shape (n_features,), declared or inferred; this and the three
    below only for arrays.
y_bounds_ : (lower, upper)
    Bounds of a numeric `y`.
clip_norm_ : float
    The radius, declared or inferred.
encoder_ : PrivatePCA, object or None
    The encoder, resolved.""",
    "schema_": """\
schema_ : Schema
    Declared and inferred columns of a table.
schema_report_ : DataFrame
    For each column of a table: its type, bounds, number of levels or knots, and, if the release
    shows them, the shares of `other`, of missing values and of values at the outermost knots, with
    the noise on a count, in records, and the expected error of numbers; and the interactions of
    three or more columns whose tables were released. It costs nothing.""",
    "labels": """\
classes_ : ndarray of shape (n_classes,)
    If `y` holds classes.
class_probabilities_ : ndarray of shape (n_classes,)
    Noisy frequencies of the classes.""",
    "adapted": """\
privacy_ : skdpgen.privacy.Certificate
    The releases of the target and their cost.
epsilon_ : float
    ε spent at `delta`; at most `epsilon`, and 0 without a target.
classes_ : ndarray of shape (n_classes,)
    Labels of the source.
n_target_ : int
    Number of target rows, which is public.""",
    "shape": """\
n_samples_ : int
    Number of rows, which is public; with `persons`, that of persons.
n_features_in_ : int
    Number of features.
record_shape_in_ : tuple of int
    Shape of a record, if `X` has three or four dimensions.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, if `X` has string column names.""",
}


# Each of them also by itself.
_TEXTS = {
    **{
        entry.split(" ")[0]: entry.rstrip()
        for text in _TEXTS.values()
        for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    },
    **_TEXTS,
}


def documented(cls: type[Class]) -> type[Class]:
    """Replace ``%(name)s`` in the docstring of a class by the shared text of that name."""
    # Filled in once, at import: docstrings must be complete for help() and Sphinx.
    cls.__doc__ = re.sub(
        r"^( *)%\((\w+)\)s$",
        lambda match: indent(_TEXTS[match[2]], match[1]),
        cls.__doc__ or "",
        flags=re.MULTILINE,
    )
    return cls


class Checked:
    """Base of classes that declare checks of their parameters."""

    # A function ``check(name, value)`` for each parameter; subclasses add to them.
    _checks: ClassVar[dict[str, Callable]] = {}

    def _check_params(self) -> None:
        """Raise a ValueError if a parameter is invalid."""
        checks: dict[str, Callable] = {}
        # From the base on, so that a subclass can replace a check.
        for cls in reversed(type(self).__mro__):
            checks.update(vars(cls).get("_checks", {}))
        for name, check in checks.items():
            check(name, getattr(self, name))


class Specification(Savable, Checked, BaseEstimator):
    """Base of specifications: parameters that belong together, without `fit` or state.

    The `fit` of the estimator that takes a specification checks its parameters.
    """

    def checked(self) -> "Specification":
        """Return a copy with Python numbers; raise a ValueError if a parameter is invalid."""
        # NumPy's numbers would show up in reports and files as np.float64(…).
        copy = type(self)(**{k: plain(v) for k, v in self.get_params(deep=False).items()})
        copy._check_params()
        return copy


class TakesSpecifications(Checked):
    """Base of estimators whose parameters can be specifications, or strings that name them."""

    # For each such parameter, what its strings, or None, stand for, or what makes that.
    _shorthands: ClassVar[dict[str, dict[Any, Any]]] = {}
    # For parameters that may be functions of users, what makes specifications of these.
    _wrappers: ClassVar[dict[str, Callable]] = {}

    def _resolve_spec(self, name: str) -> Specification:
        """Return the specification that a parameter holds or names.

        Raises
        ------
        ValueError
            If it is none, or one of its own parameters is invalid.
        """
        known, value = self._shorthands.get(name), getattr(self, name, None)
        if known is None:
            raise TypeError(f"{type(self).__name__}._shorthands must say what {name} may be.")
        if isinstance(value, str) and value in known:
            return _make(known[value])
        types = tuple({type(_make(spec)) for spec in known.values()})
        # Subclasses are of users.
        if isinstance(value, types):
            return value.checked()
        wrap = self._wrappers.get(name)
        if wrap is not None and callable(value) and not isinstance(value, type):
            return wrap(value)
        names = " or ".join(sorted(cls.__name__ for cls in types))
        other = " or a function" * (wrap is not None)
        raise ValueError(f"{name} must be one of {list(known)} or a {names}{other}; got {value!r}.")

    def set_params(self, **params):
        """Set parameters, also those of specifications, as ``release__n_projections=100``.

        A string is first replaced by the specification that it names.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : object
        """
        for key in list(params):
            name, _, nested = key.partition("__")
            value = params.get(name, getattr(self, name, None))
            known = self._shorthands.get(name, {})
            if nested and isinstance(value, str | None) and value in known:
                params[name] = _make(known[value])
            elif nested and name in self._shorthands and not hasattr(value, "set_params"):
                first = f"set_params({name}={next(iter(known))!r}, {key}=...)"
                raise ValueError(
                    f"{name}={value!r} has no parameter {nested!r}: write {first}, or give "
                    f"{name} an object with that parameter."
                )
        return super().set_params(**params)


def _make(spec: Any) -> Specification:
    """Return the specification that a shorthand stands for: a fresh one."""
    return clone(spec) if isinstance(spec, Specification) else spec()


def parameters(cls: type[Class]) -> type[Class]:
    """Make the annotated attributes of a class keyword parameters of its constructor.

    For subclasses of `Release`, `Specification` and `CentralGenerator` that others write.

    Examples
    --------
    >>> from skdpgen.params import parameters
    >>> from skdpgen.releases import Release
    >>> @parameters
    ... class BinCounts(Release):
    ...     n_bins: int = 10
    >>> BinCounts(n_bins=5).get_params()
    {'n_bins': 5}
    """
    return dataclass(eq=False, repr=False, kw_only=True)(cls)


# Attributes by which what was paid for survives a failure.
_PAID = ("release_", "target_sampler_")


@contextlib.contextmanager
def fitting(estimator) -> Iterator[None]:
    """Fit an estimator: with plain parameters, isolated from the state of the process.

    Until something is paid for, an error leaves the estimator as it was. From then on it leaves
    what was paid for in `release_`, or `target_sampler_`, and no other fitted attribute: no
    certificate covers the state of a failed fit, nor the private rows in the frames of the error,
    which are cleared. Warnings of the quality of the fit come last, once it is complete.
    """
    before, device = vars(estimator).copy(), getattr(estimator, "device", "cpu")
    random_state = getattr(estimator, "random_state", None)
    with collects_findings(estimator):
        try:
            with (
                clears_frames(),
                isolated(random_state, choose_device(device)),
                plain_numbers(estimator),
            ):
                yield
        except BaseException as error:
            paid = {
                name: value
                for name in _PAID
                if (value := vars(estimator).get(name)) is not before.get(name)
                # Values of many steps are not kept.
                and getattr(value, "published", value) is not None
            }
            left = before
            if paid and getattr(error, "certificate", None) is not None:
                left = {name: before[name] for name in estimator.get_params(deep=False)} | paid
            vars(estimator).clear()
            vars(estimator).update(left)
            raise


def choose_device(device: str) -> torch.device:
    """Return CUDA, if available, for ``"auto"``, or the device of another name."""
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # An empty tensor shows whether the device works here; its name alone does not.
        return torch.empty(0, device=device or "none").device
    except (AssertionError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        if is_out_of_memory(error):
            raise ValueError(
                f"device {str(device)!r} is there, but out of memory: end what else runs on it, or "
                "set device='cpu'."
            ) from error
        raise ValueError(
            f"device must be 'auto' or one that torch can use here; got {device!r}."
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory of a device was exhausted; its driver may say so in words only."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)


def check_finite(*tensors: torch.Tensor) -> None:
    """Raise a ValueError if learnt parameters or generated rows are not finite."""
    if not all(torch.isfinite(part).all() for part in tensors):
        raise ValueError(
            "Training has diverged: parameters or generated rows are not finite. Use smaller steps "
            "or weights."
        )


def warn_of_delta(delta: float, n_samples: int) -> None:
    """Warn of a δ at which a mechanism may publish a record outright."""
    if delta >= 1 / n_samples:
        warn_caller(
            f"delta = {show(delta)} is not below 1 / n_samples = {1 / n_samples:g}: it allows to "
            "publish a record outright. Choose a smaller delta.",
            UserWarning,
        )


# Checks of estimators that spend a budget.
PRIVACY_CHECKS: dict[str, Callable] = {
    "epsilon": lambda name, value: check_epsilon(value),
    "delta": lambda name, value: find_delta(value, 1),
    "accountant": one_of(*ACCOUNTANTS),
    "strict": flag,
}
RUNNING_CHECKS: dict[str, Callable] = {
    **PRIVACY_CHECKS,
    "device": lambda name, value: choose_device(value),
    "verbose": in_range(),
}
CENTRAL_CHECKS = {
    **RUNNING_CHECKS,
    "relation": one_of(*RELATIONS),
    "clip_norm": radius,
}
