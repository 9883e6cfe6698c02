"""Hooks for training that can be interrupted, repeated and trusted.

All are registered in MMEngine's root registries, so every library's scope finds them.
"""

from __future__ import annotations

import random
from functools import wraps

import numpy as np
import torch
from mmengine.dist import broadcast, get_rank
from mmengine.hooks import CheckpointHook, Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import FUNCTIONS, HOOKS

from mmsoftmor.engine.atomic import AtomicLocalBackend
from mmsoftmor.errors import InputError

_LOADING, _COMPUTING = 0, 1  # the two streams of random numbers that each iteration has


@FUNCTIONS.register_module()
def seed_worker_from_torch(worker_id: int) -> None:
    """Seed a data-loading process from the seed that torch gave it.

    To be set as ``worker_init_fn=dict(type='seed_worker_from_torch')``. MMEngine's own function
    gives a worker the same seed in every epoch, so that each epoch repeats the augmentations of the
    first. Torch's seed is drawn anew in every epoch from the main process, where
    :class:`ReproducibleRNGHook` makes it a function of seed, iteration and rank.
    """
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


@HOOKS.register_module()
class ReproducibleRNGHook(Hook):
    """Make random decisions a function of seed, iteration and rank instead of the past.

    A run that was interrupted and resumed then takes the decisions (drop path, RoI sampling,
    augmentation) of an uninterrupted one. Before each iteration, and again before the next batch
    is loaded, Python's, NumPy's and torch's generators of the main process are seeded. Loading in
    worker processes follows in epoch-based training if the dataloader has
    ``worker_init_fn=dict(type='seed_worker_from_torch')`` and no ``persistent_workers``. In
    iteration-based training the data order is kept at a resume, but worker processes start their
    stream anew, and MMEngine before 0.10.12 draws while it skips: augmentations are fresh draws.
    """

    priority = "LOWEST"  # what other hooks draw comes first and leaves no trace

    def before_train(self, runner) -> None:
        loader = runner.train_dataloader
        init = getattr(loader.worker_init_fn, "func", loader.worker_init_fn)
        if loader.num_workers and (loader.persistent_workers or init is not seed_worker_from_torch):
            runner.logger.warning(
                "train_dataloader: set worker_init_fn=dict(type='seed_worker_from_torch') and "
                "persistent_workers=False, else a resumed run augments differently"
            )

    def before_train_epoch(self, runner) -> None:
        _seed(runner, runner.iter, _LOADING)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        _seed(runner, runner.iter, _COMPUTING)

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        _seed(runner, runner.iter + 1, _LOADING)

    def after_val_epoch(self, runner, metrics=None) -> None:
        _seed(runner, runner.iter, _LOADING)


def _seed(runner, iteration: int, stream: int) -> None:
    """Seed all generators; SeedSequence mixes the four numbers without collisions in practice."""
    entropy = np.random.SeedSequence([runner.seed, iteration, get_rank(), stream])
    first, second, third = (int(word) for word in entropy.generate_state(3))
    random.seed(first)
    np.random.seed(second)
    torch.manual_seed(third)


@HOOKS.register_module()
class FiniteLossHook(Hook):
    """Stop at the first loss that is NaN or infinite, before it reaches the weights.

    The total is looked at in every iteration, where the model sums its loss terms: between the
    forward and the backward pass. The checkpoints on disk hence are all from before the fault.

    Raises:
        InputError: In the training step; names the iteration and the terms.
    """

    def before_train(self, runner) -> None:
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        parse = model.parse_losses

        @wraps(parse)
        def parse_finite(losses):
            total, terms = parse(losses)
            if not torch.isfinite(total).all():
                raise InputError(_describe(terms, runner.iter + 1))
            return total, terms

        model.parse_losses = parse_finite


@HOOKS.register_module()
class FirstRankBuffersHook(Hook):
    """Validate in every process with the buffers of the first, which are those of the checkpoint.

    The running statistics of plain batch norm follow each process's own images, so without this
    the figures of a validation belong to no model that was ever saved.
    """

    priority = "LOWEST"  # behind EMAHook, which swaps its average in

    def before_val_epoch(self, runner) -> None:
        for buffer in runner.model.buffers():
            broadcast(buffer)


def _describe(terms: dict[str, torch.Tensor], iteration: int) -> str:
    bad = [
        f"{name} = {float(value)}"
        for name, value in terms.items()
        if name != "loss" and not torch.isfinite(value).all()
    ]
    return (
        f"loss is not finite in iteration {iteration}: {', '.join(bad) or 'the sum overflows'}; no "
        "weight was touched: lower the learning rate, clip gradients "
        "(optim_wrapper.clip_grad.max_norm=1.0), train in bfloat16 or float32, or check the boxes"
    )


class _LateRemoval(AtomicLocalBackend):
    """Collects the files to remove until told that their successor is safe."""

    def __init__(self) -> None:
        self.pending: list[str] = []

    def remove(self, filepath) -> None:
        self.pending.append(filepath)

    def flush(self) -> None:
        pending, self.pending = self.pending, []
        for path in pending:
            super().remove(path)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """``CheckpointHook`` that an interrupt at any moment leaves with a complete checkpoint.

    MMEngine's writes straight into ``epoch_N.pth`` and, with ``max_keep_ckpts`` or ``save_best``,
    removes the old file before the new one exists. Here files are written under a temporary name,
    and the old ones go last. Arguments are those of
    :class:`mmengine.hooks.CheckpointHook`.
    """

    def __init__(self, *args, backend_args: dict | None = None, **kwargs) -> None:
        super().__init__(*args, backend_args=backend_args or dict(backend="atomic"), **kwargs)

    def before_train(self, runner) -> None:
        super().before_train(runner)
        if isinstance(self.file_backend, AtomicLocalBackend):
            self.file_backend = _LateRemoval()

    def _save_checkpoint_with_step(self, runner, step, meta) -> None:
        super()._save_checkpoint_with_step(runner, step, meta)
        self._remove_old()

    def _save_best_checkpoint(self, runner, metrics) -> None:
        super()._save_best_checkpoint(runner, metrics)
        self._remove_old()

    def _remove_old(self) -> None:
        if isinstance(self.file_backend, _LateRemoval):
            self.file_backend.flush()
