"""Layer-wise learning rate decay against tables that are written out by hand."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS as CLS_MODELS
from mmpretrain.structures import DataSample
from mmseg.registry import MODELS as SEG_MODELS
from mmseg.utils import register_all_modules as register_mmseg
from torch import distributed, nn
from torch.distributed.fsdp import FullyShardedDataParallel

import mmsoftmor.engine  # noqa: F401  registers the constructor
from mmsoftmor.apis.configs import configs_dir, shipped_config
from mmsoftmor.errors import InputError

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)
LR, RATE, DECAY = 1e-3, 0.7, 0.1

# Depths of the parts of a backbone of four layers; all that is not listed here is at 5.
DEPTHS = {
    "backbone.patch_embed.": 0,
    "backbone.pos_embed": 0,
    "backbone.cls_token": 0,
    "backbone.layers.0.": 1,
    "backbone.routers.0.": 1,
    "backbone.layers.1.": 2,
    "backbone.routers.1.": 2,
    "backbone.layers.2.": 3,
    "backbone.routers.2.": 3,
    "backbone.layers.3.": 4,
    "backbone.routers.3.": 4,
}
DENSE = dict(out_type="featmap", window_size=4, img_size=64, arch=ARCH)


def classifier(**backbone):
    backbone = {"type": "SRViT", "arch": ARCH, "img_size": 64, "recursion_depth": 4, **backbone}
    head = dict(type="VisionTransformerClsHead", num_classes=3, in_channels=32)
    with DefaultScope.overwrite_default_scope("mmpretrain"):
        return CLS_MODELS.build(dict(type="ImageClassifier", backbone=backbone, head=head))


def upernet(**backbone):
    register_mmseg(init_default_scope=False)
    backbone = {"type": "mmpretrain.SRViT", "recursion_depth": 4, **DENSE, **backbone}
    model = dict(
        type="EncoderDecoder",
        backbone=backbone,
        neck=dict(type="SimpleFeaturePyramid", in_channels=32, out_channels=16, num_outs=4),
        decode_head=dict(
            type="UPerHead",
            in_channels=[16] * 4,
            in_index=[0, 1, 2, 3],
            channels=16,
            num_classes=3,
            norm_cfg=dict(type="BN"),
        ),
        test_cfg=dict(mode="whole"),
    )
    with DefaultScope.overwrite_default_scope("mmseg"):
        return SEG_MODELS.build(model)


@pytest.fixture(params=["classifier", "detector", "segmentor"])
def model(request, make_mask_rcnn):
    builders = dict(classifier=classifier, detector=make_mask_rcnn, segmentor=upernet)
    return builders[request.param](recursion_depth=4)


def build(model, rate=RATE, **paramwise):
    cfg = dict(
        type="OptimWrapper",
        optimizer=dict(type="AdamW", lr=LR, weight_decay=DECAY),
        constructor="RecursiveLayerDecayConstructor",
        paramwise_cfg=dict(layer_decay_rate=rate, **paramwise),
    )
    return build_optim_wrapper(model, cfg)


def expected_group(name, param, rate=RATE):
    """The learning rate and weight decay that the parameter must have."""
    depth = next((d for start, d in DEPTHS.items() if name.startswith(start)), 5)
    exempt = param.ndim == 1 or name in ("backbone.pos_embed", "backbone.cls_token")
    return LR * rate ** (5 - depth), 0.0 if exempt else DECAY


@pytest.mark.parametrize("rate", [0.7, 1.0])
def test_every_trainable_parameter_is_once_in_its_own_group(model, rate):
    found = {}
    for group in build(model, rate).optimizer.param_groups:
        for param in group["params"]:
            assert id(param) not in found, "a parameter is in two groups"
            found[id(param)] = (group["lr"], group["weight_decay"])
    named = dict(model.named_parameters())
    assert len(found) == len(named)
    for name, param in named.items():
        assert found[id(param)] == pytest.approx(expected_group(name, param, rate)), name


def test_groups_are_exactly_the_pairs_of_rate_and_decay(model):
    groups = [(g["lr"], g["weight_decay"]) for g in build(model).optimizer.param_groups]
    expected = {(LR * RATE**power, decay) for power in range(6) for decay in (0.0, DECAY)}
    assert len(groups) == len(set(groups)) == 12
    for group, pair in zip(sorted(groups), sorted(expected), strict=True):
        assert group == pytest.approx(pair)


def test_depth_of_the_recursion_changes_no_rate():
    def rates(depth):
        model = classifier(recursion_depth=depth)
        names = {id(p): n for n, p in model.named_parameters()}
        groups = build(model).optimizer.param_groups
        return {names[id(p)]: (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}

    deep, plain = rates(4), rates(1)
    assert {name: deep[name] for name in plain} == plain


@pytest.mark.parametrize(("unit", "depths"), [(2, (1, 3)), (4, (1,))])
def test_router_of_a_unit_learns_like_the_first_layer_it_reads(unit, depths):
    model = classifier(recursion_unit=unit)
    groups = build(model).optimizer.param_groups
    rates = {id(p): g["lr"] for g in groups for p in g["params"]}
    assert len(model.backbone.routers) == len(depths)
    for router, depth in zip(model.backbone.routers, depths, strict=True):
        for param in router.parameters():
            assert rates[id(param)] == pytest.approx(LR * RATE ** (5 - depth))


def test_frozen_parameters_are_in_no_group():
    model = classifier(frozen_stages=2)
    grouped = {id(p) for g in build(model).optimizer.param_groups for p in g["params"]}
    assert grouped == {id(p) for p in model.parameters() if p.requires_grad}
    assert len(grouped) < len(list(model.parameters()))


def test_layer_scale_is_not_decayed():
    model = classifier(layer_scale_init_value=0.1)
    groups = build(model).optimizer.param_groups
    decay = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    assert decay[id(model.backbone.layers[0].attn.gamma1.weight)] == 0


def test_shared_parameter_is_in_one_group():
    model = classifier()
    model.twin = model.head
    grouped = [p for g in build(model).optimizer.param_groups for p in g["params"]]
    assert len(grouped) == len({id(p) for p in grouped})


def test_parameter_without_a_place_is_refused_by_name():
    model = classifier()
    model.backbone.step_embed = nn.Parameter(torch.zeros(4, 32))
    with pytest.raises(InputError, match=r"backbone\.step_embed") as error:
        build(model)
    assert "\n" not in str(error.value)


def test_model_whose_backbone_knows_no_depths_is_refused():
    with pytest.raises(InputError, match="SRViT") as error:
        build(nn.Sequential(nn.Linear(2, 2)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("paramwise", [dict(bias_lr_mult=2.0), dict(custom_keys={})], ids=str)
def test_other_options_are_refused_by_name(paramwise):
    with pytest.raises(InputError, match=next(iter(paramwise))):
        build(classifier(), **paramwise)


@pytest.mark.parametrize("rate", [0, -0.7, 1.5, "0.7", None], ids=str)
def test_rate_that_is_none_is_refused_by_value(rate):
    with pytest.raises(InputError, match=rf"layer_decay_rate={rate!r}"):
        build(classifier(), rate)


@pytest.fixture
def one_process(tmp_path):
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


def test_model_wrapped_for_several_processes_has_the_same_groups(one_process):
    model = classifier()
    alone, wrapped = build(model), build(MMDistributedDataParallel(model, device_ids=None))
    for one, other in zip(
        alone.optimizer.param_groups, wrapped.optimizer.param_groups, strict=True
    ):
        assert (one["lr"], one["weight_decay"]) == (other["lr"], other["weight_decay"])
        assert [*map(id, one["params"])] == [*map(id, other["params"])]


@pytest.mark.parametrize("part", ["whole", "backbone"])
@pytest.mark.parametrize("keep_shapes", [True, False])
def test_sharded_model_is_refused_in_one_line(one_process, part, keep_shapes):
    model = classifier()
    options = dict(device_id=torch.device("cpu"), use_orig_params=keep_shapes)
    if part == "whole":
        model = FullyShardedDataParallel(model, **options)
    else:
        model.backbone = FullyShardedDataParallel(model.backbone, **options)
    with pytest.raises(InputError, match=r"sharding.*constructor=None") as error:
        build(model)
    assert "\n" not in str(error.value)


def test_exempt_parameters_are_trained_all_the_same(randomize):
    """Norms, biases, position table and class token have no decay, but they do learn."""
    model = randomize(classifier()).train()
    wrapper = build(model)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    samples = [DataSample().set_gt_label(label) for label in (0, 2)]
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(11))
    losses = model(x, samples, mode="loss")
    wrapper.update_params(losses["loss"])
    moved = {n: (p - before[n]).abs().max().item() for n, p in model.named_parameters()}
    assert [n for n, distance in moved.items() if distance == 0] == []


def test_table_of_the_groups_is_logged(monkeypatch):
    lines = []
    monkeypatch.setattr(
        "mmsoftmor.engine.layer_decay.print_log", lambda text, **_: lines.append(text)
    )
    model = classifier()
    build(model)
    (table,) = lines
    rows = table.splitlines()[1:]
    assert len(rows) == 12
    counts = [int(row.split()[-1].replace(",", "")) for row in rows]
    assert sum(counts) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    "path", sorted(Path(configs_dir()).glob("_base_/schedules/*.py")), ids=lambda p: p.stem
)
def test_shipped_schedules_exempt_norms_biases_tokens_and_tables(path, make_mask_rcnn):
    cfg = Config.fromfile(shipped_config(f"_base_/schedules/{path.name}")).optim_wrapper
    cfg.type = "OptimWrapper"
    cfg.pop("dtype", None)
    model = make_mask_rcnn(recursion_depth=4)
    groups = build_optim_wrapper(model, cfg).optimizer.param_groups
    decay = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    assert len(decay) == len(list(model.parameters()))
    for name, param in model.named_parameters():
        exempt = param.ndim == 1 or name == "backbone.pos_embed"
        assert decay[id(param)] == (0 if exempt else cfg.optimizer.weight_decay), name
