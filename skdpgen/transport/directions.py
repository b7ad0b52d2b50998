# SPDX-License-Identifier: BSD-3-Clause
"""Random directions in the unit sphere, independent or in orthonormal blocks."""

import numpy as np
import torch

from ..checks import check_number, check_size, flag


def _haar(gaussian):
    """Orthonormal factor of a QR; R's signs are fixed, without which it is not Haar [2]_."""
    q, r = torch.linalg.qr(gaussian)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    return q * signs.unsqueeze(-2).to(q)


def random_directions(
    n_features: int,
    n_projections: int,
    *,
    orthogonal: bool = True,
    generator=None,
    dtype=torch.float32,
    device="cpu",
) -> torch.Tensor:
    """Random directions, each uniform on the unit sphere.

    Orthonormal blocks cover the space more evenly than independent directions, and leave the
    mean over slices unbiased with, in general, less variance [1]_.

    Parameters
    ----------
    n_features : int
        Dimension d of the space.
    n_projections : int
        Number k of directions.
    orthogonal : bool, default=True
        True: independent Haar orthonormal blocks of d columns, the last one of the k mod d that
        remain. False: independent directions.
    generator : torch.Generator or numpy.random.Generator, optional
        A CPU generator; None uses torch's default one. Draws are made on the CPU in float64, so
        that every device sees the same directions.
    dtype, device
        Dtype and device of the result.

    Returns
    -------
    directions : tensor of shape (n_features, n_projections)
        Unit columns.

    Raises
    ------
    ValueError
        If ``n_features`` or ``n_projections`` is less than 1.

    References
    ----------
    .. [1] M. Rowland, J. Hron, Y. Tang, K. Choromanski, T. Sarlos, A. Weller, "Orthogonal
       estimation of Wasserstein distances", AISTATS 2019.
    .. [2] F. Mezzadri, "How to generate random matrices from the classical compact groups",
       Notices of the AMS 54 (2007), section 5.

    Examples
    --------
    >>> import torch
    >>> U = random_directions(3, 5, generator=torch.Generator().manual_seed(0))
    >>> U.shape
    torch.Size([3, 5])
    >>> torch.allclose(U[:, :3].T @ U[:, :3], torch.eye(3), atol=1e-6)
    True
    """
    for name, value in (("n_features", n_features), ("n_projections", n_projections)):
        check_number(name, value, whole=True)
    flag("orthogonal", orthogonal)
    check_size("n_projections", n_features, n_projections)

    def gaussian(*shape):
        if isinstance(generator, np.random.Generator):
            return torch.from_numpy(generator.standard_normal(shape))
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    if orthogonal:
        n_blocks, rest = divmod(n_projections, n_features)
        blocks = _haar(gaussian(n_blocks, n_features, n_features))
        blocks = blocks.transpose(0, 1).reshape(n_features, -1)
        directions = torch.cat([blocks, _haar(gaussian(n_features, rest))], dim=1)
    else:
        directions = gaussian(n_features, n_projections)
        directions = directions / directions.norm(dim=0)
    return directions.to(device=device, dtype=dtype)
