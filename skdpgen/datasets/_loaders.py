# SPDX-License-Identifier: BSD-3-Clause
"""Loaders of public data sets: one table of specifications, one way to read them."""

import os
import string
from dataclasses import dataclass
from http.client import HTTPException
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch


@dataclass(frozen=True, kw_only=True)
class _Spec:
    """What a data set is, which file holds it, and where OpenML keeps it."""

    title: str
    about: str
    file: str  # ".npz" holds arrays, ".csv.gz" a table
    openml: tuple[str, int] | None = None  # name, version; None: not used from there
    openml_note: str = ""

    # Arrays.
    image_shape: tuple[int, ...] | None = None
    target_names: tuple[str, ...] = ()
    openml_range: tuple[float, float] | None = None  # pixel values there, mapped to [0, 1]
    openml_n_train: int | None = None  # rows of the official train part, which come first

    # Tables.
    target: str = ""
    drop: tuple[str, ...] = ()
    openml_columns: str = ""  # feature names by position, where OpenML has others
    openml_classes: dict[str, str] | None = None  # class names, where OpenML has others


_SPLIT = "``train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)``"
_NO_SPLIT = f"The data come without a split; the one made here is\n{_SPLIT}."
_DIGITS = tuple(string.digits)

_SPECS = {
    "mnist": _Spec(
        title="MNIST: 28 × 28 grey images of handwritten digits.",
        about="The official split: 60,000 train and 10,000 test images.",
        file="mnist.npz",
        openml=("mnist_784", 1),
        image_shape=(28, 28),
        target_names=_DIGITS,
        openml_range=(0, 255),
        openml_n_train=60_000,
    ),
    "fashion_mnist": _Spec(
        title="Fashion-MNIST: 28 × 28 grey images of clothes.",
        about="The official split: 60,000 train and 10,000 test images.",
        file="fashion_mnist.npz",
        openml=("Fashion-MNIST", 1),
        image_shape=(28, 28),
        target_names=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        openml_range=(0, 255),
        openml_n_train=60_000,
    ),
    "usps": _Spec(
        title="USPS: 16 × 16 grey images of handwritten digits.",
        about="The official split: 7,291 train and 2,007 test images.",
        file="usps.npz",
        openml=("USPS", 2),
        openml_note=f"all 9,298 images, split by\n{_SPLIT}",
        image_shape=(16, 16),
        target_names=_DIGITS,
        openml_range=(-1, 1),
    ),
    "cifar10": _Spec(
        title="CIFAR-10: 32 × 32 RGB images of ten kinds of objects.",
        about=(
            "The file holds a subset: 1,000 train and 200 test images per class, taken from the\n"
            "official train and test parts. They were decoded from JPEG, so that pixels differ\n"
            "slightly from the original's."
        ),
        file="cifar10_12k.npz",
        openml=("CIFAR_10", 1),
        openml_note=f"all 60,000 original images, split by\n{_SPLIT}",
        image_shape=(3, 32, 32),
        target_names=(
            *("airplane", "automobile", "bird", "cat", "deer"),
            *("dog", "frog", "horse", "ship", "truck"),
        ),
        openml_range=(0, 255),
    ),
    "adult": _Spec(
        title="UCI Adult: does a person earn more than 50,000 dollars?",
        about="48,842 rows, 14 features. The official split: 32,561 train and 16,281 test rows.",
        file="adult.csv.gz",
        openml=("adult", 2),
        openml_note=f"the same rows, split by\n{_SPLIT}",
        target="income",
        openml_columns=(
            "age workclass fnlwgt education education_num marital_status occupation relationship "
            "race sex capital_gain capital_loss hours_per_week native_country"
        ),
    ),
    "bank_marketing": _Spec(
        title="UCI Bank Marketing: does a client subscribe a term deposit?",
        about=f"45,211 rows, 16 features.\n{_NO_SPLIT}",
        file="bank_marketing.csv.gz",
        openml=("bank-marketing", 1),
        target="y",
        openml_columns=(
            "age job marital education default balance housing loan contact day month duration "
            "campaign pdays previous poutcome"
        ),
        openml_classes={"1": "no", "2": "yes"},
    ),
    "diabetes130": _Spec(
        title="Diabetes 130-US hospitals: is a patient readmitted (NO, >30, <30 days)?",
        about=(
            "101,766 hospital stays, 47 features: the identifiers ``encounter_id`` and\n"
            "``patient_nbr`` are left out. A patient may have several stays, so that one row is\n"
            f"not one person.\n{_NO_SPLIT}"
        ),
        file="diabetes130.csv.gz",
        openml=("Diabetes130US", 1),
        target="readmitted",
        drop=("encounter_id", "patient_nbr"),
    ),
    "cervical_cancer": _Spec(
        title="UCI Cervical cancer (risk factors): is the biopsy positive?",
        about=(
            "858 rows, 32 features: the results of the three other examinations (Hinselmann,\n"
            f"Schiller, Citology) are left out.\n{_NO_SPLIT}"
        ),
        file="cervical_cancer.csv.gz",
        target="Biopsy",
        drop=("Hinselmann", "Schiller", "Citology"),
    ),
    "california_housing": _Spec(
        title="California housing: the median house value of a district (regression).",
        about=(
            "20,640 rows, 8 features. The data come without a split; the one made here is\n"
            "``train_test_split(X, y, test_size=0.25, random_state=0)``."
        ),
        file="california_housing.csv.gz",
        target="MedHouseVal",
    ),
}


