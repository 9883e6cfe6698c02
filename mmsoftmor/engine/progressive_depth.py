"""Train one set of weights that serves every recursion depth."""

from __future__ import annotations

import numpy as np
from mmengine.dist import broadcast_object_list
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT


def draw_share(seed: int, iteration: int) -> float:
    """Return a uniform number in [0, 1) that depends on seed and iteration alone."""
    return float(np.random.default_rng([seed, iteration]).random())


@HOOKS.register_module()
class ProgressiveDepthHook(Hook):
    """Run each training iteration at a depth R' drawn evenly from 1 to R.

    Opt-in and this project's own addition, not of the paper: the weights learn to serve at every
    ``active_depth``. A draw depends on the run's seed and the iteration alone, so that all
    processes agree and a resumed run repeats it; other random decisions are left as they are.
    Outside of training iterations (validation, checkpoints, the end) each SR-ViT runs at the
    ``active_depth`` that it was built with, which also bounds the draws.

    Raises:
        InputError: Before training, if the model holds no SR-ViT of more than one step.
    """

    def before_train(self, runner) -> None:
        # With randomness.diff_rank_seed each process has a seed of its own: the first one's counts.
        seeds = [runner.seed]
        broadcast_object_list(seeds)
        self._seed = seeds[0]
        found = [m for m in runner.model.modules() if isinstance(m, SRViT)]
        self._full = [(model, model.active_depth) for model in found]
        if max((depth for _, depth in self._full), default=1) == 1:
            raise InputError(
                "ProgressiveDepthHook: the model has no SRViT with recursion_depth > 1: remove the "
                "hook from custom_hooks, or raise recursion_depth"
            )

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        share = draw_share(self._seed, runner.iter)
        for model, depth in self._full:
            model.active_depth = 1 + int(share * depth)

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        for model, depth in self._full:
            model.active_depth = depth
