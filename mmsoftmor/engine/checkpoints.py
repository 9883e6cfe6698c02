"""Checkpoints in and out of a run: what is loaded is fitted and reported, what is saved labelled.

Importing this also makes MMEngine's loader read files and addresses as ``init_cfg`` does: torch
files without running code from them, safetensors, and ``mmsoftmor://``.
"""

from __future__ import annotations

from mmengine.hooks import EMAHook, Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import CheckpointLoader
from torch import nn

from mmsoftmor.checkpoints.facts import META_KEY, facts_of_model
from mmsoftmor.checkpoints.load import log_report
from mmsoftmor.checkpoints.reader import SHIPPED, read_content, unwrap
from mmsoftmor.checkpoints.whole import find_backbone, fit_model, require_complete
from mmsoftmor.errors import InputError


@HOOKS.register_module()
class BackboneCheckpointHook(Hook):
    """Fit and report what ``load_from`` loads; write SR-ViT's facts into what is saved.

    ``load_from`` then takes every file that ``init_cfg`` takes: a plain ViT's of any naming scheme,
    or our own of another task or recursion depth. Of a run that kept a moving average it is the
    average. The backbone's own ``init_cfg`` is not loaded then, nor in resuming. Saved checkpoints
    carry architecture, recursion depth and unit, and mixing in ``meta['srvit']``. Models without an
    SR-ViT are left alone.

    Args:
        allow_partial: Whether a file that lacks a part of the backbone may be loaded.

    Raises:
        InputError: In loading, if the file does not fit the backbone; in resuming, if it is of
            another model or has an average that the run does not keep; in testing, if it does not
            give every tensor of the model.
    """

    priority = "VERY_HIGH"  # before hooks that copy what is loaded, as the average of weights

    def __init__(self, allow_partial: bool = False) -> None:
        self.allow_partial = allow_partial
        self.report = None

    def before_run(self, runner) -> None:
        """Do not ask for the weights that a backbone starts from where others replace them all."""
        found = find_backbone(_unwrapped(runner.model))
        if found and runner._load_from and (runner._resume or not self.allow_partial):
            found[1].init_cfg = None

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        model = _unwrapped(runner.model)
        if find_backbone(model) is None:
            return
        file = unwrap(runner._load_from or "given", checkpoint)
        if runner._resume:
            _check_same(file.path, file.state, model)
            _check_average(file.path, checkpoint, runner.hooks)
            return
        state, self.report = fit_model(file, model, self.allow_partial)
        # With what stays as it is, so that MMEngine has no differences to list once more.
        own = model.state_dict()
        checkpoint["state_dict"] = own | {n: value for n, value in state.items() if n in own}
        log_report(self.report, self.report.backbone.notes)
        raw = checkpoint.get("ema_state_dict", {})
        if raw != {} and not (self.report.complete and _fits_as_it_is(raw, model)):
            del checkpoint["ema_state_dict"]
            runner.logger.info("ema_state_dict is left out: all starts from the average")

    def after_train(self, runner) -> None:
        self.report = None  # what the file lacked has been trained

    def before_test(self, runner) -> None:
        if self.report is not None:
            require_complete(self.report)

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        found = find_backbone(_unwrapped(runner.model))
        if found:
            checkpoint["meta"][META_KEY] = facts_of_model(found[1]).to_meta()


def _unwrapped(model: nn.Module) -> nn.Module:
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model


def _fits_as_it_is(raw: object, model: nn.Module) -> bool:
    """Whether the trained weights of a run that kept a moving average fit the model unchanged.

    Such a run has the average under ``state_dict``, which was fitted, and the trained weights under
    ``ema_state_dict``, which mmpretrain's EMAHook then puts in the place of the average.
    """
    own = {f"module.{name}": value.shape for name, value in model.state_dict().items()}
    theirs = {n: getattr(v, "shape", None) for n, v in raw.items()} if isinstance(raw, dict) else {}
    theirs.pop("steps", None)
    return own == theirs


def _check_same(path: str, state: dict, model: nn.Module) -> None:
    """A run goes on with the very model that it began with."""
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in state.items()}
    differing = [name for name in {**own, **theirs} if own.get(name) != theirs.get(name)]
    if differing:
        name = differing[0]
        raise InputError(
            f"--resume: checkpoint {path} is of another model ({name}: {theirs.get(name, 'absent')}"
            f" in the file, {own.get(name, 'absent')} in the model): resume with the config that "
            "began the run, or start a new one with load_from"
        )


def _check_average(path: str, checkpoint: dict, hooks: list[Hook]) -> None:
    """Without its hook, a run that kept an average would go on from the average unawares."""
    if "ema_state_dict" in checkpoint and not any(isinstance(hook, EMAHook) for hook in hooks):
        raise InputError(
            f"--resume: checkpoint {path} is of a run that kept a moving average, this config has "
            "no EMAHook in custom_hooks: resume with the config that began the run, or start a new "
            "one from the average with load_from"
        )


@CheckpointLoader.register_scheme(("", "http://", "https://", SHIPPED), force=True)
def load_from_checked(filename: str, map_location=None) -> object:
    """Read a file for MMEngine's loader, whose own way would run code that the file carries."""
    return read_content(filename, map_location)
