"""Every shipped config: it resolves, builds, agrees with itself and holds its recipe's numbers."""

import importlib
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from mmdet.structures.bbox import HorizontalBoxes
from mmdet.structures.mask import BitmapMasks
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from torch import nn

from mmsoftmor.apis.configs import configs_dir
from mmsoftmor.engine.config import class_counters, leaf_datasets, load_config

NAMES = sorted(path.stem for path in configs_dir().glob("*.py"))
DETECTORS = [name for name in NAMES if name.startswith("maskrcnn") and name.endswith("_coco")]
NAME = re.compile(r"([a-z]+_)?srvit_(t|s|b|nano)(_r(?P<depth>\d+))?(_[a-z0-9-]+)?_[a-z0-9]+")


@cache
def load(name):
    return load_config(str(configs_dir() / f"{name}.py"))


def build(config, device="meta"):
    """Build a config's model through its own library, without downloading weights."""
    scope = config.default_scope
    importlib.import_module(f"{scope}.utils").register_all_modules(init_default_scope=False)
    model = config.model.copy()
    model.backbone = dict(model.backbone, init_cfg=None)
    registry = importlib.import_module(f"{scope}.registry").MODELS
    with DefaultScope.overwrite_default_scope(scope), torch.device(device):
        return registry.build(model)


@cache
def built(name):
    """The model of a shipped config, its tensors without memory."""
    return build(load(name))


@pytest.mark.parametrize("name", NAMES)
def test_config_builds_a_trainable_model_with_the_depth_that_its_name_says(name):
    config, match = load(name), NAME.fullmatch(name)
    assert match, "not of the form method_srvit_size[_rR][_schedule]_dataset"
    model = built(name)
    assert model.backbone.recursion_depth == int(match["depth"] or 4)
    assert config.recursion_depth == model.backbone.recursion_depth
    assert hasattr(model.backbone, "routers") == (model.backbone.recursion_depth > 1)
    assert all(p.requires_grad for p in model.parameters())


def zoo_page():
    """Config and millions of parameters of each row of the page."""
    page = (configs_dir().parent / "docs" / "model_zoo.md").read_text()
    return re.findall(r"^\| `(\w[\w-]+)` \| ([\d.]+)M \|", page, re.MULTILINE)


def zoo_index():
    """Config and entry of the index that OpenMMLab's package manager reads."""
    content = yaml.safe_load((configs_dir() / "metafile.yml").read_text())
    return [(model["Name"], model) for model in content["Models"]]


def test_zoo_lists_every_config_for_real_data_once():
    real = [name for name in NAMES if not name.endswith("_sample")]
    assert sorted(name for name, _ in zoo_page()) == real
    assert sorted(name for name, _ in zoo_index()) == real


@pytest.mark.parametrize("name", sorted(dict(zoo_index())))
def test_zoo_states_the_parameters_of_the_built_model(name):
    entry, said = dict(zoo_index())[name], dict(zoo_page())[name]
    count = sum(parameter.numel() for parameter in built(name).parameters())
    assert entry["Metadata"]["Parameters"] == count
    assert said == f"{count / 1e6:.{len(said.split('.')[1])}f}"
    assert entry["Config"] == f"configs/{name}.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_layer_norm_of_the_built_model_has_eps_1e_6(name):
    norms = {n: m for n, m in built(name).named_modules() if isinstance(m, nn.LayerNorm)}
    assert len(norms) >= 2 * 4
    assert {n: m.eps for n, m in norms.items() if m.eps != 1e-6} == {}


@pytest.mark.parametrize("name", [n for n in NAMES if "_nano_" in n or n.endswith("_t_coco")])
def test_small_configs_build_with_real_weights_too(name):
    model = build(load(name), "cpu")
    model.init_weights()
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_channels_and_strides_agree(name):
    config = load(name)
    model = built(name)
    neck, patch = config.model.get("neck"), config.model.backbone.patch_size
    assert patch == 16
    if neck is None:
        return
    assert neck["in_channels"] == model.backbone.embed_dims
    strides = [4, 8, 16, 32, 64][: neck["num_outs"]]
    if "rpn_head" in config.model:
        assert config.model.rpn_head.anchor_generator.strides == strides
        assert config.model.rpn_head.in_channels == neck["out_channels"]
        for part in ("bbox_roi_extractor", "mask_roi_extractor"):
            extractor = config.model.roi_head[part]
            assert extractor.featmap_strides == strides[:4]
            assert extractor.out_channels == neck["out_channels"]
        divisor = config.model.data_preprocessor.pad_size_divisor
        assert divisor % 32 == 0, "the pyramid's levels would round up differently"
    if "decode_head" in config.model:
        assert config.model.decode_head.in_channels == [neck["out_channels"]] * 4
        assert neck["num_outs"] == 4


