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


@pytest.fixture
def upernet_cfg():
    """Return the model config of the shipped UperNet with everything narrow."""

    def shrink(num_classes=3, **backbone):
        model = Config.fromfile(shipped_config("_base_/models/upernet_srvit.py")).model
        model.data_preprocessor.size = (64, 64)
        model.backbone.update(arch=TINY, img_size=64, **backbone)
        model.neck.update(in_channels=TINY["embed_dims"], out_channels=16)
        model.decode_head.update(in_channels=[16] * 4, channels=16, num_classes=num_classes)
        model.auxiliary_head.update(in_channels=16, channels=16, num_classes=num_classes)
        return model

    return shrink


@pytest.fixture
def make_upernet(upernet_cfg, randomize):
    """Return a function that builds the narrow UperNet with random weights."""
    from mmseg.registry import MODELS
    from mmseg.utils import register_all_modules

    import mmsoftmor.models.segmentors  # noqa: F401

    def build(test_cfg=None, **options):
        register_all_modules(init_default_scope=False)
        model = upernet_cfg(**options)
        model.test_cfg = test_cfg or model.test_cfg
        with DefaultScope.overwrite_default_scope("mmseg"):
            model = randomize(MODELS.build(model), std=0.3).eval()
        balance(model)
        return model

    @torch.no_grad()
    def balance(model):
        """Let every class win somewhere: equal mean and spread of its scores on noise."""
        noise = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
        classify, scores = model.decode_head.conv_seg, model(noise)
        spread = scores.std((0, 2, 3))
        classify.bias.copy_((classify.bias - scores.mean((0, 2, 3))) / spread)
        classify.weight.div_(spread.view(-1, 1, 1, 1))

    return build
