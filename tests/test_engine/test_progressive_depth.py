"""Depths drawn per iteration: a function of seed and iteration, and full outside of training."""

from collections import Counter
from itertools import count, pairwise
from types import SimpleNamespace

import pytest
import torch
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from mmsoftmor.engine.progressive_depth import ProgressiveDepthHook, draw_share
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

NUMBERS = count()  # names of runs are unique
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32)


class Model(BaseModel):
    """A backbone that records the depth of each pass."""

    def __init__(self, **backbone):
        super().__init__()
        self.backbone = SRViT(arch=ARCH, img_size=32, **backbone)
        self.depths = {"loss": [], "predict": []}

    def forward(self, inputs, mode="tensor"):
        self.depths[mode].append(self.backbone.active_depth)
        out = self.backbone(inputs)[0]
        return {"loss": out.square().mean()} if mode == "loss" else [out]


class Metric(BaseMetric):
    """Keeps MMEngine's loop going."""

    def process(self, data_batch, data_samples):
        self.results.append(len(data_samples))

    def compute_metrics(self, results):
        return {"batches": len(results)}


def run(tmp_path, iterations=4, hook=None, resume=False, **backbone):
    """Train with validation after each half; returns the model."""
    loader = DataLoader([dict(inputs=torch.rand(3, 32, 32)) for _ in range(2)], batch_size=2)
    runner = Runner(
        model=Model(**backbone),
        work_dir=str(tmp_path),
        train_dataloader=loader,
        val_dataloader=loader,
        val_evaluator=Evaluator([Metric()]),
        val_cfg=dict(),
        train_cfg=dict(by_epoch=True, max_epochs=iterations, val_interval=2),
        optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.1)),
        default_hooks=dict(checkpoint=dict(type="CheckpointHook", interval=1)),
        custom_hooks=[dict(type="ProgressiveDepthHook"), *([hook] if hook else [])],
        resume=resume,
        randomness=dict(seed=5),
        log_level="ERROR",
        default_scope="mmengine",
        experiment_name=f"depths{next(NUMBERS)}",
    )
    return runner.train()


def test_depths_depend_on_seed_and_iteration_and_cover_all_steps_evenly():
    depths = [1 + int(4 * draw_share(0, i)) for i in range(4000)]
    counts = Counter(depths)
    assert set(counts) == {1, 2, 3, 4}
    assert max(counts.values()) - min(counts.values()) < 200  # a count's standard deviation is 27
    assert depths[10:20] == [1 + int(4 * draw_share(0, i)) for i in range(10, 20)]
    assert depths[:50] != [1 + int(4 * draw_share(1, i)) for i in range(50)]
    pairs = Counter(pairwise(depths))
    assert len(pairs) == 16, "a draw must not follow from the one before"


def test_training_runs_at_drawn_depths_and_validation_at_the_full_one(tmp_path):
    model = run(tmp_path, iterations=8, recursion_depth=4)
    assert model.depths["loss"] == [1 + int(4 * draw_share(5, i)) for i in range(8)]
    assert len(set(model.depths["loss"])) > 1
    assert model.depths["predict"] == [4] * 4
    assert model.backbone.active_depth == 4


class Interrupt(Hook):
    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 3:
            raise KeyboardInterrupt


def test_resumed_run_draws_what_the_uninterrupted_one_draws(tmp_path):
    whole = run(tmp_path / "whole", iterations=6, recursion_depth=3)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", 6, Interrupt(), recursion_depth=3)
    rest = run(tmp_path / "parts", 6, resume=True, recursion_depth=3)
    assert rest.depths["loss"] == whole.depths["loss"][3:]


def test_draws_are_bounded_by_the_depth_that_the_model_was_built_with(tmp_path):
    model = run(tmp_path, iterations=12, recursion_depth=4, active_depth=2)
    assert set(model.depths["loss"]) == {1, 2}
    assert set(model.depths["predict"]) == {2}


def test_every_process_follows_the_first_ones_seed(monkeypatch):
    def broadcast(objects):
        objects[0] = 11  # what the first process holds

    monkeypatch.setattr("mmsoftmor.engine.progressive_depth.broadcast_object_list", broadcast)
    hook, model = ProgressiveDepthHook(), Model(recursion_depth=4)
    runner = SimpleNamespace(seed=3, model=model, iter=0)
    hook.before_train(runner)
    for runner.iter in range(20):
        hook.before_train_iter(runner, 0)
        assert model.backbone.active_depth == 1 + int(4 * draw_share(11, runner.iter))


def test_model_that_does_not_recurse_is_refused(tmp_path):
    with pytest.raises(InputError, match="no SRViT with recursion_depth > 1"):
        run(tmp_path, recursion_depth=1)
