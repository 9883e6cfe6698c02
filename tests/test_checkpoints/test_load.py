"""Pretrained weights into SR-ViT: what is taken, what is reported, what is refused."""

import logging

import pytest
import torch
import torch.nn.functional as F
from mmengine.logging import MMLogger
from mmengine.runner import load_checkpoint
from mmpretrain.models import DistilledVisionTransformer, ImageClassifier
from safetensors.torch import save_file

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)
DENSE = dict(out_type="featmap", window_size=4)


def classifier_state(randomize, seed=1, **backbone):
    """The state dict of mmpretrain's own classifier on its plain vision transformer."""
    options = dict(type="VisionTransformer", arch=ARCH, img_size=64, **backbone)
    head = dict(type="VisionTransformerClsHead", num_classes=5, in_channels=32)
    return randomize(ImageClassifier(backbone=options, head=head), seed).state_dict()


def resized(table, source, target):
    maps = table.view(1, *source, 32).permute(0, 3, 1, 2)
    maps = F.interpolate(maps, size=target, mode="bicubic", align_corners=False)
    return maps.permute(0, 2, 3, 1).reshape(1, -1, 32)


@pytest.fixture
def state(randomize):
    return classifier_state(randomize)


@pytest.fixture
def file(state, tmp_path):
    torch.save({"state_dict": state, "meta": {}}, tmp_path / "deit.pth")
    return tmp_path / "deit.pth"


@pytest.fixture
def log(monkeypatch):
    """Collect ``(level, message)`` of what goes to the current logger."""
    lines = []

    class Collector(logging.Handler):
        def emit(self, record):
            lines.append((record.levelname, record.getMessage()))

    handler, logger = Collector(), MMLogger.get_current_instance()
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def assert_same_trunk(model, state, prefix="backbone."):
    own = model.state_dict()
    compared = [name for name in own if not name.startswith(("routers.", "pos_embed"))]
    assert len(compared) == 12 * 4 + 2 + 2 + int(model.with_cls_token)
    for name in compared:
        assert torch.equal(own[name], state[prefix + name]), name


def test_classifier_loads_to_the_last_bit(state, file):
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    report = load_pretrained(model, file)
    assert_same_trunk(model, state)
    assert torch.equal(model.pos_embed, state["backbone.pos_embed"])
    assert report.trunk_share == 1
    assert sorted(report.matched) == sorted(model.state_dict())
    assert report.resized == report.missing == report.new == []
    assert sorted(report.unused) == ["head.layers.head.bias", "head.layers.head.weight"]
    assert report.path == str(file)


@pytest.mark.parametrize("size", [64, 96, (48, 128)], ids=str)
def test_dense_model_drops_the_class_token_before_its_table_is_resized(state, file, size):
    model = SRViT(ARCH, img_size=size, recursion_depth=4, router=dict(init="first"), **DENSE)
    routers = {n: p.clone() for n, p in model.routers.named_parameters()}
    report = load_pretrained(model, file)
    assert_same_trunk(model, state)
    expected = state["backbone.pos_embed"][:, 1:]
    if size != 64:
        expected = resized(expected, (4, 4), model.grid)
    torch.testing.assert_close(model.pos_embed.data, expected, rtol=1e-5, atol=1e-6)
    assert all(torch.equal(p, routers[n]) for n, p in model.routers.named_parameters())
    assert report.resized == (["pos_embed"] if size != 64 else [])
    assert list(report.converted) == (["pos_embed"] if size == 64 else [])
    assert report.missing == []
    assert sorted(report.new) == sorted(n for n in model.state_dict() if n.startswith("routers."))
    assert set(report.unused) == {
        "cls_token",
        "head.layers.head.weight",
        "head.layers.head.bias",
    }
    assert report.trunk_share == 1


