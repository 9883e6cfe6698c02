"""Tiny models that several folders of tests share."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from mmsoftmor.apis.configs import shipped_config
from mmsoftmor.models import SRViT

TINY = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


@pytest.fixture
def randomize():
    """Return a function that gives every parameter of a module random values, norms near one.

    The zeros and ones of a fresh model would let a swapped or forgotten tensor pass.
    """

    def fill(module, seed=0, std=0.05):
        generator = torch.Generator().manual_seed(seed)
        for name, param in module.named_parameters():
            values = torch.randn(param.shape, generator=generator) * std
            with torch.no_grad():
                is_norm_weight = param.ndim == 1 and name.endswith("weight")
                param.copy_(values + 1 if is_norm_weight else values)
        return module

    return fill


@pytest.fixture
def make_srvit(randomize):
    """Return a function that builds a random SR-ViT of four layers and 32 channels."""

    def build(seed=0, std=0.05, **options):
        options = {"arch": TINY, "img_size": 64, **options}
        return randomize(SRViT(**options), seed, std).eval()

    return build


@pytest.fixture
def mask_rcnn_cfg():
    """Return the model config of the shipped Mask R-CNN with everything narrow."""

    def shrink(**backbone):
        model = Config.fromfile(shipped_config("_base_/models/maskrcnn_srvit.py")).model
        model.data_preprocessor.batch_augments = None
        model.backbone.update(arch=TINY, img_size=64, with_cp=False, window_size=4, **backbone)
        model.neck.update(in_channels=TINY["embed_dims"], out_channels=16)
        model.rpn_head.update(in_channels=16, feat_channels=16)
        for part in ("bbox_roi_extractor", "mask_roi_extractor"):
            model.roi_head[part].out_channels = 16
        model.roi_head.bbox_head.update(
            in_channels=16, conv_out_channels=16, fc_out_channels=32, num_classes=3
        )
        model.roi_head.mask_head.update(in_channels=16, conv_out_channels=16, num_classes=3)
        return model

    return shrink


@pytest.fixture
def make_mask_rcnn(mask_rcnn_cfg):
    """Return a function that builds the narrow Mask R-CNN through mmdet's registry."""
    from mmdet.registry import MODELS
    from mmdet.utils import register_all_modules

    def build(**backbone):
        register_all_modules(init_default_scope=False)
        with DefaultScope.overwrite_default_scope("mmdet"):
            return MODELS.build(mask_rcnn_cfg(**backbone))

    return build
