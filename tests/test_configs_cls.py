"""The ImageNet configs: DeiT's numbers and the models' sizes."""

import re
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.registry import DefaultScope

from mmsoftmor.apis.configs import configs_dir
from mmsoftmor.engine.config import load_config

NAMES = sorted(path.stem for path in configs_dir().glob("srvit_*_in1k.py"))
RECIPE = [name for name in NAMES if "_384_" not in name]
SIZES = {"t": ("tiny", 192), "s": ("small", 384), "b": ("base", 768)}


def test_every_size_has_every_depth():
    expected = {f"srvit_{size}{depth}_in1k" for size in "tsb" for depth in ("", "_r1", "_r2")}
    assert set(NAMES) == expected | {f"srvit_{size}_384_in1k" for size in "tsb"}


def deit_parameters(arch):
    """Parameters of DeiT of this size, as mmpretrain's zoo states them."""
    import mmpretrain

    zoo = Path(mmpretrain.__file__).parent / ".mim" / "configs" / "deit" / "metafile.yml"
    models = {m["Name"]: m for m in yaml.safe_load(zoo.read_text())["Models"]}
    (name,) = [n for n in models if re.fullmatch(rf"deit-{arch}_\d+xb\d+_in1k", n)]
    return models[name]["Metadata"]["Parameters"]


@pytest.mark.parametrize("name", NAMES)
def test_classifier_is_deit_plus_its_routers(name):
    from mmpretrain.registry import MODELS
    from mmpretrain.utils import register_all_modules

    config = load_config(name)
    register_all_modules(init_default_scope=False)
    with DefaultScope.overwrite_default_scope("mmpretrain"), torch.device("meta"):
        model = MODELS.build(config.model)
    arch, width = SIZES[name.split("_")[1]]
    depth = config.recursion_depth
    # A router: two layers, width to width and width + 1 step's worth of logits, with biases.
    router = width * width + width + width * depth + depth
    expected = deit_parameters(arch) + (12 * router if depth > 1 else 0)
    if "_384_" in name:
        expected += (24 * 24 - 14 * 14) * width
    assert sum(p.numel() for p in model.parameters()) == expected
    stated = {"srvit_s_r1_in1k": 22_050_664, "srvit_s_in1k": 23_843_224}
    assert expected == stated.get(name, expected)


@pytest.mark.parametrize("name", RECIPE)
def test_recipe_holds_the_numbers_of_deit(name):
    config = load_config(name)
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ("AdamW", 1e-3, 0.05)
    assert (config.optim_wrapper.type, config.optim_wrapper.dtype) == (
        "AmpOptimWrapper",
        "bfloat16",
    )
    assert config.optim_wrapper.paramwise_cfg.layer_decay_rate == 1.0
    assert config.train_cfg.max_epochs == 300
    assert 8 * config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size == 1024
    assert config.model.backbone.drop_path_rate == 0.1
    assert config.model.head.loss.label_smooth_val == 0.1
    mixup, cutmix = config.data_preprocessor.batch_augments.augments
    assert (mixup.type, mixup.alpha, cutmix.type, cutmix.alpha) == ("Mixup", 0.8, "CutMix", 1.0)
    steps = {step.type: step for step in config.train_dataloader.dataset.pipeline}
    assert (steps["RandAugment"].magnitude_level, steps["RandAugment"].magnitude_std) == (9, 0.5)
    assert steps["RandomErasing"].erase_prob == 0.25
    assert steps["RandomResizedCrop"].interpolation == "bicubic"
    assert config.train_dataloader.sampler.type == "RepeatAugSampler"
    ema = next(hook for hook in config.custom_hooks if hook.type == "EMAHook")
    assert ema.momentum == pytest.approx(1 - 0.99996)  # DeiT's decay


@pytest.mark.parametrize(
    ("name", "edge", "crop"), [("srvit_b_in1k", 256, 224), ("srvit_b_384_in1k", 438, 384)]
)
def test_evaluation_takes_the_centre_and_counts_the_first_and_first_five(name, edge, crop):
    config = load_config(name)
    for split in ("val", "test"):
        _, resize, centre, _ = config[f"{split}_dataloader"].dataset.pipeline
        assert (resize.type, resize.scale, resize.interpolation) == ("ResizeEdge", edge, "bicubic")
        assert (centre.type, centre.crop_size) == ("CenterCrop", crop)
        assert config[f"{split}_evaluator"].topk == (1, 5)
    assert config.train_dataloader.dataset.pipeline[1].scale == crop
    assert config.model.backbone.img_size == crop


def rates(name, epochs):
    """Learning rates of a config's schedulers at the start of each of some epochs of two steps."""
    from mmengine.optim import OptimWrapper
    from mmengine.registry import PARAM_SCHEDULERS

    config = load_config(name)
    weight = torch.nn.Parameter(torch.zeros(1))
    wrapper = OptimWrapper(torch.optim.AdamW([weight], lr=config.optim_wrapper.optimizer.lr))
    schedulers = []
    for options in config.param_scheduler:
        options = dict(options)
        kind = PARAM_SCHEDULERS.get(options.pop("type"))
        by_iter = options.pop("convert_to_iter_based", False)
        build = kind.build_iter_from_epoch if by_iter else kind
        extra = dict(epoch_length=2) if by_iter else {}
        schedulers.append((by_iter, build(optimizer=wrapper, **options, **extra)))
    seen = []
    for step in range(2 * epochs):
        if step % 2 == 0:
            seen.append(wrapper.get_lr()["lr"][0])
        wrapper.optimizer.step()
        for by_iter, scheduler in schedulers:
            if by_iter or step % 2:
                scheduler.step()
    return [*seen, wrapper.get_lr()["lr"][0]]


def test_rate_warms_up_from_1e_6_and_falls_along_a_cosine_to_1e_5():
    seen = rates("srvit_s_in1k", 300)
    assert seen[0] == pytest.approx(1e-6)
    assert seen[5] == pytest.approx(1e-3, rel=1e-3)
    assert seen[5 + 295 // 2] == pytest.approx((1e-3 + 1e-5) / 2, rel=0.02)
    assert seen[300] == pytest.approx(1e-5, rel=1e-3)
    assert max(seen) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_fine_tuning_starts_from_the_pretraining_of_its_size(size):
    path = f"work_dirs/srvit_{size}_in1k/epoch_300.pth"
    assert load_config(f"srvit_{size}_384_in1k").load_from == path


def test_rate_of_fine_tuning_is_constant_behind_the_warm_up():
    config, seen = load_config("srvit_s_384_in1k"), rates("srvit_s_384_in1k", 30)
    assert seen[0] == pytest.approx(1e-6)
    assert seen[5:] == pytest.approx([5e-6] * 26, rel=1e-6)
    assert config.optim_wrapper.optimizer.weight_decay == 1e-8
    assert 8 * config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size == 512