def _find(file, data_home):
    """Path of a file in the data folder, or None when no folder is named."""
    folder = data_home if data_home is not None else os.environ.get("SKDPGEN_DATA")
    if not folder:
        return None
    path = Path(folder).expanduser() / file
    if not path.is_file():
        raise FileNotFoundError(
            f"{file} is not in the data folder {str(path.parent)!r} "
            "(given by data_home or by the environment variable SKDPGEN_DATA)."
        )
    return path


def _how_to_get(file):
    return (
        f"Set data_home, or the environment variable SKDPGEN_DATA, to a folder that has {file!r}."
    )


def _file_needed(file):
    return FileNotFoundError(f"This data set is read from a file only. {_how_to_get(file)}")


def _fetch(spec, as_frame):
    """The data set from OpenML, or one error that says what to do instead."""
    if spec.openml is None:
        raise _file_needed(spec.file)
    name, version = spec.openml
    try:
        return fetch_openml(name, version=version, as_frame=as_frame)
    # scikit-learn raises a ValueError for a refusal of the server, or for a broken download.
    except (OSError, HTTPException, ValueError) as error:
        raise OSError(
            f"Could not get {name!r} (version {version}) from OpenML: {error}. "
            f"{_how_to_get(spec.file)}"
        ) from error


def _split(X, y):
    """The fixed split of data sets without one: X_train, X_test, y_train, y_test."""
    classes = None if np.asarray(y).dtype.kind == "f" else y
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=classes)


def _rows(array):
    """Flat float32 rows; images are put channels first, and bytes of images into [0, 1]."""
    is_bytes = array.ndim > 2 and array.dtype == np.uint8
    if array.ndim == 4:
        array = array.transpose(0, 3, 1, 2)
    rows = array.reshape(len(array), -1).astype(np.float32)
    if is_bytes:
        rows /= 255
    return rows


def _load_arrays(spec, data_home):
    path = _find(spec.file, data_home)
    data = _bunch(spec, *(_openml_arrays(spec) if path is None else _file_arrays(path)))
    data.target_names = np.array(spec.target_names)
    data.image_shape = spec.image_shape
    return data


def _file_arrays(path):
    with np.load(path) as file:
        X_train, X_test = _rows(file["x_train"]), _rows(file["x_test"])
        return X_train, X_test, file["y_train"].astype(np.int64), file["y_test"].astype(np.int64)


