# SPDX-License-Identifier: BSD-3-Clause
"""Public image data sets of the examples, from files or from OpenML."""

from ._loaders import load_cifar10, load_fashion_mnist, load_mnist, load_office_caltech, load_usps

__all__ = ["load_cifar10", "load_fashion_mnist", "load_mnist", "load_office_caltech", "load_usps"]
