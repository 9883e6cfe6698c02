"""Runs that can be interrupted, repeated and trusted."""

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner.loops import _InfiniteDataloaderIterator
from torch import distributed, multiprocessing

from mmsoftmor.engine.hooks import (
    AtomicCheckpointHook,
    FirstRankBuffersHook,
    seed_worker_from_torch,
)
from mmsoftmor.engine.launch import train
from mmsoftmor.errors import InputError


def weights(path):
    return torch.load(path, weights_only=False)["state_dict"]


@HOOKS.register_module(force=True)
class Interrupt(Hook):
    """Stop as a killed process does: in the middle, after an epoch was saved."""

    priority = "LOWEST"

    def __init__(self, iteration):
        self.iteration = iteration

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == self.iteration:
            raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [0, 2])
def test_resumed_epochs_equal_uninterrupted_ones_bit_for_bit(tiny, tmp_path, workers):
    setting = dict(train_dataloader__num_workers=workers)
    train(tiny(work_dir=str(tmp_path / "whole"), **setting))
    config = tiny(work_dir=str(tmp_path / "parts"), **setting)
    config.custom_hooks.append(dict(type="Interrupt", iteration=10))  # in the third of four epochs
    with pytest.raises(KeyboardInterrupt):
        train(config)
    assert not (tmp_path / "parts" / "epoch_3.pth").exists()
    train(tiny(work_dir=str(tmp_path / "parts"), **setting), resume="auto")
    whole, parts = (weights(tmp_path / name / "epoch_4.pth") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name, value in whole.items():
        assert torch.equal(value, parts[name]), name


@pytest.mark.skipif(
    not hasattr(_InfiniteDataloaderIterator, "skip_iter"),
    reason="this MMEngine reads the past data again when it resumes, and draws while it does",
)
def test_resumed_iterations_equal_uninterrupted_ones_bit_for_bit(tiny, tmp_path):
    def iterations(folder):
        config = tiny(
            work_dir=str(tmp_path / folder),
            train_dataloader__num_workers=0,
            train_dataloader__sampler__type="InfiniteSampler",
            default_hooks__checkpoint__by_epoch=False,
            default_hooks__checkpoint__interval=4,
        )
        config.train_cfg = dict(type="IterBasedTrainLoop", max_iters=8, val_interval=3)
        config.param_scheduler = None
        return config

    train(iterations("whole"))
    config = iterations("parts")
    config.custom_hooks.append(dict(type="Interrupt", iteration=5))
    with pytest.raises(KeyboardInterrupt):
        train(config)
    train(iterations("parts"), resume="auto")
    whole, parts = (weights(tmp_path / name / "iter_8.pth") for name in ("whole", "parts"))
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())


@HOOKS.register_module(force=True)
class Record(Hook):
    """Keep each batch's images by the file they come from."""

    def __init__(self):
        self.seen = {}

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        for image, sample in zip(data_batch["inputs"], data_batch["data_samples"], strict=True):
            self.seen.setdefault(sample.img_path, []).append(image.clone())


def test_augmentations_differ_between_epochs_and_repeat_between_runs(tiny, tmp_path):
    runs = []
    for name in "xy":
        config = tiny(work_dir=str(tmp_path / name), train_cfg__max_epochs=3)
        config.custom_hooks.append(dict(type="Record"))
        runner = train(config)
        runs.append(next(hook.seen for hook in runner.hooks if isinstance(hook, Record)))
    assert len(runs[0]) == 16
    for path, (first, second, third) in runs[0].items():
        assert not torch.equal(first, second)
        assert not torch.equal(second, third)
        assert torch.equal(torch.stack([first, second, third]), torch.stack(runs[1][path]))


