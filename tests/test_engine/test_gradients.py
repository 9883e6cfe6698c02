"""Several processes compute what one computes."""

from functools import partial

import pytest
import torch
from ddp import gradients
from torch import nn

from mmsoftmor.models import SRViT


class Regressor(nn.Module):
    """A dense SR-ViT of R=4, windowed and global, and a mean squared error of its pooled map."""

    def __init__(self, with_cp):
        super().__init__()
        torch.manual_seed(0)
        arch = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32)
        self.backbone = SRViT(
            arch,
            img_size=32,
            patch_size=8,
            out_type="featmap",
            recursion_depth=4,
            window_size=2,
            global_attn_indexes=(1,),
            with_cp=with_cp,
        )
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3)
        self.double().train()  # what is left is no rounding

    def forward(self, images, targets):
        return (self.backbone(images)[0].mean((2, 3)) - targets).square().mean()


@pytest.mark.parametrize("with_cp", [False, True], ids=["plain", "checkpointed"])
def test_gradients_of_two_processes_on_halves_equal_one_on_the_whole(with_cp):
    kind = dict(generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    batch = torch.rand(4, 3, 40, 32, **kind), torch.rand(4, 16, **kind)
    build = partial(Regressor, with_cp)
    whole, halves = gradients(build, batch, 1), gradients(build, batch, 2)
    assert whole.keys() == halves.keys()
    assert any(name.startswith("backbone.routers") for name in whole)
    for name, gradient in whole.items():
        torch.testing.assert_close(halves[name], gradient, rtol=0, atol=1e-6)
    assert max(gradient.abs().max() for gradient in whole.values()) > 1e-3
