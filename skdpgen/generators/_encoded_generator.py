"""What generators share that can learn in noisy principal components."""

from abc import abstractmethod

from .._validation import check_positive, check_share, check_size
from ..base import BaseGenerator
from ..networks.components import PrincipalComponents
from ..privacy import CovarianceMechanism

__all__ = ["EncodedGenerator"]


class EncodedGenerator(BaseGenerator):
    """Plans and makes the release of principal components; subclasses learn in them.

    Parameters `encoder`, `encoder_share` and `n_components` are those that
    `DPSlicedWassersteinGenerator` documents.
    """

    def _check_params(self):
        super()._check_params()
        check_positive("n_components", self.n_components, whole=True, optional=True)
        check_share("encoder_share", self.encoder_share)

    def _has_dp_pca(self):
        return isinstance(self.encoder, (str, tuple))

    def _first_shares(self, codec):
        """Return the shares of what is released before anything is learnt, and the δ' of it."""
        shares, thresholds = self._inference_shares(codec)
        if self._has_dp_pca():
            check_size("X", codec.n_columns, codec.n_columns)
            shares[CovarianceMechanism.name] = self.encoder_share
        return shares, thresholds

    def _release_components(self, curator, n_columns):
        """Return noisy principal components if they are the encoder, else None."""
        if not self._has_dp_pca():
            return None
        return PrincipalComponents.from_noisy_moments(
            curator.release(CovarianceMechanism()),
            curator.n_records,
            self._n_encoded(n_columns),
            **self._scaling(),
        ).to(curator.device)

    def _scaling(self):
        """Return how components are scaled, as keywords of `PrincipalComponents`."""
        return {"whiten": 0.0}

    def _n_encoded(self, n_columns):
        """Return the number of columns after the encoder."""
        if not self._has_dp_pca():
            return n_columns
        return min(self.n_components or self._default_n_components(), n_columns)

    @abstractmethod
    def _default_n_components(self):
        """Return how many components are kept, unless `n_components` says it."""
