"""ViTDet's simple feature pyramid: all levels from the one map of a plain backbone."""

import torch.nn.functional as F
from mmengine.model import BaseModule, ModuleList
from mmengine.registry import MODELS
from mmpretrain.models.utils import LayerNorm2d
from torch import Tensor, nn

from mmsoftmor.errors import InputError

# Always written out: the builders of mmcv and mmpretrain make it 1e-5 where it is left out.
EPS = 1e-6


# mmengine's root registry, so that mmdet, mmseg and mmpretrain all find it under its bare name.
@MODELS.register_module()
class SimpleFeaturePyramid(BaseModule):
    """Simple feature pyramid (ViTDet, arXiv 2203.16527, section 3).

    The map is resampled (x4: transposed convolution to C/2, norm, GELU, transposed convolution to
    C/4; x2: transposed convolution to C/2; x1; x1/2: max-pooling), then each level passes a 1x1 and
    a 3x3 convolution, each with a norm, without bias and without activation.

    Args:
        in_channels (int): Channels C of the backbone's maps.
        out_channels (int): Channels of every level. Defaults to 256.
        num_outs (int): Number of levels: four of stride 4, 8, 16, 32 at patch size 16, and further
            ones that subsample the last by two. Defaults to 5.
        init_cfg (dict, optional): Initialisation config. Defaults to None: torch's defaults.

    Raises:
        InputError: If ``num_outs`` is less than 4.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        num_outs: int = 5,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        resamplers = _resamplers(in_channels)
        if num_outs < len(resamplers):
            raise InputError(f"num_outs={num_outs} must be at least {len(resamplers)}")
        self.num_outs = num_outs
        self.levels = ModuleList(
            nn.Sequential(
                *layers,
                nn.Conv2d(channels, out_channels, 1, bias=False),
                LayerNorm2d(out_channels, eps=EPS),
                nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
                LayerNorm2d(out_channels, eps=EPS),
            )
            for layers, channels in resamplers
        )

    def forward(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Build the levels.

        Args:
            inputs (tuple[Tensor, ...]): One map (B, C, H, W) that all levels share, or four of that
                shape, one for each resampled level.

        Returns:
            tuple[Tensor, ...]: ``num_outs`` maps (B, out_channels, h, w), h and w being 4, 2, 1,
            1/2, 1/4, ... times H and W, rounded up.

        Raises:
            InputError: If the number of maps is neither one nor four.
        """
        if len(inputs) not in (1, len(self.levels)):
            raise InputError(
                f"SimpleFeaturePyramid got {len(inputs)} maps; set the backbone's out_indices to "
                f"one layer or to {len(self.levels)}"
            )
        maps = inputs if len(inputs) > 1 else inputs * len(self.levels)
        outs = [level(x) for level, x in zip(self.levels, maps, strict=True)]
        while len(outs) < self.num_outs:
            outs.append(F.max_pool2d(outs[-1], kernel_size=1, stride=2))
        return tuple(outs)


def _resamplers(channels: int) -> list[tuple[list[nn.Module], int]]:
    """Return the layers that resample by 4, 2, 1 and 1/2, and the channels they leave."""
    half, quarter = channels // 2, channels // 4
    up4 = [
        nn.ConvTranspose2d(channels, half, 2, stride=2),
        LayerNorm2d(half, eps=EPS),
        nn.GELU(),
        nn.ConvTranspose2d(half, quarter, 2, stride=2),
    ]
    up2 = [nn.ConvTranspose2d(channels, half, 2, stride=2)]
    down2 = [nn.MaxPool2d(2, stride=2, ceil_mode=True)]
    return [(up4, quarter), (up2, half), ([], channels), (down2, channels)]