def dataset_classes(config):
    """The class names of the training data, or None where only the folders tell them."""
    dataset = next(leaf_datasets(config.train_dataloader))
    if config.get("classes") or dataset.get("metainfo", {}).get("classes"):
        return config.get("classes") or dataset.metainfo.classes
    registry = importlib.import_module(f"{config.default_scope}.registry").DATASETS
    importlib.import_module(f"{config.default_scope}.datasets")
    with DefaultScope.overwrite_default_scope(config.default_scope):
        return registry.get(dataset.type).METAINFO.get("classes")


@pytest.mark.parametrize("name", NAMES)
def test_every_part_counts_the_classes_of_the_data(name):
    config = load(name)
    counts = {path: part["num_classes"] for path, part in class_counters(config)}
    assert counts
    assert len(set(counts.values())) == 1, counts
    classes = dataset_classes(config)
    if classes:
        assert set(counts.values()) == {len(classes)}


@pytest.mark.parametrize("name", NAMES)
def test_what_every_run_needs_is_declared(name):
    config = load(name)
    assert "find_unused_parameters" not in str(config.to_dict())
    assert {"mmsoftmor.models", "mmsoftmor.engine"} <= set(config.custom_imports["imports"])
    hooks = {hook.type: hook for hook in config.custom_hooks}
    assert {"ReproducibleRNGHook", "FiniteLossHook", "BackboneCheckpointHook"} <= set(hooks)
    assert hooks["EmptyCacheHook"].before_epoch is True  # before every validation
    assert config.auto_scale_lr.enable is False
    assert config.auto_scale_lr.base_batch_size % config.train_dataloader.batch_size == 0
    assert config.optim_wrapper.clip_grad is not None
    assert config.optim_wrapper.constructor == "RecursiveLayerDecayConstructor"
    assert set(config.optim_wrapper.paramwise_cfg) == {"layer_decay_rate"}


@pytest.mark.parametrize("name", NAMES)
def test_schedule_ends_with_the_training(name):
    config = load(name)
    total = config.train_cfg.get("max_epochs") or config.train_cfg.max_iters
    ends = [s.get("end") or s.get("begin", 0) + s["T_max"] for s in config.param_scheduler]
    assert max(ends[1:]) == total, "the last scheduler must run to the end"
    warmup = config.param_scheduler[0]
    assert warmup.type == "LinearLR"
    assert warmup.by_epoch is False or warmup.convert_to_iter_based


SIZES = {"t": ("tiny", 192), "s": ("small", 384), "b": ("base", 768)}


@pytest.mark.parametrize("name", DETECTORS)
def test_detector_starts_from_the_deit_of_its_size_in_mmpretrains_zoo(name):
    import mmpretrain

    backbone = load(name).model.backbone
    arch, width = SIZES[NAME.fullmatch(name)[2]]
    assert backbone.arch == arch
    assert backbone.router.init == "first"
    address = backbone.init_cfg.checkpoint
    zoo = Path(mmpretrain.__file__).parent / ".mim" / "configs" / "deit" / "metafile.yml"
    models = yaml.safe_load(zoo.read_text())["Models"]
    paths = {m["Name"]: m["Weights"].split("/", 3)[3] for m in models if m.get("Weights")}
    (deit,) = [n for n, path in paths.items() if path == address.split("/", 3)[3]]
    assert deit.startswith(f"deit-{arch}_")
    assert built(name).backbone.embed_dims == width


# Epochs, images in a step on one card, images in a step of the recipe, weight decay, layer decay.
RECIPES = {
    "": (100, 8, 64, 0.1, 0.7),
    "lsj-50e": (50, 8, 64, 0.1, 0.7),
    "lsj-25e": (25, 8, 64, 0.1, 0.7),
    "copypaste": (100, 8, 64, 0.1, 0.7),
    "1x": (12, 2, 16, 0.05, 1.0),
    "3x-ms": (36, 2, 16, 0.05, 1.0),
}


def recipe_of(name):
    return re.fullmatch(r"maskrcnn_srvit_[tsb](?:_r\d+)?_?(.*?)_?coco", name)[1]


@pytest.mark.parametrize("name", DETECTORS)
def test_detector_holds_the_numbers_of_its_recipe(name):
    config, recipe = load(name), recipe_of(name)
    epochs, on_card, in_all, weight_decay, layer_decay = RECIPES[recipe]
    assert config.train_cfg.max_epochs == epochs
    assert config.train_dataloader.batch_size == on_card
    assert config.auto_scale_lr.base_batch_size == in_all == 8 * on_card
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr) == ("AdamW", 1e-4)
    assert optimizer.weight_decay == weight_decay
    assert config.optim_wrapper.paramwise_cfg.layer_decay_rate == layer_decay
    drops = config.param_scheduler[1].milestones
    shares = {12: (8 / 12, 11 / 12), 36: (27 / 36, 33 / 36)}.get(epochs, (0.889, 0.963))
    assert [drop / epochs for drop in drops] == pytest.approx(shares, abs=0.5 / epochs)
    assert config.env_cfg.dist_cfg.backend == "nccl"


