"""Public image data sets of benchmarks and examples, from files or from OpenML.

Each loader takes a folder of files; by default the one that the environment variable
``SKDPGEN_DATA`` names, and without it OpenML. It returns a Bunch with ``X_train``, ``y_train``,
``X_test``, ``y_test``, ``target_names`` and ``image_shape``: flat float32 images in [0, 1],
channels first, and int64 labels 0, 1, ... OpenML has no split of USPS and CIFAR-10: a quarter are
test images, stratified by class.
"""

import os
import string
from dataclasses import dataclass
from http.client import HTTPException
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

_DIGITS = tuple(string.digits)
_CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_OBJECTS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_OFFICE_FEATURES = ("surf", "googlenet", "decaf6", "effnet_lite0", "images32")


@dataclass(frozen=True, kw_only=True)
class _Images:
    """Image data set: its file, its source on OpenML, its shape and classes."""

    file: str
    openml: tuple[str, int]  # name, version
    image_shape: tuple[int, ...]
    target_names: tuple[str, ...]
    pixel_range: tuple[float, float] = (0, 255)  # on OpenML; mapped to [0, 1]
    n_train: int | None = None  # rows of the official train part, which come first on OpenML


_SPECS = {
    "mnist": _Images(
        file="mnist.npz",
        openml=("mnist_784", 1),
        image_shape=(28, 28),
        target_names=_DIGITS,
        n_train=60_000,
    ),
    "fashion_mnist": _Images(
        file="fashion_mnist.npz",
        openml=("Fashion-MNIST", 1),
        image_shape=(28, 28),
        target_names=_CLOTHES,
        n_train=60_000,
    ),
    "usps": _Images(
        file="usps.npz",
        openml=("USPS", 2),
        image_shape=(16, 16),
        target_names=_DIGITS,
        pixel_range=(-1, 1),
    ),
    "cifar10": _Images(
        file="cifar10_12k.npz",
        openml=("CIFAR_10", 1),
        image_shape=(3, 32, 32),
        target_names=_OBJECTS,
    ),
}


def find_file(file: str, data_home: str | PathLike | None = None) -> Path | None:
    """Return the path of a file in the data folder, or None if no folder is named.

    Parameters
    ----------
    file : str
    data_home : path-like, default=None
        None: the folder that the environment variable ``SKDPGEN_DATA`` names.
    """
    folder = data_home if data_home is not None else os.environ.get("SKDPGEN_DATA")
    if not folder:
        return None
    path = Path(folder).expanduser() / file
    if not path.is_file():
        raise FileNotFoundError(
            f"{file} is not in the data folder {str(path.parent)!r} "
            "(from data_home or the environment variable SKDPGEN_DATA)."
        )
    return path


def require_file(file: str, data_home: str | PathLike | None = None) -> Path:
    """Return the path of a file that OpenML does not have."""
    path = find_file(file, data_home)
    if path is None:
        raise FileNotFoundError(f"This data set is read from a file only. {_how_to_get(file)}")
    return path


def fetch(openml: tuple[str, int], file: str, *, as_frame: bool) -> Bunch:
    """Return a data set from OpenML, or raise OSError with the file that replaces it."""
    name, version = openml
    try:
        return fetch_openml(name, version=version, as_frame=as_frame)
    # scikit-learn raises a ValueError for a refusal of the server, or for a broken download.
    except (OSError, HTTPException, ValueError) as error:
        raise OSError(
            f"Could not get {name!r} (version {version}) from OpenML: {error}. {_how_to_get(file)}"
        ) from error


def split(X, y) -> list:
    """Return X_train, X_test, y_train, y_test: the fixed split of data sets without one."""
    classes = None if np.asarray(y).dtype.kind == "f" else y
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=classes)


def _how_to_get(file: str) -> str:
    return (
        f"Set data_home, or the environment variable SKDPGEN_DATA, to a folder that has {file!r}."
    )


def _flatten(array: np.ndarray) -> np.ndarray:
    """Return flat float32 rows, with images channels first and bytes of images in [0, 1]."""
    is_bytes = array.ndim > 2 and array.dtype == np.uint8
    if array.ndim == 4:
        array = array.transpose(0, 3, 1, 2)
    rows = array.reshape(len(array), -1).astype(np.float32)
    return rows / 255 if is_bytes else rows