def _openml_arrays(spec):
    fetched = _fetch(spec, as_frame=False)
    X = np.asarray(fetched.data, dtype=np.float32)
    low, high = spec.openml_range
    X = (X - low) / (high - low)
    # Labels start at 0 or at 1 there, and may be strings.
    y = np.unique(fetched.target.astype(np.float64), return_inverse=True)[1].astype(np.int64)
    n = spec.openml_n_train
    return _split(X, y) if n is None else (X[:n], X[n:], y[:n], y[n:])


def _load_table(spec, data_home):
    path = _find(spec.file, data_home)
    if path is None:
        table = _openml_table(spec)
    else:
        table = pd.read_csv(path, keep_default_na=False, low_memory=False)
    table = table.drop(columns=list(spec.drop), errors="ignore")
    y = table.pop(spec.target)
    split = table.pop("split") if "split" in table else None
    X = table.apply(_numbers_as_numbers)
    if split is None:
        X_train, X_test, y_train, y_test = _split(X, y)
    else:
        is_train = split == "train"
        X_train, X_test, y_train, y_test = X[is_train], X[~is_train], y[is_train], y[~is_train]
    data = _bunch(spec, X_train, X_test, y_train, y_test)
    data.feature_names = list(X.columns)
    if y.dtype.kind != "f":
        data.target_names = np.unique(y)
    return data


def _openml_table(spec):
    fetched = _fetch(spec, as_frame=True)
    table = fetched.data.copy()
    if spec.openml_columns:
        table.columns = spec.openml_columns.split()
    table[spec.target] = fetched.target
    for name in table:
        if not pd.api.types.is_numeric_dtype(table[name]):
            # Categories as in the files: plain strings, "?" where missing.
            column = table[name].astype(object)
            table[name] = column.where(column.notna(), "?").astype(str)
    if spec.openml_classes is not None:
        table[spec.target] = table[spec.target].replace(spec.openml_classes)
    return table