@pytest.mark.parametrize("name", [n for n in DETECTORS if recipe_of(n) not in ("1x", "3x-ms")])
def test_large_scale_jitter_crops_to_1024_from_a_tenth_to_double(name):
    config = load(name)
    assert config.optim_wrapper.type == "AmpOptimWrapper"
    pipeline = next(leaf_datasets(config.train_dataloader)).pipeline
    steps = {step.type: step for step in pipeline}
    assert steps["RandomResize"].scale == (1024, 1024)
    assert steps["RandomResize"].ratio_range == (0.1, 2.0)
    assert steps["RandomCrop"].crop_size == (1024, 1024)
    assert steps["RandomFlip"].prob == 0.5
    (pad,) = config.model.data_preprocessor.batch_augments
    assert (pad.type, pad.size) == ("BatchFixedSizePad", (1024, 1024))


def one_square(low, high, side=32):
    """Results of a pipeline: an image with one object, a square from ``low`` to ``high``."""
    mask = np.zeros((1, side, side), np.uint8)
    mask[0, low:high, low:high] = 1
    return dict(
        img=np.zeros((side, side, 3), np.uint8),
        img_shape=(side, side),
        gt_bboxes=HorizontalBoxes([[low, low, high, high]], dtype=torch.float32),
        gt_bboxes_labels=np.array([1]),
        gt_ignore_flags=np.array([False]),
        gt_masks=BitmapMasks(mask, side, side),
    )


def test_object_that_is_wholly_pasted_over_is_no_target():
    paste, clean, _ = load("maskrcnn_srvit_s_copypaste_coco").train_dataloader.dataset.pipeline
    with DefaultScope.overwrite_default_scope("mmdet"):
        both = Compose([paste, clean])
    seen = set()
    for _ in range(20):  # an object is pasted or not
        results = both(one_square(4, 8) | {"mix_results": [one_square(0, 16)]})
        seen.add(tuple(results["gt_bboxes"].tensor.flatten().tolist()))
    assert seen == {(4.0, 4.0, 8.0, 8.0), (0.0, 0.0, 16.0, 16.0)}


@pytest.mark.parametrize("size", ["t", "s", "b"])
def test_every_size_has_every_recipe(size):
    expected = ["", "_lsj-25e", "_lsj-50e", "_1x", "_3x-ms"]
    assert {f"maskrcnn_srvit_{size}{recipe}_coco" for recipe in expected} <= set(DETECTORS)


@pytest.mark.parametrize("name", DETECTORS)
def test_three_line_child_changes_the_depth(tmp_path, name):
    child = tmp_path / "child.py"
    child.write_text(f'_base_ = "{configs_dir() / name}.py"\nrecursion_depth = 3\n')
    assert load_config(str(child)).model.backbone.recursion_depth == 3


def test_three_line_child_changes_the_schedule(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(
        f'_base_ = "{configs_dir() / "maskrcnn_srvit_s_1x_coco.py"}"\n'
        "train_cfg = dict(max_epochs=6)\n"
        'param_scheduler = [dict(type="MultiStepLR", milestones=[4, 5])]\n'
    )
    config = load_config(str(child))
    assert config.train_cfg == {**load("maskrcnn_srvit_s_1x_coco").train_cfg, "max_epochs": 6}
    assert [s.milestones for s in config.param_scheduler] == [[4, 5]]
    assert config.optim_wrapper == load("maskrcnn_srvit_s_1x_coco").optim_wrapper


@pytest.mark.parametrize("name", DETECTORS)
def test_three_line_child_changes_the_data_and_its_classes(tmp_path, name):
    child = tmp_path / "child.py"
    child.write_text(
        f'_base_ = "{configs_dir() / name}.py"\ndata_root = "mine/"\nclasses = ("cat", "dog")\n'
    )
    config = load_config(str(child))
    for split in ("train", "val", "test"):
        (dataset,) = leaf_datasets(config[f"{split}_dataloader"])
        assert dataset.data_root == "mine/"
        assert dataset.metainfo.classes == ("cat", "dog")
    assert config.val_evaluator.ann_file.startswith("mine/")
    assert {part["num_classes"] for _, part in class_counters(config)} == {2}


def test_single_step_sibling_is_the_plain_vit_under_the_same_recipe():
    plain, deep = load("maskrcnn_srvit_s_r1_coco"), load("maskrcnn_srvit_s_coco")
    for key in ("optim_wrapper", "train_dataloader", "param_scheduler", "train_cfg"):
        assert plain[key] == deep[key]
    one, four = built("maskrcnn_srvit_s_r1_coco").backbone, built("maskrcnn_srvit_s_coco").backbone
    assert set(one.state_dict()) == {n for n in four.state_dict() if not n.startswith("routers.")}
