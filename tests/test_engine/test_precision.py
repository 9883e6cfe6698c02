"""Mixed precision fits the device, also where mmcv has no kernel for it."""

import numpy as np
import pytest
import torch
from mmengine.config import Config

from mmsoftmor.engine import precision
from mmsoftmor.engine.launch import train
from mmsoftmor.errors import InputError


def wrapper(**settings):
    return Config(dict(optim_wrapper=dict(optimizer=dict(lr=1.0), **settings)))


@pytest.fixture(params=[(8, 0), (7, 5)])
def gpu(request, monkeypatch):
    """Pretend to have a GPU of this compute capability."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: request.param)
    return request.param


def test_native_type_of_the_gpu_is_the_default(gpu):
    config = wrapper(type="OptimWrapper", clip_grad=dict(max_norm=1.0))
    precision.prepare_precision(config, amp=True)
    assert config.optim_wrapper.type == "AmpOptimWrapper"
    assert config.optim_wrapper.dtype == ("bfloat16" if gpu >= (8, 0) else "float16")
    assert config.optim_wrapper.clip_grad == dict(max_norm=1.0)
    assert config.custom_hooks == [dict(type="Float32BoxHook")]


def test_config_that_has_amp_keeps_its_type_unless_told(gpu):
    config = wrapper(type="AmpOptimWrapper", dtype="float16", loss_scale=512.0)
    precision.prepare_precision(config, amp=True)
    assert (config.optim_wrapper.dtype, config.optim_wrapper.loss_scale) == ("float16", 512.0)
    precision.prepare_precision(config, amp=True, dtype="bfloat16")
    assert config.optim_wrapper.dtype == "bfloat16"
    assert config.optim_wrapper.loss_scale == dict(enabled=False)


def test_nothing_changes_where_nobody_asked():
    config = wrapper()
    before = config.pretty_text
    precision.prepare_precision(config)
    assert config.pretty_text == before


def test_float16_without_a_gpu_is_refused():
    with pytest.raises(InputError, match="float16 needs a GPU"):
        precision.prepare_precision(wrapper(), amp=True, dtype="float16")


def test_other_wrappers_are_refused():
    with pytest.raises(InputError, match="'DeepSpeedOptimWrapper' cannot"):
        precision.prepare_precision(wrapper(type="DeepSpeedOptimWrapper"), amp=True)


@pytest.mark.parametrize("by", ["switch", "config"])
def test_cpu_computes_in_bfloat16_and_keeps_float32_weights(tiny, by, monkeypatch):
    from mmpretrain.models.heads import LinearClsHead

    seen, stock = set(), LinearClsHead.forward
    monkeypatch.setattr(
        LinearClsHead, "forward", lambda self, x: seen.add(stock(self, x).dtype) or stock(self, x)
    )
    config = tiny(train_cfg__max_epochs=1, val_begin=9)
    config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    if by == "config":
        config.optim_wrapper.update(type="AmpOptimWrapper", dtype="float16", loss_scale="dynamic")
    runner = train(config, amp=by == "switch")
    assert seen == {torch.bfloat16}
    assert {p.dtype for p in runner.model.parameters()} == {torch.float32}


def test_mask_rcnn_trains_in_bfloat16_where_its_operators_have_no_kernel(detector):
    from mmcv.ops import RoIAlign

    with pytest.raises(RuntimeError, match="not implemented for 'BFloat16'"):
        RoIAlign(7)(torch.ones(1, 4, 8, 8).bfloat16(), torch.zeros(1, 5).bfloat16())
    runner = train(detector(), amp=True)
    history = runner.message_hub.get_scalar("train/loss_mask").data[0]
    assert len(history) == 4 and np.isfinite(history).all()


def test_roi_extractors_see_float32_boxes_and_features():
    from mmdet.models.roi_heads.roi_extractors import SingleRoIExtractor

    class Runner:
        model = SingleRoIExtractor(dict(type="RoIAlign", output_size=2), 4, [1])

    boxes = torch.tensor([[0, 101.3, 5.1, 109.2, 17.7]])
    features = torch.rand(1, 4, 20, 120).bfloat16()
    exact = Runner.model((features.float(),), boxes)
    precision.Float32BoxHook().before_train(Runner)
    pooled = Runner.model((features,), boxes)
    assert pooled.dtype == torch.float32
    torch.testing.assert_close(pooled, exact)
