"""What a test run leaves behind besides its metrics, in the terms of each library."""

from __future__ import annotations

import os
import os.path as osp

from mmengine.config import Config, ConfigDict
from mmengine.logging import print_log

from mmsoftmor.engine.config import evaluator_metrics, leaf_datasets
from mmsoftmor.errors import InputError


class DumpedPredictions:
    """Predictions of a test run, in a pickle file that appears when it is complete.

    Args:
        config: Changed in place: ``test_evaluator`` gets one more metric.
        path: Target; ends with ``.pkl``.

    Raises:
        InputError: The path does not end with ``.pkl``.
    """

    def __init__(self, config: Config, path: str) -> None:
        if not path.endswith(".pkl"):
            raise InputError(f"--out {path}: predictions are pickled: end the name with .pkl")
        self.path, self.partial = path, f"{path}.tmp.pkl"
        os.makedirs(osp.dirname(osp.abspath(path)), exist_ok=True)
        # mmdet's own form packs the masks.
        kind = "DumpDetResults" if config.get("default_scope") == "mmdet" else "DumpResults"
        dump = ConfigDict(type=kind, out_file_path=self.partial)
        evaluator = config.test_evaluator
        if isinstance(evaluator, dict) and "metrics" in evaluator:
            evaluator.metrics = [*evaluator_metrics(evaluator), dump]
        else:
            config.test_evaluator = [*evaluator_metrics(evaluator), dump]

    def finish(self) -> None:
        """Give the complete file its name."""
        os.replace(self.partial, self.path)


def show_predictions(config: Config, folder: str) -> None:
    """Have every prediction drawn into ``folder``.

    Raises:
        InputError: The config has no visualization hook to do it.
    """
    hook = config.get("default_hooks", {}).get("visualization")
    if hook is None:
        raise InputError(
            "--show-dir: the config has no default_hooks.visualization: add "
            "default_hooks = dict(visualization=dict(type=...))"
        )
    folder, scope = osp.abspath(folder), config.get("default_scope")
    if scope == "mmdet":
        hook.update(draw=True, test_out_dir=folder)
    elif scope == "mmpretrain":
        hook.update(enable=True, out_dir=folder, interval=1)
    else:
        hook.update(draw=True, interval=1)
        config.visualizer.save_dir = folder


def use_tta(config: Config) -> None:
    """Wrap the model and its pipeline in the config's own test-time augmentation.

    Raises:
        InputError: The config declares none.
    """
    if "tta_model" not in config or "tta_pipeline" not in config:
        raise InputError("--tta: the config declares no tta_model and tta_pipeline: add both")
    config.model = ConfigDict(**config.tta_model, module=config.model)
    for dataset in leaf_datasets(config.test_dataloader):
        dataset["pipeline"] = config.tta_pipeline
    if config.tta_model.type == "DetTTAModel":
        _leave_out_masks(config)


def _leave_out_masks(config: Config) -> None:
    """mmdet merges the boxes of augmented images, and refuses masks."""
    heads = config.model.module.get("roi_head", {})
    if heads.pop("mask_head", None) is None:
        return
    heads.pop("mask_roi_extractor", None)
    for metric in evaluator_metrics(config.test_evaluator):
        if "segm" in (metric.get("metric") or ()):
            metric["metric"] = ["bbox"]
    print_log("--tta: mmdet merges boxes only, masks are left out", logger="current")