def _numbers_as_numbers(column):
    """A column of text that holds only numbers and "?" as numbers and NaN; others as they are."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    known = column.mask(column == "?")
    if known.isna().all():
        return column
    try:
        return pd.to_numeric(known)
    except ValueError:
        return column


def _bunch(spec, X_train, X_test, y_train, y_test):
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        DESCR=f"{spec.title}\n\n{spec.about}",
    )


_IMAGES = """Flat images in [0, 1], float32, channels first; ``image_shape`` is {shape}. Labels
            are 0, 1, ..., int64, named by ``target_names``."""

_TABLES = """DataFrames, with NaN for missing numbers and "?" for missing categories, and the Series
            ``{target}``, of which ``target_names`` are the classes, if it has such. The columns
            are ``feature_names``."""

_DOC = """{title}

    {about}

    Parameters
    ----------
    data_home : path-like, default=None
        Folder that has ``{file}``. By default the one that the
        environment variable ``SKDPGEN_DATA`` names; without either, {openml}.

    Returns
    -------
    data : Bunch
        ``X_train``, ``y_train``, ``X_test``, ``y_test``
            {fields}
        ``DESCR`` : str
            What the data are.

    Raises
    ------
    FileNotFoundError
        If the folder lacks the file, or none is named and OpenML does not have it.
    OSError
        If OpenML is asked, and cannot be reached.

    Examples
    --------
    >>> from skdpgen.datasets import load_{name}
    >>> data = load_{name}("path/to/folder")  # doctest: +SKIP
    """


def _loader(name):
    """The public function of one row of the table above."""
    spec = _SPECS[name]
    load = _load_table if spec.target else _load_arrays

    def loader(data_home: str | PathLike | None = None) -> Bunch:
        return load(spec, data_home)

    loader.__name__ = loader.__qualname__ = f"load_{name}"
    loader.__doc__ = _document(name, spec)
    return loader


def _document(name, spec):
    openml = "an error"
    if spec.openml is not None:
        note = f"; {spec.openml_note}".replace("\n", "\n        ") if spec.openml_note else ""
        openml = f"OpenML is asked\n        (``{spec.openml[0]}``, version {spec.openml[1]}{note})"
    fields = _TABLES.format(target=spec.target)
    return _DOC.format(
        name=name,
        title=spec.title,
        about=spec.about.replace("\n", "\n    "),
        file=spec.file,
        openml=openml,
        fields=fields if spec.target else _IMAGES.format(shape=spec.image_shape),
    )


load_mnist = _loader("mnist")
load_fashion_mnist = _loader("fashion_mnist")
load_usps = _loader("usps")
load_cifar10 = _loader("cifar10")
load_adult = _loader("adult")
load_bank_marketing = _loader("bank_marketing")
load_diabetes130 = _loader("diabetes130")
load_cervical_cancer = _loader("cervical_cancer")
load_california_housing = _loader("california_housing")


_OFFICE_FEATURES = ("surf", "googlenet", "decaf6", "effnet_lite0", "images32")


def load_office_caltech(
    features: str = "surf", *, data_home: str | PathLike | None = None
) -> Bunch:
    """Office-Caltech10: ten kinds of objects in up to four domains, for domain adaptation.

    Parameters
    ----------
    features : {"surf", "googlenet", "decaf6", "effnet_lite0", "images32"}, default="surf"
        - ``"surf"``: counts of 800 visual words.
        - ``"googlenet"``: 1,024 features; without the domain caltech.
        - ``"decaf6"``: 4,096 features; domains dslr and webcam only.
        - ``"effnet_lite0"``: 1,280 features of an EfficientNet-Lite0 trained on ImageNet. Not a
          published benchmark: its scores do not compare with those of papers.
        - ``"images32"``: RGB images of 32 × 32 pixels, whose rows are those of
          ``"effnet_lite0"``. The rows of the others are in orders of their own.
    data_home : path-like, default=None
        Folder that has ``office_caltech_<features>.npz``. By default the one that the
        environment variable ``SKDPGEN_DATA`` names.

    Returns
    -------
    data : Bunch
        ``amazon``, ``caltech``, ``dslr``, ``webcam`` : Bunch, those that the file has
            ``X``, float32 of shape (n_rows, n_features), and ``y``, int64 labels 0 to 9. Images
            are flat, channels first, in [0, 1].
        ``domains`` : list of str
            The names of the domains above.
        ``target_names`` : array of shape (10,)
            What the labels stand for.
        ``image_shape`` : tuple
            (3, 32, 32), of ``"images32"`` only.
        ``DESCR`` : str
            What the data are.

    Raises
    ------
    ValueError
        If `features` is unknown.
    FileNotFoundError
        If the folder lacks the file, or no folder is named.

    Examples
    --------
    >>> from skdpgen.datasets import load_office_caltech
    >>> data = load_office_caltech("surf", data_home="path/to/folder")  # doctest: +SKIP
    >>> X, y = data.amazon.X, data.amazon.y  # doctest: +SKIP
    """
    if features not in _OFFICE_FEATURES:
        raise ValueError(f"features must be one of {_OFFICE_FEATURES}, got {features!r}.")
    name = f"office_caltech_{features}.npz"
    path = _find(name, data_home)
    if path is None:
        raise _file_needed(name)
    data = Bunch(DESCR=f"Office-Caltech10, {features} features.")
    with np.load(path) as file:
        data.target_names = file["class_names"]
        data.domains = [key.removesuffix("_X") for key in file if key.endswith("_X")]
        for domain in data.domains:
            X, y = file[f"{domain}_X"], file[f"{domain}_y"]
            data[domain] = Bunch(X=_rows(X), y=y.astype(np.int64))
    if features == "images32":
        data.image_shape = (3, 32, 32)
    return data