def test_report_is_logged_with_new_apart_from_missing(file, log):
    options = dict(img_size=96, recursion_depth=4, router=dict(init="first"), **DENSE)
    load_pretrained(SRViT(ARCH, **options), file)
    (level, text), *_ = [entry for entry in log if "deit.pth" in entry[1]]
    assert level == "INFO"
    assert "100.0% of the trunk's parameters" in text
    assert "new by design (16)" in text
    assert "resized (1): pos_embed, 4x4 in the file, 6x6 in the model\n" in text
    assert "missing" not in text


def test_other_tensors_that_end_like_the_backbones_are_reported_unused(state, tmp_path):
    extra = {f"ema_{name}": value for name, value in state.items()}
    torch.save({**state, **extra, "neck.ln1.weight": torch.ones(32)}, tmp_path / "deit.pth")
    report = load_pretrained(SRViT(ARCH, img_size=64, recursion_depth=1), tmp_path / "deit.pth")
    assert set(extra) | {"neck.ln1.weight"} <= set(report.unused)


@pytest.mark.parametrize("before", ["", "backbone.", "module.backbone.", "model."])
def test_prefix_is_found_in_the_file(state, tmp_path, before):
    trunk = {n.removeprefix("backbone."): v for n, v in state.items() if n.startswith("backbone.")}
    torch.save({before + name: value for name, value in trunk.items()}, tmp_path / "deit.pth")
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    load_pretrained(model, tmp_path / "deit.pth")
    assert_same_trunk(model, trunk, "")


@pytest.mark.parametrize("prefix", ["teacher", "teacher."])
def test_given_prefix_chooses_between_two_backbones(state, randomize, tmp_path, prefix):
    other = classifier_state(randomize, seed=2)
    teacher = {n.replace("backbone.", "teacher."): v for n, v in other.items()}
    torch.save({**state, **teacher}, tmp_path / "two.pth")
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    load_pretrained(model, tmp_path / "two.pth", prefix=prefix)
    assert_same_trunk(model, teacher, "teacher.")


def test_half_precision_safetensors_load_into_fp32(state, tmp_path):
    save_file({n: v.half().contiguous() for n, v in state.items()}, tmp_path / "deit.safetensors")
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    load_pretrained(model, tmp_path / "deit.safetensors")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert_same_trunk(model, {n: v.half().float() for n, v in state.items()})


def test_distilled_deit_loads_without_its_second_token(randomize, tmp_path):
    theirs = randomize(DistilledVisionTransformer(arch=ARCH, img_size=64))
    state = theirs.state_dict()
    assert state["pos_embed"].shape[1] == 18
    torch.save(state, tmp_path / "deit.pth")
    for options in ({}, DENSE):
        model = SRViT(ARCH, img_size=64, recursion_depth=1, **options)
        report = load_pretrained(model, tmp_path / "deit.pth")
        assert_same_trunk(model, state, "")
        assert torch.equal(model.pos_embed[:, -16:], state["pos_embed"][:, 2:])
        assert "dist_token" in report.unused
        assert report.resized == []  # the same grid: only entries of tokens go
        assert report.converted["pos_embed"].startswith("entries of special tokens")


def test_table_that_fits_no_grid_is_refused_naming_file_and_counts(state, tmp_path):
    del state["backbone.cls_token"]
    state["backbone.pos_embed"] = torch.zeros(1, 15, 32)
    torch.save(state, tmp_path / "deit.pth")
    with pytest.raises(InputError, match=r"deit\.pth.*15 entries.*4x4") as error:
        load_pretrained(SRViT(ARCH, img_size=64, **DENSE), tmp_path / "deit.pth")
    assert "\n" not in str(error.value)


def test_all_names_wrong_is_refused(state, tmp_path):
    torch.save({f"x{i}": value for i, value in enumerate(state.values())}, tmp_path / "deit.pth")
    with pytest.raises(InputError, match=r"patch_embed\.projection\.weight") as error:
        load_pretrained(SRViT(ARCH, img_size=64), tmp_path / "deit.pth")
    assert str(tmp_path / "deit.pth") in str(error.value)
    assert "\n" not in str(error.value)


