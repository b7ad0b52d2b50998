"""How useful synthetic data are."""

from ._distances import frechet_distance
from ._downstream import train_on_synthetic_score

__all__ = ["frechet_distance", "train_on_synthetic_score"]
