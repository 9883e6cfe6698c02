"""Mixed precision that works on the device at hand."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS, OPTIM_WRAPPERS

from mmsoftmor.errors import InputError

AMP_DTYPES = ("bfloat16", "float16")


def prepare_precision(config: Config, amp: bool = False, dtype: str | None = None) -> None:
    """Turn on mixed precision if asked for, and fit a config that has it to the device.

    Args:
        config: Changed in place: ``optim_wrapper`` and ``custom_hooks``.
        amp: Turn it on where the config does not.
        dtype: ``bfloat16`` or ``float16``. Default: the config's; else bfloat16 where the device
            computes in it (NVIDIA Ampere and later, CPU), float16 elsewhere.

    Raises:
        InputError: float16 was asked for without a GPU, or the optimizer wrapper of the config is
            of a kind that mixed precision does not know.
    """
    wrapper = config.optim_wrapper
    kind = wrapper.get("type", "OptimWrapper")
    if kind not in ("OptimWrapper", "AmpOptimWrapper"):
        if amp:
            raise InputError(
                f"--amp: optim_wrapper.type = {kind!r} cannot be turned into AMP: "
                "leave --amp out or use type='OptimWrapper'"
            )
        return
    if not amp and kind == "OptimWrapper":
        return
    on_gpu = torch.cuda.is_available()
    if dtype == "float16" and not on_gpu:
        raise InputError("--amp-dtype float16 needs a GPU: use bfloat16")
    if dtype or kind == "OptimWrapper":
        wrapper.update(_amp_settings(dtype or _native_dtype()))
    if not on_gpu:
        wrapper.update(type="CPUAmpOptimWrapper")
        for key in ("dtype", "loss_scale", "use_fsdp"):
            wrapper.pop(key, None)
    config.custom_hooks = [*(config.get("custom_hooks") or []), dict(type="Float32BoxHook")]


def _native_dtype() -> str:
    has_bfloat16 = not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] >= 8
    return "bfloat16" if has_bfloat16 else "float16"


def _amp_settings(dtype: str) -> dict:
    # bfloat16 has the range of float32: scaling the loss would only cost a synchronisation.
    scale = dict(enabled=False) if dtype == "bfloat16" else "dynamic"
    return dict(type="AmpOptimWrapper", dtype=dtype, loss_scale=scale)


@OPTIM_WRAPPERS.register_module()
class CPUAmpOptimWrapper(OptimWrapper):
    """bfloat16 autocast on the CPU, where MMEngine's ``AmpOptimWrapper`` refuses to work."""

    @contextmanager
    def optim_context(self, model):
        """Forward pass in bfloat16 where autocast deems it safe; weights stay float32."""
        with super().optim_context(model), torch.autocast("cpu", dtype=torch.bfloat16):
            yield


@HOOKS.register_module()
class Float32BoxHook(Hook):
    """Compute boxes in float32 under mixed precision.

    mmdet casts anchors to the type of the scores and boxes to the type of the features they read:
    at 1024 pixels a coordinate is then a multiple of 0.5 in float16 and of 4 in bfloat16, and mmcv
    has no bfloat16 RoIAlign and NMS at all. So RoI extractors read, and box heads return, float32.
    """

    def before_train(self, runner) -> None:
        for module in runner.model.modules():
            if hasattr(module, "roi_layers"):
                module.register_forward_pre_hook(lambda _, inputs: _float32(inputs))
            elif hasattr(module, "bbox_coder"):
                module.register_forward_hook(lambda _, inputs, outputs: _float32(outputs))


def _float32(value):
    """Cast the floating-point tensors of a nested structure."""
    if isinstance(value, (list, tuple)):
        return type(value)(_float32(item) for item in value)
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.float() if is_float else value
