"""How useful synthetic data are."""

from ._downstream import train_on_synthetic_score

__all__ = ["train_on_synthetic_score"]
