"""The shipped segmentation configs hold their recipe, and a child of three lines is enough."""

import copy
import importlib
from functools import cache

import pytest
import torch
from mmengine.registry import DefaultScope
from mmseg.datasets import ADE20KDataset

from mmsoftmor.apis.configs import configs_dir
from mmsoftmor.engine.config import class_counters, leaf_datasets, load_config
from mmsoftmor.engine.distributed import check_batch_norm, plain_batch_norm
from mmsoftmor.errors import InputError

ADE = sorted(path.stem for path in configs_dir().glob("upernet_srvit_*_ade20k.py"))
SIZES = {"t": "tiny", "s": "small", "b": "base"}


@cache
def load(name):
    return load_config(name)


@cache
def built(name):
    """The model of a shipped config, its tensors without memory."""
    importlib.import_module("mmseg.utils").register_all_modules(init_default_scope=False)
    model = load(name).model.copy()
    model.backbone = dict(model.backbone, init_cfg=None)
    registry = importlib.import_module("mmseg.registry").MODELS
    with DefaultScope.overwrite_default_scope("mmseg"), torch.device("meta"):
        return registry.build(model)


def test_every_segmenter_that_is_promised_is_there():
    names = ("t", "s", "b", "s_r1", "s_r2", "s_taps", "b_640")
    assert sorted(f"upernet_srvit_{name}_ade20k" for name in names) == ADE


@pytest.mark.parametrize("name", ADE)
def test_recipe_is_the_plain_deit_one(name):
    config = load(name)
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ("AdamW", 6e-5, 0.01)
    assert config.optim_wrapper.paramwise_cfg.layer_decay_rate == 1.0
    assert config.train_cfg.max_iters == 160000
    assert config.train_dataloader.batch_size == 2
    assert config.auto_scale_lr.base_batch_size == 16
    warmup, decay = config.param_scheduler
    assert (warmup.type, warmup.start_factor, warmup.end) == ("LinearLR", 1e-6, 1500)
    assert (decay.type, decay.power, decay.begin, decay.end) == ("PolyLR", 1.0, 1500, 160000)
    assert config.default_hooks.checkpoint.by_epoch is False


@pytest.mark.parametrize("name", ADE)
def test_starts_from_the_checkpoint_of_the_detector_of_its_size(name):
    backbone, size = load(name).model.backbone, name.split("_")[2]
    assert backbone.arch == SIZES[size]
    assert backbone.router.init == "first"
    assert backbone.init_cfg == load(f"maskrcnn_srvit_{size}_coco").model.backbone.init_cfg


@pytest.mark.parametrize("name", ADE)
def test_crop_and_padding_and_test_size_agree(name):
    config, side = load(name), 640 if "_640_" in name else 512
    steps = {step.type: step for step in config.train_dataloader.dataset.pipeline}
    assert steps["RandomCrop"].crop_size == (side, side)
    assert steps["RandomCrop"].cat_max_ratio == 0.75
    assert steps["RandomResize"].scale == (4 * side, side)
    assert steps["RandomResize"].ratio_range == (0.5, 2.0)
    assert config.model.data_preprocessor.size == (side, side)
    assert config.model.data_preprocessor.test_cfg.size_divisor % 32 == 0
    assert config.test_dataloader.dataset.pipeline[1].scale == (4 * side, side)


@pytest.mark.parametrize("name", ADE)
def test_inference_mode_is_stated(name):
    test_cfg = load(name).model.test_cfg
    if "_640_" in name:
        expected = dict(mode="slide", crop_size=(640, 640), stride=(426, 426))
        assert test_cfg == expected
    else:
        assert test_cfg == dict(mode="whole")