def test_most_names_wrong_is_refused_with_the_share_and_what_is_missing(state, tmp_path):
    renamed = {n.replace(".attn.qkv.", ".attn.in_proj."): v for n, v in state.items()}
    torch.save(renamed, tmp_path / "deit.pth")
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    before = {n: p.clone() for n, p in model.state_dict().items()}
    with pytest.raises(InputError, match=r"\d+\.\d% of the trunk.*layers\.0") as error:
        load_pretrained(model, tmp_path / "deit.pth")
    assert "\n" not in str(error.value)
    assert all(torch.equal(p, before[n]) for n, p in model.state_dict().items())


def test_partial_file_loads_where_it_is_allowed(state, tmp_path):
    state = {n: v for n, v in state.items() if not n.startswith("backbone.layers.3.")}
    torch.save(state, tmp_path / "deit.pth")
    model = SRViT(ARCH, img_size=64, recursion_depth=1)
    report = load_pretrained(model, tmp_path / "deit.pth", allow_partial=True)
    assert {name.rsplit(".", 1)[0][:8] for name in report.missing} == {"layers.3"}
    total = sum(p.numel() for p in model.parameters())
    lacking = sum(p.numel() for p in model.layers[3].parameters())
    assert report.trunk_share == pytest.approx(1 - lacking / total)
    assert torch.equal(model.layers[0].attn.qkv.weight, state["backbone.layers.0.attn.qkv.weight"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (dict(patch_size=8), "patch_size=16 in the file, 8 in the model"),
        (
            dict(arch={**ARCH, "feedforward_channels": 32}),
            "feedforward_channels=64 in the file, 32 in the model",
        ),
        (dict(arch={**ARCH, "embed_dims": 48}), "embed_dims=32 in the file, 48 in the model"),
        (dict(arch={**ARCH, "num_layers": 2}), "num_layers=4 in the file, 2 in the model"),
        (dict(arch={**ARCH, "num_layers": 6}), "num_layers=4 in the file, 6 in the model"),
        (dict(in_channels=4), "(32, 3, 16, 16), the model's is (32, 4, 16, 16)"),
        (dict(qkv_bias=False), "set qkv_bias=True"),
        (dict(layer_scale_init_value=1e-5), "set layer_scale_init_value=0"),
    ],
    ids=str,
)
def test_other_architecture_is_refused_in_one_line_that_names_both(file, options, named):
    with pytest.raises(InputError) as error:
        load_pretrained(SRViT(**{"arch": ARCH, "img_size": 64, **options}), file)
    assert named in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_trained_routers_come_along_at_the_same_depth(make_srvit, tmp_path):
    source = make_srvit(recursion_depth=2)
    torch.save(source.state_dict(), tmp_path / "r2.pth")
    model = make_srvit(recursion_depth=2, seed=3)
    report = load_pretrained(model, tmp_path / "r2.pth")
    assert report.new == report.missing == report.unused == []
    for name, value in source.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


@pytest.mark.parametrize(("depth", "level"), [(2, "INFO"), (3, "WARNING")])
def test_another_depth_is_logged_as_a_warning_that_names_both(
    make_srvit, tmp_path, log, depth, level
):
    torch.save(make_srvit(recursion_depth=2).state_dict(), tmp_path / "r2.pth")
    load_pretrained(make_srvit(recursion_depth=depth), tmp_path / "r2.pth")
    (told, text), *_ = [entry for entry in log if "r2.pth" in entry[1]]
    assert told == level
    assert ("recursion_depth=2 in the file, 3 in the model" in text) == (depth == 3)


def test_mmengines_own_loading_fits_class_token_and_table_too(state, file):
    model = SRViT(ARCH, img_size=96, recursion_depth=4, **DENSE)
    load_checkpoint(model, str(file), revise_keys=[(r"^backbone\.", "")])
    assert_same_trunk(model, state)
    expected = resized(state["backbone.pos_embed"][:, 1:], (4, 4), (6, 6))
    torch.testing.assert_close(model.pos_embed.data, expected, rtol=1e-5, atol=1e-6)
