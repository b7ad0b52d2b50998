# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of constructors: declared as fields, and described once for all estimators."""

import re
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**options):
        """Tell type checkers of constructors; here it does nothing."""
        return lambda decorator: decorator


_TEXTS = {
    "privacy": """\
epsilon : float, default=1.0
    Privacy budget. ``inf``: no noise, and the certificate says so.
delta : float, default=1e-5
    Probability scale at which ε may fail; choose it well below 1 / n_samples.
relation : {"zero_out", "replace_one"}, default="zero_out"
    Which data sets are neighbours: one record replaced by a null record that counts as
    absent, or by any other record. The number of records is public.
accountant : {"pld", "rdp", "autodp"}, default="pld"
    What finds the noise and certifies it.""",
    "arrays": """\
bounds : None or (lower, upper), default=None
    Public bounds of the features, numbers or arrays of shape (n_features,), to which features are
    clipped. Unless an object encodes them, they are mapped to [0, 1] and divided by the root of
    their number, a numeric `y` counted. None: those of the dtype, if it is bool or uint8; else
    they are found by noisy counts, which are paid for: a range of each of up to 50 columns, or one
    of all columns. Declare them where you can.
y_bounds : None or (lower, upper), default=None
    Public bounds of a numeric `y`. None: they are found, and paid for, too.
clip_norm : "auto" or float, default="auto"
    Radius, in the units after `bounds`, in which 1 changes nothing. Each row is scaled down to it.
    ``"auto"``: 1 + 6/d times the root mean square norm of d columns, from noisy counts that are
    paid for.
classes : array-like, default=None
    The labels that `y` may hold. None: inferred from `y`, with a `PrivacyLeakWarning`.""",
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
    from noisy second moments, which are paid for. ``"auto"``: that, by the number of rows and of
    columns, the bounds and the budget, or none. An
    object has `transform` and `inverse_transform` and was fitted on public data, such as an
    `Autoencoder`, wrapped in scikit-learn's `FrozenEstimator`. A list: such an object, and then
    a `PrivatePCA` of what it makes.""",
    "persons": """\
max_rows_per_person : int, default=1
    If `fit` is given `persons`: how many rows of each count, chosen at random; all others are
    absent. Noise is so many times as much. Of 2 or more, a hundredth of the budget shows how many
    rows there are in all.""",
    "running": """\
random_state : None, int or RandomState, default=None
    None: noise from the operating system. Anything else is for reproducing an experiment,
    **not a private release**: whoever has the seed can recompute the noise.
device : str, default="auto"
    Where to compute: "cpu", "cuda", or "auto" for CUDA where there is one.
verbose : int, default=0
    1 shows a progress bar.
strict : bool, default=False
    Whether to refuse bad records: with a label that is not declared, a number that is not
    finite, or a cell that is not as declared. A refusal is an exact answer about the rows,
    which ε does not cover, and the certificate says so. By default such a record counts as
    absent, and nothing tells which they are.""",
    "local": """\
mechanism : {"laplace", "gaussian"}, default="laplace"
    Which noise, and with it the norm of the ball, L1 or L2.
basis : None or "dct", default=None
    ``"dct"``: the noise is added to the coefficients of the orthonormal cosine transform of a
    row, which for images have a smaller L1 norm than the pixels.
keep : float, default=None
    With ``basis="dct"``, the share of coefficients that a row keeps, its largest ones; the
    others become 0 before the row is projected. None: all.
image_shape : tuple of int, default=None
    Shape of the images that rows are, (height, width) or (channels, height, width). The cosine
    transform is along the last two axes. None: along the row.
label_share : float, default=0.2
    The share of ε that labels get.""",
    "certified": """\
privacy_ : skdpgen.privacy.Certificate
    What was released and what it costs.
epsilon_ : float
    ε spent at `delta`; at most `epsilon`.""",
    "release_": """\
release_ : object
    What `release` stands for, with the numbers that were chosen for it. Of tables, a sketch is one
    of two-way tables.""",
    "found": """\
bounds_ : (lower, upper) or None
    Bounds of the features, arrays of shape (n_features,), declared or found. Like the three below
    it, not of tables.
y_bounds_ : (lower, upper)
    Those of a numeric `y`.
clip_norm_ : float
    The radius, declared or found.
encoder_ : PrivatePCA, object or None
    What `encoder` stands for.""",
    "schema_": """\
schema_ : Schema
    The columns of the table, if there is one, with what was found of them.
schema_report_ : DataFrame
    Of a table, for each column: its kind, bounds, number of levels or knots, and, where released
    tables say it, the shares of `other`, of missing values and of what is at the outermost
    knots, with the noise on a count, in records. It costs nothing.""",
    "labels": """\
classes_ : ndarray of shape (n_classes,)
    If `y` holds classes.
class_probabilities_ : ndarray of shape (n_classes,)
    Noisy frequencies of the classes.""",
    "adapted": """\
privacy_ : skdpgen.privacy.Certificate
    What was released of the target and what it costs.
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


@dataclass_transform(eq_default=False)
def parameters(cls):
    """Make the annotated attributes of a class the parameters of its constructor.

    They come after those of its bases, by name only if there are such, and are set as they are
    given, as scikit-learn wants it. Common texts are put into the docstring where it says
    ``%(name)s``.
    """
    cls.__doc__ = re.sub(
        r"^( *)%\((\w+)\)s$",
        lambda found: indent(_TEXTS[found[2]], found[1]),
        cls.__doc__,
        flags=re.MULTILINE,
    )
    has_more = any(getattr(base, "__dataclass_fields__", ()) for base in cls.__bases__)
    return dataclass(eq=False, repr=False, kw_only=has_more)(cls)
