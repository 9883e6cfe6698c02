"""Checkpoints in a run: fitted and reported on the way in, labelled on the way out."""

import os

import pytest
import torch
from mmengine.runner import CheckpointLoader, Runner
from safetensors.torch import save_file
from torch.utils.data import DataLoader

import mmsoftmor.engine  # noqa: F401  (registers the hook)
from mmsoftmor.checkpoints import read_checkpoint
from mmsoftmor.checkpoints.facts import META_KEY
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


def model_cfg(classes=5, **backbone):
    return dict(
        type="mmpretrain.ImageClassifier",
        backbone={"type": "mmpretrain.SRViT", "arch": ARCH, "img_size": 32, **backbone},
        head=dict(type="mmpretrain.VisionTransformerClsHead", num_classes=classes, in_channels=32),
    )


def batches():
    from mmpretrain.structures import DataSample

    samples = [DataSample().set_gt_label(i) for i in range(2)]
    data = [dict(inputs=torch.rand(3, 32, 32), data_samples=sample) for sample in samples]
    return DataLoader(
        data,
        batch_size=2,
        collate_fn=lambda items: {
            "inputs": torch.stack([item["inputs"] for item in items]),
            "data_samples": [item["data_samples"] for item in items],
        },
    )


@pytest.fixture
def make_runner(tmp_path):
    count = iter(range(100))

    def build(load_from=None, resume=False, hook=None, ema=False, lr=0.0, epochs=1, **model):
        hooks = [dict(type="BackboneCheckpointHook", **(hook or {}))]
        hooks += [dict(type="EMAHook" if ema is True else ema, momentum=0.5)] if ema else []
        return Runner(
            model=model_cfg(**model),
            work_dir=str(tmp_path / "run"),
            train_dataloader=batches(),
            train_cfg=dict(by_epoch=True, max_epochs=epochs + resume),
            optim_wrapper=dict(optimizer=dict(type="SGD", lr=lr)),
            test_dataloader=batches(),
            test_cfg=dict(),
            test_evaluator=dict(type="mmpretrain.Accuracy"),
            custom_hooks=hooks,
            load_from=load_from and str(load_from),
            resume=resume,
            default_scope="mmpretrain",
            experiment_name=f"{tmp_path.name}-{next(count)}",
        )

    return build


@pytest.fixture
def plain(randomize, tmp_path):
    """A plain backbone's file in safetensors, which MMEngine alone cannot read."""
    model = randomize(SRViT(ARCH, img_size=32, recursion_depth=1))
    save_file(model.state_dict(), tmp_path / "plain.safetensors")
    return model, tmp_path / "plain.safetensors"


def same_layers(model, source):
    theirs = source.layers.state_dict()
    return all(torch.equal(v, theirs[n]) for n, v in model.layers.state_dict().items())


@pytest.mark.parametrize("ema", [False, True])
def test_plain_file_as_load_from_reaches_model_average_and_checkpoint(make_runner, plain, ema):
    source, path = plain
    runner = make_runner(path, recursion_depth=3, ema=ema)
    runner.train()
    assert same_layers(runner.model.backbone, source)
    saved = read_checkpoint(runner.work_dir + "/epoch_1.pth")
    assert saved.meta[META_KEY]["recursion_depth"] == 3
    assert saved.meta[META_KEY]["recursion_unit"] == 1
    assert saved.meta[META_KEY]["mixing"] == "soft"
    assert {k: saved.meta[META_KEY][k] for k in ARCH} == ARCH
    for name, value in source.layers.state_dict().items():
        torch.testing.assert_close(saved.state[f"backbone.layers.{name}"], value)


def test_weights_that_others_replace_are_not_asked_for(make_runner, plain):
    source, path = plain
    nowhere = dict(type="Pretrained", checkpoint="nowhere.pth")
    runner = make_runner(path, recursion_depth=3, init_cfg=nowhere)
    runner.train()
    assert same_layers(runner.model.backbone, source)
    saved = runner.work_dir + "/epoch_1.pth"
    make_runner(saved, recursion_depth=3, init_cfg=nowhere, resume=True).train()
    with pytest.raises(InputError, match=r"nowhere\.pth does not exist"):
        make_runner(recursion_depth=3, init_cfg=nowhere).train()
    partial = dict(hook=dict(allow_partial=True), recursion_depth=3, init_cfg=nowhere)
    with pytest.raises(InputError, match=r"nowhere\.pth does not exist"):
        make_runner(path, **partial).train()


def test_differences_are_told_once_in_our_report(make_runner, plain, tmp_path):
    make_runner(plain[1], recursion_depth=3).train()
    text = "".join(path.read_text() for path in (tmp_path / "run").rglob("*.log"))
    assert "new by design (8)" in text and "unused (1): cls_token" not in text
    assert "do not match exactly" not in text


def test_file_of_another_architecture_stops_the_run(make_runner, tmp_path):
    other = SRViT({**ARCH, "feedforward_channels": 32}, img_size=32, recursion_depth=1)
    torch.save(other.state_dict(), tmp_path / "other.pth")
    with pytest.raises(InputError, match=r"other\.pth.*feedforward_channels=32 in the file, 64"):
        make_runner(tmp_path / "other.pth", recursion_depth=1).train()


def test_testing_refuses_a_file_without_the_head(make_runner, plain):
    with pytest.raises(InputError, match=r"plain\.safetensors lacks 2 tensors.*head"):
        make_runner(plain[1], recursion_depth=1).test()


