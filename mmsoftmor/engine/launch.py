"""Train and test from a config: thin functions around MMEngine's runner.

Each checks the config and data, fits the config to the devices at hand, and hands over.
"""

from __future__ import annotations

import copy
import os.path as osp

import numpy as np
from mmengine.config import Config
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmsoftmor.engine import preflight
from mmsoftmor.engine.atomic import write_json
from mmsoftmor.engine.distributed import (
    check_batch_norm,
    leave_processes,
    prepare_processes,
    read_rank,
)
from mmsoftmor.engine.lr_scaling import apply_plan, plan_batch
from mmsoftmor.engine.outputs import DumpedPredictions, show_predictions, use_tta
from mmsoftmor.engine.precision import prepare_precision
from mmsoftmor.engine.resume import (
    check_training_state,
    choose_start,
    read_training_file,
    require_file,
)
from mmsoftmor.errors import InputError


def train(
    config: Config,
    *,
    launcher: str = "none",
    work_dir: str | None = None,
    resume: str | None = None,
    amp: bool = False,
    amp_dtype: str | None = None,
    auto_scale_lr: bool = False,
) -> Runner:
    """Train a model.

    Args:
        config: A complete config, as :func:`~mmsoftmor.engine.config.load_config` returns it. It is
            not changed.
        launcher: How the processes were started: ``none``, ``pytorch``, ``slurm`` or ``mpi``.
        work_dir: Folder for checkpoints and logs. Default: the config's own, else
            ``work_dirs/CONFIG_NAME`` in the current folder.
        resume: ``auto`` continues from the latest checkpoint in ``work_dir``, a path from that
            checkpoint, None follows the config.
        amp: Mixed precision; ``amp_dtype`` is ``bfloat16`` or ``float16``, by default what the
            device is best at.
        auto_scale_lr: Scale the learning rate to the batch size.

    Returns:
        The runner, after its last iteration.

    Raises:
        InputError: A mistake in the config, its data or the arguments, found before any training.
    """
    config = copy.deepcopy(config)
    _require(config, "train_dataloader", "train_cfg", "optim_wrapper")
    _set_work_dir(config, work_dir)
    rank = read_rank(launcher)
    start = choose_start(config, resume)
    prepare_precision(config, amp or amp_dtype is not None, amp_dtype)
    plan_batch(config, 1, auto_scale_lr)  # its mistakes, before the processes wait for each other
    check_batch_norm(config, launcher)
    if rank == 0:
        preflight.check(config, "train")
        if config.load_from and "://" not in config.load_from:
            (check_training_state if config.resume else read_training_file)(config.load_from)
    runner = _build(config, launcher)
    if start:
        runner.logger.info(start)
    apply_plan(plan_batch(config, runner.world_size, auto_scale_lr), runner)
    runner.train()
    leave_processes()
    return runner


def test(
    config: Config,
    checkpoint: str,
    *,
    launcher: str = "none",
    work_dir: str | None = None,
    out: str | None = None,
    show_dir: str | None = None,
    tta: bool = False,
) -> dict[str, float]:
    """Evaluate a checkpoint on the test part of a config.

    The metrics' own tables go to the log, the figures to ``test_metrics.json`` in ``work_dir``,
    those of augmented testing to ``test_metrics_tta.json``.

    Args:
        config: A complete config. It is not changed.
        checkpoint: File or address of a whole model's weights.
        launcher: As for :func:`train`.
        work_dir: As for :func:`train`.
        out: ``.pkl`` file for the predictions of every image.
        show_dir: Folder for pictures of the predictions.
        tta: Test-time augmentation, as ``tta_model`` and ``tta_pipeline`` of the config say.

    Returns:
        The metrics by name.

    Raises:
        InputError: A mistake in the config, its data or the arguments.
    """
    config = copy.deepcopy(config)
    _require(config, "test_dataloader", "test_cfg", "test_evaluator")
    _set_work_dir(config, work_dir)
    rank = read_rank(launcher)
    require_file(checkpoint, "checkpoint")
    if rank == 0:
        preflight.check(config, "test")
        if "://" not in checkpoint:
            read_training_file(checkpoint)
    config.update(load_from=checkpoint, resume=False)
    if tta:
        use_tta(config)
    if show_dir:
        show_predictions(config, show_dir)
    dumped = DumpedPredictions(config, out) if out else None
    runner = _build(config, launcher)
    metrics = {name: float(value) for name, value in runner.test().items() if np.ndim(value) == 0}
    if rank == 0:
        if dumped:
            dumped.finish()
        summary = dict(config=config.filename, checkpoint=checkpoint, metrics=metrics)
        name = "test_metrics_tta.json" if tta else "test_metrics.json"
        write_json(osp.join(config.work_dir, name), summary)
    leave_processes()
    return metrics


def _require(config: Config, *keys: str) -> None:
    missing = [key for key in keys if config.get(key) is None]
    if missing:
        raise InputError(f"{config.filename}: has no {missing[0]}: add it, or inherit from a base")


def _set_work_dir(config: Config, work_dir: str | None) -> None:
    name = osp.splitext(osp.basename(config.filename or "default"))[0]
    config.work_dir = work_dir or config.get("work_dir") or osp.join("work_dirs", name)


def _build(config: Config, launcher: str) -> Runner:
    prepare_processes(config, launcher)
    if "runner_type" in config:
        return RUNNERS.build(config)
    return Runner.from_cfg(config)
