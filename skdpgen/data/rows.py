# SPDX-License-Identifier: BSD-3-Clause
"""Clipping of rows to a ball: functions of each row alone, to the bit."""

import torch


def clip_rows(rows: torch.Tensor, radius: float) -> torch.Tensor:
    """Scale each row down to norm at most `radius`, as a function of that row alone."""
    # The clamp first: a square that underflows must not make a factor infinite.
    norms = sum_rows(rows.square()).clamp(min=radius**2).sqrt()
    # A pass over wide rows that changes no bit takes longer than this check. An accelerator would
    # have to wait for it.
    if rows.device.type == "cpu" and (norms == radius).all():
        return rows
    return rows * (radius / norms)


def sum_rows(values: torch.Tensor) -> torch.Tensor:
    """Add up each row, to (n_rows, 1), in an order that depends on its length only."""
    while (n := values.shape[1]) > 1:
        folded = values[:, : n // 2] + values[:, n // 2 : n // 2 * 2]
        values = torch.cat([folded, values[:, -1:]], dim=1) if n % 2 else folded
    return values