def test_testing_what_the_same_runner_trained_from_a_file_without_a_head(make_runner, plain):
    runner = make_runner(plain[1], recursion_depth=2)
    runner.train()
    assert "accuracy/top1" in runner.test()


def test_testing_takes_what_training_saved(make_runner, plain):
    make_runner(plain[1], recursion_depth=2).train()
    runner = make_runner(plain[1].parent / "run" / "epoch_1.pth", recursion_depth=2)
    assert "accuracy/top1" in runner.test()


def test_resuming_with_another_model_is_refused_naming_both_shapes(make_runner, plain):
    make_runner(plain[1], recursion_depth=2).train()
    path = plain[1].parent / "run" / "epoch_1.pth"
    make_runner(path, resume=True, recursion_depth=2).train()
    with pytest.raises(InputError, match=r"epoch_1\.pth.*\(2, 32\) in the file, \(3, 32\) in the"):
        make_runner(path, resume=True, recursion_depth=3).train()


EMA_HOOKS = ["mmengine.EMAHook", "mmpretrain.EMAHook"]


@pytest.fixture(params=EMA_HOOKS)
def averaged(request, make_runner, tmp_path):
    """A run at depth 2 with a moving average: its kind of hook, file, average and weights."""
    make_runner(ema=request.param, lr=1.0, epochs=2, recursion_depth=2).train()
    path = (tmp_path / "run" / "epoch_2.pth").rename(tmp_path / "averaged.pth")
    content = torch.load(path, weights_only=False)
    second = content["ema_state_dict"]
    raw = {name.removeprefix("module."): value for name, value in second.items()}
    name = "backbone.layers.0.attn.qkv.weight"
    assert not torch.equal(content["state_dict"][name], raw[name])
    return request.param, path, content["state_dict"], raw


def average_of(runner):
    (hook,) = [hook for hook in runner.hooks if hasattr(hook, "ema_model")]
    return hook.ema_model.module


def assert_layers(model, state):
    assert next(model.parameters()).isfinite().all()
    for name, value in model.backbone.layers.state_dict().items():
        torch.testing.assert_close(value, state[f"backbone.layers.{name}"], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_average_starts_weights_and_average_of_a_run_at_any_depth(make_runner, averaged, depth):
    kind, path, average, _ = averaged
    for ema in (kind, False):
        runner = make_runner(path, ema=ema, recursion_depth=depth)
        runner.train()
        assert_layers(runner.model, average)
        if ema:
            assert_layers(average_of(runner), average)
        routers = [v for n, v in runner.model.named_parameters() if n.endswith("fc2.weight")]
        assert {len(weight) for weight in routers} == ({depth} if depth > 1 else set())


def test_average_starts_a_run_of_other_classes_and_size(make_runner, averaged):
    kind, path, average, _ = averaged
    runner = make_runner(path, ema=kind, recursion_depth=2, classes=7, img_size=64)
    runner.train()
    for model in (runner.model, average_of(runner)):
        assert_layers(model, average)
        assert model.backbone.pos_embed.shape == (1, 17, 32)
        assert model.head.layers.head.weight.shape == (7, 32)


@pytest.mark.parametrize("depth", [2, 3])
def test_testing_evaluates_the_average_and_beside_it_weights_that_fit(make_runner, averaged, depth):
    kind, path, average, raw = averaged
    runner = make_runner(path, ema=kind, recursion_depth=depth)
    runner.test()
    assert_layers(average_of(runner), average)
    keeps_both = depth == 2 and kind == "mmpretrain.EMAHook"
    assert_layers(runner.model, raw if keeps_both else average)


def test_resuming_takes_up_weights_and_average(make_runner, averaged):
    kind, path, average, raw = averaged
    runner = make_runner(path, resume=True, ema=kind, recursion_depth=2)
    runner.load_or_resume = lambda: None  # after the hooks are ready, before the first iteration
    runner.call_hook("before_run")
    runner.load_checkpoint(str(path))
    assert_layers(average_of(runner), average)
    assert_layers(runner.model, raw)


def test_resuming_without_the_average_that_the_run_kept_is_refused(make_runner, averaged):
    with pytest.raises(InputError, match=r"averaged\.pth is of a run that kept a moving average"):
        make_runner(averaged[1], resume=True, recursion_depth=2).train()


@pytest.mark.parametrize("raw", [None, [1], {"module.x": 3}], ids=str)
def test_second_weights_that_are_none_are_left_out(make_runner, averaged, raw):
    kind, path, average, _ = averaged
    torch.save({"state_dict": average, "ema_state_dict": raw}, path)
    runner = make_runner(path, ema=kind, recursion_depth=2)
    runner.train()
    assert_layers(runner.model, average)
    assert_layers(average_of(runner), average)


class RunsCode:
    """Creates a folder when unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize("resume", [True, False])
def test_code_in_a_file_that_a_run_starts_from_is_refused_unrun(make_runner, tmp_path, resume):
    target = tmp_path / "was_run"
    torch.save({"state_dict": {}, "meta": RunsCode(str(target))}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match=r"evil\.pth would run code.*mkdir") as error:
        make_runner(tmp_path / "evil.pth", resume=resume, recursion_depth=2).train()
    assert "\n" not in str(error.value)
    assert not target.exists()


def test_mmengines_loader_reads_safetensors(plain):
    content = CheckpointLoader.load_checkpoint(str(plain[1]))
    assert torch.equal(content["state_dict"]["pos_embed"], plain[0].pos_embed)
