"""Which checkpoint a training run starts from, and whether that file can serve."""

from __future__ import annotations

import os.path as osp
import re
from glob import escape, glob

from mmengine.config import Config
from mmengine.runner import find_latest_checkpoint

from mmsoftmor.checkpoints.reader import read_content
from mmsoftmor.errors import InputError

# What the runner reads when it resumes.
_TRAINING_STATE = ("meta", "state_dict", "message_hub", "optimizer")


def choose_start(config: Config, resume: str | None) -> str | None:
    """Set ``config.load_from`` and ``config.resume`` from the ``--resume`` argument.

    Resuming goes before loading: a ``load_from`` of the config is used only when there is nothing
    to resume.

    Args:
        config: Changed in place; has ``work_dir``.
        resume: ``auto`` for the latest checkpoint of the work directory, a file, or None.

    Returns:
        One line for the log on what was chosen, or None if nothing was asked for.

    Raises:
        InputError: A named file does not exist.
    """
    load_from = config.get("load_from")
    if resume is None and config.get("resume"):
        resume = load_from or "auto"
    path = latest_checkpoint(config.work_dir) if resume == "auto" else resume
    config.resume = path is not None
    config.load_from = path or load_from
    if config.load_from:
        require_file(config.load_from, "--resume" if path else "load_from")
    if path:
        ignored = f"; load_from = {load_from!r} is ignored" if load_from not in (None, path) else ""
        return f"resuming from {path}{ignored}"
    if resume == "auto":
        start = f"loading {load_from}" if load_from else "starting from the beginning"
        return f"--resume: no checkpoint in {config.work_dir}, {start}"
    return None


def latest_checkpoint(work_dir: str) -> str | None:
    """The checkpoint that ``last_checkpoint`` names, else the one of the highest number.

    The note is a file of its own: it can be cut short by an interrupt, or name the path that a
    moved folder had.
    """
    noted = osp.join(work_dir, "last_checkpoint")
    named = find_latest_checkpoint(work_dir) if osp.isfile(noted) else None
    if named and osp.isfile(named):
        return named
    numbered = {
        int(match[1]): path
        for path in glob(osp.join(escape(work_dir), "*.pth"))
        if (match := re.fullmatch(r"(?:epoch|iter)_(\d+)\.pth", osp.basename(path)))
    }
    return numbered[max(numbered)] if numbered else None


def require_file(path: str, key: str) -> None:
    """Raise InputError unless the path is a file or an address to download from."""
    if "://" not in path and not osp.isfile(path):
        raise InputError(f"{key}: checkpoint {path!r} does not exist: correct the path")


def check_training_state(path: str) -> None:
    """Raise InputError unless a checkpoint holds all that is needed to go on training."""
    lacking = [key for key in _TRAINING_STATE if key not in read_training_file(path)]
    if lacking:
        raise InputError(
            f"--resume: {path} has no {', '.join(lacking)}, so it can start a training but not "
            f"continue one: use --cfg-options load_from={path} for a whole model's weights, or "
            f"model.backbone.init_cfg.checkpoint={path} for a backbone's"
        )


def read_training_file(path: str) -> dict:
    """Read a local checkpoint to the CPU; InputError if it cannot be read."""
    content = read_content(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}, not a checkpoint")
    return content
