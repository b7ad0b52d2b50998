"""Generator networks of papers, as factories for the parameter `network`."""

import itertools

from torch import nn


def dpswgen(n_inputs, n_outputs):
    """Make hidden layers of 256, 512 and 256 units."""
    return nn.Sequential(
        nn.Linear(n_inputs, 256),
        nn.ReLU(),
        nn.Linear(256, 512),
        nn.ReLU(),
        nn.Linear(512, 256),
        nn.ReLU(),
        nn.Linear(256, n_outputs),
    )


def conv64(n_inputs, n_outputs):
    """Make Table 5 of Rakotomamonjy & Ralaivola 2021, for 64×64 RGB images, channels first.

    The table gives a stride of 1 to every layer, with which 64×64 cannot be reached; strides of 2
    after the first layer do. Its Tanh is a sigmoid here, for features in [0, 1].
    """
    layers = [nn.Unflatten(1, (n_inputs, 1, 1))]
    widths = [n_inputs, 512, 256, 128, 64]
    for i, (width, wider) in enumerate(itertools.pairwise(widths)):
        stride, padding = (1, 0) if i == 0 else (2, 1)
        layers += [
            nn.ConvTranspose2d(width, wider, 4, stride, padding, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(),
        ]
    layers += [nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Sigmoid(), nn.Flatten()]
    return nn.Sequential(*layers)


class ResidualUp(nn.Module):
    """Upsampling ×2 and two 3×3 convolutions, beside a 1×1 convolution: a block of BigGAN."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.path = nn.Sequential(
            nn.BatchNorm2d(in_channels),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Conv2d(out_channels, out_channels, 3, padding=1),
        )
        # A 1×1 convolution commutes with the upsampling and is cheaper before it.
        self.shortcut = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1), nn.Upsample(scale_factor=2)
        )

    def forward(self, images):
        return self.path(images) + self.shortcut(images)


def resnet32(n_inputs, n_outputs):
    """Make the residual blocks of Cao et al. 2021 for faces: 32×32 RGB images, channels first.

    After BigGAN, with three blocks of 64 channels; codes enter at the first layer only.
    """
    return nn.Sequential(
        nn.Linear(n_inputs, 64 * 4 * 4),
        nn.Unflatten(1, (64, 4, 4)),
        ResidualUp(64, 64),
        ResidualUp(64, 64),
        ResidualUp(64, 64),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 3, 3, padding=1),
        nn.Sigmoid(),
        nn.Flatten(),
    )


for factory in (conv64, resnet32):
    factory.unit_output = True
