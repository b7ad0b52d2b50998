"""How useful synthetic data are."""

from ._distances import frechet_distance
from ._downstream import train_on_synthetic_score
from ._report import Report, report

__all__ = ["Report", "frechet_distance", "report", "train_on_synthetic_score"]