@pytest.mark.parametrize("name", ADE)
def test_views_are_six_scales_and_their_mirror_images_of_the_resized_image(name):
    config = load(name)
    side = config.test_dataloader.dataset.pipeline[1].scale[1]
    scales, flips, *_ = config.tta_pipeline[1].transforms
    assert [scale.scale[1] / side for scale in scales] == [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
    assert all(scale.scale[0] == 4 * scale.scale[1] for scale in scales)
    assert [flip.prob for flip in flips] == [0.0, 1.0]
    assert config.tta_model.type == "RunningSegTTA"


@pytest.mark.parametrize("name", ADE)
def test_zero_label_is_reduced_by_the_dataset_alone(name):
    config = load(name)
    for split in ("train", "val", "test"):
        (dataset,) = leaf_datasets(config[f"{split}_dataloader"])
        assert dataset.reduce_zero_label is True
        assert "reduce_zero_label" not in str(dataset.pipeline)
    assert "reduce_zero_label" not in str(config.tta_pipeline)


@pytest.mark.parametrize("name", ADE)
def test_heads_count_ade20ks_150_classes(name):
    counts = {path: part["num_classes"] for path, part in class_counters(load(name))}
    assert set(counts) == {"model.decode_head", "model.auxiliary_head"}
    assert set(counts.values()) == {len(ADE20KDataset.METAINFO["classes"])} == {150}


@pytest.mark.parametrize(("name", "millions"), [("t", 37.4), ("s", 55.5), ("s_r1", 53.7)])
def test_parameters_are_as_documented(name, millions):
    model = built(f"upernet_srvit_{name}_ade20k")
    count = sum(p.numel() for p in model.parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.05)
    assert model.decode_head.channels == 512
    assert model.neck.levels[0][-2].out_channels == model.auxiliary_head.channels == 256


def test_taps_are_layers_3_6_9_and_12():
    assert built("upernet_srvit_s_taps_ade20k").backbone.out_indices == (2, 5, 8, 11)
    assert built("upernet_srvit_s_ade20k").backbone.out_indices == (11,)


@pytest.mark.parametrize("name", ["upernet_srvit_t_ade20k", "upernet_srvit_b_640_ade20k"])
def test_plain_batch_norm_takes_the_same_weights(name):
    def norms(model):
        return [m for m in model.modules() if isinstance(m, torch.nn.SyncBatchNorm)]

    config = copy.deepcopy(load(name).model)
    config.backbone.init_cfg = None
    plain_batch_norm(config)
    registry = importlib.import_module("mmseg.registry").MODELS
    synced = built(name)
    with DefaultScope.overwrite_default_scope("mmseg"), torch.device("meta"):
        plain = registry.build(config)
    assert len(norms(synced)) > 10 and not norms(plain)
    shapes = {key: value.shape for key, value in synced.state_dict().items()}
    assert {key: value.shape for key, value in plain.state_dict().items()} == shapes


@pytest.mark.parametrize("name", ADE)
def test_three_line_child_changes_the_data_and_its_classes(tmp_path, name):
    child = tmp_path / "child.py"
    child.write_text(
        f'_base_ = "mmsoftmor::{name}.py"\n'
        'data_root = "mine/"\n'
        'classes, palette = ("cat", "dog"), ((1, 2, 3), (4, 5, 6))\n'
    )
    config = load_config(str(child))
    for split in ("train", "val", "test"):
        (dataset,) = leaf_datasets(config[f"{split}_dataloader"])
        assert dataset.data_root == "mine/"
        assert dataset.metainfo == dict(classes=("cat", "dog"), palette=((1, 2, 3), (4, 5, 6)))
    assert {part["num_classes"] for _, part in class_counters(config)} == {2}


def test_child_says_once_how_files_are_called_and_what_their_values_mean(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(
        '_base_ = "mmsoftmor::upernet_srvit_s_ade20k.py"\n'
        "reduce_zero_label = False\n"
        "value_map = ((255, 1),)\n"
        'img_suffix, seg_map_suffix = ".png", "_label.png"\n'
    )
    config = load_config(str(child))
    for split in ("train", "val", "test"):
        (dataset,) = leaf_datasets(config[f"{split}_dataloader"])
        assert dataset.reduce_zero_label is False
        assert dataset.value_map == ((255, 1),)
        assert (dataset.img_suffix, dataset.seg_map_suffix) == (".png", "_label.png")


def test_single_step_sibling_is_the_plain_vit_under_the_same_recipe():
    plain, deep = load("upernet_srvit_s_r1_ade20k"), load("upernet_srvit_s_ade20k")
    for key in ("optim_wrapper", "train_dataloader", "param_scheduler", "train_cfg"):
        assert plain[key] == deep[key]
    assert plain.model.backbone == {**deep.model.backbone, "recursion_depth": 1}


@pytest.mark.parametrize("name", ADE)
def test_one_image_in_a_batch_is_refused_before_batch_norm_meets_a_single_value(name):
    config = copy.deepcopy(load(name))
    check_batch_norm(config, "none")
    config.train_dataloader.batch_size = 1
    with pytest.raises(InputError, match=r"batch_size = 1 .*model\.decode_head"):
        check_batch_norm(config, "none")
    for head in (config.model.decode_head, config.model.auxiliary_head):
        head.norm_cfg = dict(type="mmpretrain.LN2d")
    check_batch_norm(config, "none")
