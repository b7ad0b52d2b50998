# SPDX-License-Identifier: BSD-3-Clause
"""Base of generators that train a network."""

from ..base import CentralGenerator
from ..checks import factory_of, whole
from ..learners.rehearsal import try_generator
from ..learners.rows import RowNetwork, find_outputs, has_unit_output, make_rows
from ..networks.generators import GENERATORS
from ..params import choose_device

# Check of generator networks, by their names, or factories of them.
check_network = factory_of(GENERATORS)


class NetworkGenerator(CentralGenerator):
    """Base of generators that train a network on the releases, and sample from it."""

    _checks = {"network": check_network, "latent_dim": whole()}
    _takes_components = True

    def _list_array_params(self):
        # A network of images makes features in [0, 1], which tables do not have.
        makes_images = self.network is not None and has_unit_output(self.network)
        return super()._list_array_params() + ["network"] * makes_images

    def _try_network(self, terms, format, batch_size, n_classes=None, optimizer="adam") -> None:
        """Raise an error if the network does not fit the format, before the budget is spent."""
        # A network must make any number of columns that are still to be inferred.
        n_columns = terms.n_columns or len(format.schema)
        n_outputs = find_outputs(self.network, format, n_columns)[1]
        images = getattr(format, "images", None)
        n_classes = terms.n_classes if n_classes is None else n_classes
        sizes, device = (self.latent_dim, n_classes, n_outputs), choose_device(self.device)
        try_generator(self.network, *sizes, batch_size, device, optimizer, images)

    def _make_rows(self, release, curator, format, noise) -> RowNetwork:
        """Return the network to be trained, with the components of the rows."""
        # Networks are seeded from the noise source, so that a fit follows from `random_state`
        # alone.
        n_encoded, seed = self._count_encoded(format), noise.seed()
        rows = make_rows(self.network, format, self.latent_dim, curator.n_classes, seed, n_encoded)
        rows.set_components(self._find_components(curator, format, **release.scaling))
        return rows.to(curator.device)

    def _generate(self, classes, generator):
        return self._rows.sample(classes, generator)