def _load(name: str, data_home: str | PathLike | None, title: str) -> Bunch:
    spec = _SPECS[name]
    path = find_file(spec.file, data_home)
    if path is None:
        X_train, X_test, y_train, y_test = _fetch_images(spec)
    else:
        with np.load(path) as file:
            X_train, X_test = (_flatten(file[key]) for key in ("x_train", "x_test"))
            y_train, y_test = (file[key].astype(np.int64) for key in ("y_train", "y_test"))
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        target_names=np.array(spec.target_names),
        image_shape=spec.image_shape,
        DESCR=title,
    )


def _fetch_images(spec: _Images) -> list[np.ndarray]:
    fetched = fetch(spec.openml, spec.file, as_frame=False)
    low, high = spec.pixel_range
    X = (np.asarray(fetched.data, dtype=np.float32) - low) / (high - low)
    # Labels on OpenML start at 0 or 1, and may be strings.
    y = np.unique(fetched.target.astype(np.float64), return_inverse=True)[1].astype(np.int64)
    n = spec.n_train
    return split(X, y) if n is None else [X[:n], X[n:], y[:n], y[n:]]


def load_mnist(data_home: str | PathLike | None = None) -> Bunch:
    """Load MNIST: 28 × 28 grey images of handwritten digits, 60,000 and 10,000."""
    return _load("mnist", data_home, "MNIST: 28 × 28 grey images of handwritten digits")


def load_fashion_mnist(data_home: str | PathLike | None = None) -> Bunch:
    """Load Fashion-MNIST: 28 × 28 grey images of clothes, 60,000 and 10,000."""
    return _load("fashion_mnist", data_home, "Fashion-MNIST: 28 × 28 grey images of clothes")


def load_usps(data_home: str | PathLike | None = None) -> Bunch:
    """Load USPS: 16 × 16 grey images of handwritten digits, 7,291 and 2,007."""
    return _load("usps", data_home, "USPS: 16 × 16 grey images of handwritten digits")


def load_cifar10(data_home: str | PathLike | None = None) -> Bunch:
    """Load CIFAR-10: 32 × 32 RGB images of ten kinds of objects.

    The file holds 1,000 train and 200 test images per class of the official parts, decoded from
    JPEG, so that pixels differ slightly from the original's.
    """
    return _load("cifar10", data_home, "CIFAR-10: 32 × 32 RGB images of ten kinds of objects")


def load_office_caltech(
    features: str = "surf", *, data_home: str | PathLike | None = None
) -> Bunch:
    """Load Office-Caltech10: ten kinds of objects in up to four domains, for domain adaptation.

    Parameters
    ----------
    features : {"surf", "googlenet", "decaf6", "effnet_lite0", "images32"}, default="surf"
        - ``"surf"``: counts of 800 visual words.
        - ``"googlenet"``: 1,024 features; without the domain caltech.
        - ``"decaf6"``: 4,096 features; domains dslr and webcam only.
        - ``"effnet_lite0"``: 1,280 features of an EfficientNet-Lite0 trained on ImageNet. Not a
          published benchmark: its scores are not comparable with those of papers.
        - ``"images32"``: RGB images of 32 × 32 pixels, in the order of ``"effnet_lite0"``. The
          other features have rows in other orders.
    data_home : path-like, default=None
        Folder that has ``office_caltech_<features>.npz``. None: the folder that the environment
        variable ``SKDPGEN_DATA`` names.

    Returns
    -------
    data : Bunch
        A Bunch for each domain in the file (``amazon``, ``caltech``, ``dslr``, ``webcam``), with
        ``X`` and ``y``, and ``domains``, the names of the domains.
    """
    if features not in _OFFICE_FEATURES:
        raise ValueError(f"features must be one of {_OFFICE_FEATURES}, got {features!r}.")
    path = require_file(f"office_caltech_{features}.npz", data_home)
    data = Bunch(DESCR=f"Office-Caltech10, {features} features.")
    with np.load(path) as file:
        data.target_names = file["class_names"]
        data.domains = [key.removesuffix("_X") for key in file if key.endswith("_X")]
        for domain in data.domains:
            X, y = file[f"{domain}_X"], file[f"{domain}_y"]
            data[domain] = Bunch(X=_flatten(X), y=y.astype(np.int64))
    if features == "images32":
        data.image_shape = (3, 32, 32)
    return data
