# SPDX-License-Identifier: BSD-3-Clause
"""Public data sets, from files on disk or from OpenML."""

from ._loaders import (
    load_adult,
    load_bank_marketing,
    load_california_housing,
    load_cervical_cancer,
    load_cifar10,
    load_diabetes130,
    load_fashion_mnist,
    load_mnist,
    load_office_caltech,
    load_usps,
)

__all__ = [
    "load_adult",
    "load_bank_marketing",
    "load_california_housing",
    "load_cervical_cancer",
    "load_cifar10",
    "load_diabetes130",
    "load_fashion_mnist",
    "load_mnist",
    "load_office_caltech",
    "load_usps",
]