def _buffers_at_validation(rank, folder):
    """Save the running mean as validation has it; the batch had a mean of 5 + rank."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    model = torch.nn.BatchNorm1d(3, momentum=1.0)
    model(torch.tensor([[-1.0], [1.0]]).repeat(1, 3) + rank + 5)
    FirstRankBuffersHook().before_val_epoch(SimpleNamespace(model=model))
    torch.save(model.running_mean, f"{folder}/{rank}.pt")
    distributed.barrier()
    os._exit(0)


def test_every_process_validates_with_the_buffers_of_the_checkpoint(tmp_path):
    multiprocessing.spawn(_buffers_at_validation, (str(tmp_path),), nprocs=2)
    means = [torch.load(tmp_path / f"{rank}.pt").tolist() for rank in range(2)]
    assert means == [[5.0] * 3, [5.0] * 3]


def test_stock_worker_seeds_are_warned_of(tiny, capsys):
    config = tiny(train_cfg__max_epochs=1)
    del config.train_dataloader.worker_init_fn
    train(config)
    assert "set worker_init_fn=dict(type='seed_worker_from_torch')" in capsys.readouterr().out


def test_worker_seed_is_a_function_of_torchs_seed_in_all_generators():
    def draws(seed):
        torch.manual_seed(seed)
        seed_worker_from_torch(0)
        return random.random(), np.random.rand()

    assert draws(1) == draws(1)
    assert all(one != two for one, two in zip(draws(1), draws(2), strict=True))


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_first_bad_loss_stops_before_the_weights_are_touched(tiny, tmp_path, value, monkeypatch):
    from mmpretrain.models.heads import LinearClsHead

    stock, calls, before = LinearClsHead.loss, [], {}

    def poisoned(self, *args, **kwargs):
        losses = stock(self, *args, **kwargs)
        calls.append(1)
        if len(calls) == 3:
            before.update((name, p.detach().clone()) for name, p in self.named_parameters())
            before["head"] = self
            fine = losses.pop("loss")
            losses = dict(loss_fine=fine, loss_cls=fine * float(value))
        return losses

    monkeypatch.setattr(LinearClsHead, "loss", poisoned)
    with pytest.raises(InputError, match=rf"in iteration 3: loss_cls = {value}; .*learning rate"):
        train(tiny())
    head = before.pop("head")
    assert before and all(torch.equal(p, before[name]) for name, p in head.named_parameters())
    assert len(calls) == 3


class Crash(RuntimeError):
    pass


def crash_in_the_second_saving(monkeypatch):
    """Write half of the file, then fail, as a full disk or a kill does."""
    import mmsoftmor.engine.atomic as atomic

    stock, count = atomic.os.fsync, []

    def fsync(handle):
        count.append(1)
        if len(count) == 2:
            os.truncate(handle, 1000)
            raise Crash
        return stock(handle)

    monkeypatch.setattr(atomic.os, "fsync", fsync)


def test_crash_while_saving_leaves_the_last_whole_checkpoint(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        crash_in_the_second_saving(patched)
        with pytest.raises(Crash):
            train(tiny(default_hooks__checkpoint__max_keep_ckpts=1))
    work = tmp_path / "work"
    assert (work / "last_checkpoint").read_text() == str(work / "epoch_1.pth")
    assert weights(work / "epoch_1.pth")
    assert not (work / "epoch_2.pth").exists()
    train(tiny(default_hooks__checkpoint__max_keep_ckpts=1), resume="auto")
    assert sorted(path.name for path in work.glob("*.pth*")) == ["epoch_4.pth"]


def test_best_checkpoint_is_kept_until_a_better_one_is_whole(tiny, tmp_path):
    config = tiny(train_cfg__max_epochs=3)
    config.default_hooks.checkpoint.update(save_best="accuracy/top1", max_keep_ckpts=2)
    train(config)
    best = list((tmp_path / "work").glob("best_*.pth"))
    assert len(best) == 1 and weights(best[0])
    assert len(list((tmp_path / "work").glob("epoch_*.pth"))) == 2


@pytest.mark.parametrize("library", ["mmdet", "mmseg", "mmpretrain"])
def test_every_library_finds_the_hooks(library):
    registry = __import__(f"{library}.registry", fromlist=["HOOKS"]).HOOKS
    assert registry.get("AtomicCheckpointHook") is AtomicCheckpointHook
