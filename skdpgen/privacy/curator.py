"""The one door to private rows."""

import contextlib
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from .budget import Reservation
from .certificate import Certificate
from .exceptions import PlanError
from .mechanisms import clip_rows

__all__ = ["Curator"]

# Rows are read in blocks of this size however they arrive, so that memory does not grow with n
# and chunked rows give the same sums, to the bit, as rows in memory.
_BLOCK = 256


class Curator:
    """Holds private rows and hands out the releases of a plan.

    The plan, which was priced against its budget, is reserved in every open `PrivacyBudget`; only
    then are the rows read and checked. Each release enters the ledger before a row is read for
    it. After `close` no row is held.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or callable
        Rows in memory or memory-mapped; or a function that returns a fresh iterator over chunks,
        each ``X`` or ``(X, y)``.
    y : array of shape (n_samples,), default=None
        Labels, or numbers if `classes` is None. Not with chunks, which bring their own.
    plan : Plan
        What may be released.
    noise : NoiseSource
        Where the noise comes from.
    classes : array of shape (n_classes,), default=None
        The public labels that `y` may hold.
    prepare : callable, default=None
        A public map, applied to blocks: ``prepare(X, y)`` gives rows, one for each. `y` is None
        unless it holds numbers.
    clip_norm : float, default=1.0
        Public radius; prepared rows are scaled down to it, each on its own.
    null : array of bool of shape (n_samples,), default=None
        Rows that count as absent.
    device : str or torch.device, default="cpu"
        Where mechanisms compute.
    verbose : int, default=0
        1 shows a progress bar over the (public) number of blocks.

    Attributes
    ----------
    n_records : int
        Number of records, which is public.
    n_classes : int
        Number of classes, 1 where there are none.
    """

    def __init__(
        self,
        X,
        y=None,
        *,
        plan,
        noise,
        classes=None,
        prepare=None,
        clip_norm=1.0,
        null=None,
        device="cpu",
        verbose=0,
    ):
        # Squares of much smaller norms underflow, and with them the clip.
        if not 1e-100 <= clip_norm < math.inf:
            raise ValueError(
                f"clip_norm must be positive and finite (at least 1e-100); got {clip_norm!r}."
            )
        self.plan = plan
        self.clip_norm = clip_norm
        self.device = device
        self._noise = noise
        self._verbose = verbose
        self._classes = None if classes is None else pd.Index(classes)
        self.n_classes = 1 if classes is None else len(self._classes)
        self._prepare = prepare
        self._null = None if null is None else np.array(null)
        if self._null is not None and (self._null.dtype != bool or self._null.ndim != 1):
            raise ValueError("null must be a 1-dimensional array of bool.")
        self._chunks = X if callable(X) else lambda: iter([(X, y)])
        self._ledger = []
        self._reservation = Reservation(plan, noise.reproducible)
        try:
            self.n_records = self._check()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __getstate__(self):
        raise TypeError("A Curator holds private rows and cannot be pickled or copied.")

    def release(self, mechanism):
        """Run a planned mechanism on the rows and return its noisy result.

        Parameters
        ----------
        mechanism : SumMechanism
            Its name must be the next in the plan, which fixes its noise.

        Raises
        ------
        PlanError
            If it is not; no row is read then.
        """
        if self._chunks is None:
            raise PlanError("The curator is closed and holds no rows.")
        done = len(self._ledger)
        if done == len(self.plan.releases) or self.plan.releases[done][0] != mechanism.name:
            planned = [name for name, _ in self.plan.releases[done:]]
            raise PlanError(f"{mechanism.name!r} is not the next planned release; left: {planned}.")
        noise_multiplier = self.plan.multiplier(mechanism.name)
        self._ledger.append(self.plan.releases[done])
        blocks = tqdm(
            self._blocks(),
            desc=mechanism.name,
            total=-(-self.n_records // _BLOCK),
            disable=not self._verbose,
        )
        return mechanism.run(
            blocks,
            self.n_records,
            noise_multiplier=noise_multiplier,
            relation=self.plan.relation,
            noise=self._noise,
        )

    def close(self):
        """Let go of the rows; budgets keep the charge for what was released only."""
        self._chunks = self._null = self._prepare = None
        self._reservation.settle(event for _, event in self._ledger)

    def certificate(self, assumptions=()):
        """Return the certificate of what was released so far."""
        done = replace(self.plan, releases=tuple(self._ledger))
        return Certificate.of_plan(done, assumptions, reproducible=self._noise.reproducible)

    def _check(self):
        """Read everything once, count the records and refuse bad ones before anything is spent."""
        n_records = sum(len(rows) for rows, _ in self._prepared())
        if n_records == 0:
            raise ValueError("X holds no rows.")
        if self._null is not None and len(self._null) != n_records:
            raise ValueError("null must have one entry per record.")
        return n_records

    def _blocks(self):
        """Yield (rows, membership): rows in the unit ball, in blocks of a fixed size."""
        start = 0
        for rows, codes in self._prepared():
            membership = torch.zeros(len(rows), self.n_classes, dtype=torch.float64)
            membership[torch.arange(len(rows)), codes] = 1
            if self._null is not None:
                membership[torch.as_tensor(self._null[start : start + len(rows)])] = 0
            start += len(rows)
            rows = clip_rows(rows.to(self.device), self.clip_norm) / self.clip_norm
            yield rows, membership.to(self.device)
        if start != self.n_records:
            raise ValueError(
                "The chunks held another number of rows than before; a function that gives them "
                "must return a fresh iterator over the same rows at each call."
            )

    def _prepared(self):
        """Yield blocks of prepared rows with the positions of their labels in `classes`."""
        for X, y in _rebatch(self._arrays(), _BLOCK):
            if self._classes is None:
                codes, numbers = np.zeros(len(X), dtype=int), y
            else:
                codes, numbers = self._classes.get_indexer(y), None
            if (codes < 0).any():
                raise ValueError("y holds labels that are not among the given classes.")
            rows = self._apply(X, numbers)
            if not torch.isfinite(rows).all():
                raise ValueError(
                    "Rows are NaN or infinite, or the encoder makes them so; impute or drop them."
                )
            yield rows, torch.as_tensor(codes)

    def _arrays(self):
        """Yield (X, y) chunks as they come."""
        chunks = self._chunks()
        if not hasattr(chunks, "__next__"):
            raise TypeError("A function that yields chunks must return a fresh iterator.")
        for chunk in chunks:
            X, y = chunk if isinstance(chunk, tuple) else (chunk, None)
            X, y = np.asanyarray(X), None if y is None else np.asanyarray(y)
            if X.ndim != 2 or (y is not None and len(y) != len(X)):
                raise ValueError("X must be 2-dimensional, with one label per row in y.")
            yield X, y

    def _apply(self, X, numbers):
        """Apply the public map; what it raises may quote private values and goes no further."""
        if self._prepare is None:
            return torch.tensor(X, dtype=torch.float64)
        rows = None
        with contextlib.suppress(Exception):
            rows = np.asarray(self._prepare(X, numbers), dtype=np.float64)
        if rows is None or rows.ndim != 2 or len(rows) != len(X):
            raise ValueError(
                "The encoder failed on the rows of X; its message is withheld, since it may quote "
                "them. Try it on public rows."
            )
        return torch.tensor(rows)


def _rebatch(chunks, size):
    """Cut chunks of any sizes into blocks of `size` rows and a last, shorter one."""
    held_X, held_y, held = [], [], 0
    for X, y in chunks:
        start = 0
        while start < len(X):
            stop = min(len(X), start + size - held)
            held_X.append(X[start:stop])
            held_y.append(None if y is None else y[start:stop])
            held += stop - start
            start = stop
            if held == size:
                yield _join(held_X, held_y)
                held_X, held_y, held = [], [], 0
    if held:
        yield _join(held_X, held_y)


def _join(Xs, ys):
    if len(Xs) == 1:
        return Xs[0], ys[0]
    return np.concatenate(Xs), None if ys[0] is None else np.concatenate(ys)
