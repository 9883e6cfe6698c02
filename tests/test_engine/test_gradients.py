"""Several processes compute what one computes."""

import torch
from ddp import gradients
from torch import nn


class ConvNet(nn.Module):
    """Convolutions, channel norm and a mean squared error."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.GELU(), nn.GroupNorm(2, 8), nn.Conv2d(8, 4, 3)
        ).double()  # what is left is no rounding

    def forward(self, images, targets):
        return (self.layers(images).mean((2, 3)) - targets).square().mean()


def test_gradients_of_two_processes_on_halves_equal_one_on_the_whole():
    kind = dict(generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    batch = torch.rand(4, 3, 12, 12, **kind), torch.rand(4, 4, **kind)
    whole, halves = gradients(ConvNet, batch, 1), gradients(ConvNet, batch, 2)
    assert whole.keys() == halves.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(halves[name], gradient, rtol=0, atol=1e-6)
        assert gradient.abs().max() > 1e-3, f"{name} says nothing"
