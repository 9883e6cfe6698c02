"""Files that look like a vision transformer's and are none: one line, and the model untouched."""

import argparse

import pytest
import torch
from safetensors.torch import save_file

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.checkpoints.facts import META_KEY, facts_of_model
from mmsoftmor.checkpoints.schemes import TIMM
from mmsoftmor.errors import InputError

QKV = "blocks.1.attn.qkv.weight"


@pytest.fixture
def state(make_srvit):
    """A plain backbone's tensors under timm's names."""
    plain = make_srvit(recursion_depth=1)
    return {TIMM.restore(name): value for name, value in plain.state_dict().items()}


def assert_refused(model, path, match, **options):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InputError, match=match) as error:
        load_pretrained(model, path, **options)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


SHAPES = {
    "pos_embed": [(17, 32), (1, 4, 4, 32)],
    "cls_token": [(32,), (1, 32)],
    "patch_embed.proj.weight": [(), (32, 768), (32, 3, 2, 16, 16)],
}


@pytest.mark.parametrize(
    ("name", "shape"), [(n, shape) for n, shapes in SHAPES.items() for shape in shapes], ids=str
)
def test_stem_with_other_axes(state, make_srvit, tmp_path, name, shape):
    torch.save({**state, name: torch.zeros(shape)}, tmp_path / "vit.pth")
    assert_refused(make_srvit(recursion_depth=1), tmp_path / "vit.pth", r"axes: give the file of")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("pos_embed", (1, 17, 48)),
        ("patch_embed.proj.weight", (32, 3, 8, 16)),
        (QKV, (96, 31)),
        ("norm.weight", (0,)),
    ],
)
def test_tensor_of_another_shape_names_both(state, make_srvit, tmp_path, name, shape):
    torch.save({**state, name: torch.zeros(shape)}, tmp_path / "vit.pth")
    match = rf"has shape {str(shape).replace('(', '.').replace(')', '.')}, the model's is"
    assert_refused(make_srvit(recursion_depth=1), tmp_path / "vit.pth", match)


def test_bias_that_one_layer_lost_is_missing(state, make_srvit, tmp_path):
    lost = QKV.replace("weight", "bias")
    torch.save({n: v for n, v in state.items() if n != lost}, tmp_path / "vit.pth")
    assert_refused(
        make_srvit(recursion_depth=1), tmp_path / "vit.pth", r"gives 99\.\d%.*missing: layers\.1;"
    )
    bare = {n: v for n, v in state.items() if not n.endswith("qkv.bias")}
    torch.save(bare, tmp_path / "bare.pth")
    report = load_pretrained(make_srvit(recursion_depth=1), tmp_path / "bare.pth")
    assert set(report.converted.values()) == {"no bias in the file, zeros"}


def test_patches_without_layers(make_srvit, tmp_path):
    """Other hierarchical and hybrid transformers begin with patches too."""
    timm = pytest.importorskip("timm")
    source = timm.create_model("swin_tiny_patch4_window7_224", depths=(1, 1), embed_dim=32)
    torch.save(source.state_dict(), tmp_path / "swin.pth")
    assert_refused(
        make_srvit(), tmp_path / "swin.pth", r"patch_embed\.proj\.weight, but no layers of one"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_value_that_is_not_finite(state, make_srvit, tmp_path, value, dtype):
    state[QKV] = state[QKV].to(dtype)
    state[QKV][5, 7] = value
    torch.save(state, tmp_path / "vit.pth")
    match = r"layers\.1\.attn\.qkv\.weight has values that are infinite or not a number"
    assert_refused(make_srvit(recursion_depth=1), tmp_path / "vit.pth", match)


@pytest.mark.parametrize(
    "convert",
    [
        lambda value: value.to(torch.int8),
        lambda value: value.to(torch.float8_e4m3fn),
        lambda value: value.to(torch.complex64),
        lambda value: value.to_sparse(),
        lambda value: value.to("meta"),
    ],
    ids=["int8", "float8", "complex", "sparse", "meta"],
)
def test_tensor_of_another_kind(state, make_srvit, tmp_path, convert):
    torch.save({**state, QKV: convert(state[QKV])}, tmp_path / "vit.pth")
    match = r"layers\.1\.attn\.qkv\.weight is no plain tensor of floating-point numbers"
    assert_refused(make_srvit(recursion_depth=1), tmp_path / "vit.pth", match)


def test_precisions_may_be_mixed(state, make_srvit, tmp_path):
    kinds = (torch.float64, torch.float16, torch.bfloat16)
    mixed = {name: value.to(kinds[i % 3]) for i, (name, value) in enumerate(state.items())}
    torch.save(mixed, tmp_path / "vit.pth")
    model = make_srvit(recursion_depth=1, seed=1)
    assert load_pretrained(model, tmp_path / "vit.pth").trunk_share == 1
    for name, value in model.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, mixed[TIMM.restore(name)].float()), name


@pytest.mark.parametrize(
    "notes",
    [{META_KEY: "text"}, {META_KEY: [1, 2]}, {META_KEY: {"grid": 5}}, [1], "text"],
    ids=str,
)
def test_notes_of_others_are_no_obstacle(state, make_srvit, tmp_path, notes):
    torch.save({"state_dict": state, "meta": notes}, tmp_path / "vit.pth")
    report = load_pretrained(make_srvit(recursion_depth=1), tmp_path / "vit.pth")
    assert (report.trunk_share, report.notes) == (1, [])


@pytest.mark.parametrize("text", ["hello", '{"a": 1'])
def test_header_of_others_in_safetensors_is_no_obstacle(state, make_srvit, tmp_path, text):
    save_file(state, tmp_path / "vit.safetensors", metadata={META_KEY: text, "format": "pt"})
    report = load_pretrained(make_srvit(recursion_depth=1), tmp_path / "vit.safetensors")
    assert report.trunk_share == 1


def test_names_that_are_no_text_are_passed_over(state, make_srvit, tmp_path):
    torch.save({3: torch.ones(2), **state}, tmp_path / "vit.pth")
    report = load_pretrained(make_srvit(recursion_depth=1), tmp_path / "vit.pth")
    assert (report.trunk_share, report.unused) == (1, [])


def test_layer_that_the_others_are_averaged_with_is_incomplete(state, make_srvit, tmp_path):
    arch = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
    for value in (None, torch.zeros(90, 32)):
        odd = {name: value if name == QKV else kept for name, kept in state.items()}
        torch.save({n: v for n, v in odd.items() if v is not None}, tmp_path / "vit.pth")
        model = make_srvit(arch=arch, recursion_depth=2)
        match = r"layers \[0, 1\] of the file do not all have attn\.qkv\.weight"
        assert_refused(model, tmp_path / "vit.pth", match, layers="averaged")


@pytest.fixture
def recursive(make_srvit):
    model = make_srvit(recursion_depth=4)
    return model.state_dict(), {META_KEY: facts_of_model(model).to_meta()}


@pytest.mark.parametrize("lost", ["routers.3.", "routers.3.fc2.bias"])
@pytest.mark.parametrize("depth", [4, 2])
def test_router_that_a_recursive_file_lost_is_missing(recursive, make_srvit, tmp_path, lost, depth):
    state = {n: v for n, v in recursive[0].items() if not n.startswith(lost)}
    torch.save({"state_dict": state, "meta": recursive[1]}, tmp_path / "srvit.pth")
    assert_refused(
        make_srvit(recursion_depth=depth), tmp_path / "srvit.pth", r"missing: routers\.3"
    )


def test_recursive_file_without_any_router(recursive, make_srvit, tmp_path):
    state = {n: v for n, v in recursive[0].items() if not n.startswith("routers.")}
    torch.save({"state_dict": state, "meta": recursive[1]}, tmp_path / "srvit.pth")
    for depth in (4, 2):
        model = make_srvit(recursion_depth=depth)
        assert_refused(model, tmp_path / "srvit.pth", r"but it has no routers")
        report = load_pretrained(model, tmp_path / "srvit.pth", allow_partial=True)
        assert len(report.new) == 16
    report = load_pretrained(make_srvit(recursion_depth=1), tmp_path / "srvit.pth")
    assert "recursion_depth=4 in the file, 1 in the model" in report.notes[0]


def test_training_file_with_its_options_names_the_object_alone(state, make_srvit, tmp_path):
    content = {"model": state, "args": argparse.Namespace(lr=1e-3)}
    torch.save(content, tmp_path / "checkpoint.pth")
    match = r"would run code \(argparse\.Namespace\); if you trust"
    assert_refused(make_srvit(recursion_depth=1), tmp_path / "checkpoint.pth", match)


# A square table that has as many entries as an oblong grid has patches, with the special tokens of
# its file, of which so many have an entry in it.
CHANCES = [
    ((18, 32), 24, {}, 1),
    ((18, 32), 24, {"dist_token": 1}, 2),
    ((12, 16), 14, {"reg_token": 4}, 1),
    ((4, 5), 4, {"reg_token": 4}, 5),
    ((5, 10), 7, {}, 1),
]


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(("grid", "side", "tokens", "entries"), CHANCES, ids=str)
def test_table_of_another_family_is_square_whatever_the_models_grid(
    state, make_srvit, tmp_path, grid, side, tokens, entries, dense
):
    special, patches = torch.randn(1, entries, 32), torch.randn(1, side * side, 32)
    state["pos_embed"] = torch.cat([special, patches], 1)
    state |= {name: torch.ones(1, count, 32) for name, count in tokens.items()}
    torch.save(state, tmp_path / "vit.pth")
    options = dict(out_type="featmap", window_size=4) if dense else {}
    size = tuple(16 * n for n in grid)
    model = make_srvit(recursion_depth=1, img_size=size, **options)
    report = load_pretrained(model, tmp_path / "vit.pth")
    maps = patches.transpose(1, 2).view(1, 32, side, side)
    maps = torch.nn.functional.interpolate(maps, grid, mode="bicubic", align_corners=False)
    expected = maps.flatten(2).transpose(1, 2)
    table = model.pos_embed.detach()
    torch.testing.assert_close(table[:, -expected.shape[1] :], expected, rtol=1e-5, atol=1e-6)
    if not dense:
        assert torch.equal(table[:, 0], special[:, 0])
    assert report.resized == ["pos_embed"]
    names = {"dist_token": "dist_token", "reg_token": "register_tokens"}
    assert set(report.unused) == {names[n] for n in tokens} | ({"cls_token"} if dense else set())


@pytest.mark.parametrize("size", [(288, 512), (80, 160)])
@pytest.mark.parametrize("bare", [False, True])
def test_our_own_oblong_table_is_kept_to_the_last_bit(make_srvit, tmp_path, size, bare):
    for options in ({}, dict(out_type="featmap", window_size=4)):
        source = make_srvit(img_size=size, recursion_depth=1, **options)
        model = make_srvit(img_size=size, recursion_depth=1, seed=1, **options)
        if bare:  # no file: the module's own way, as a resumed run takes it
            model.load_state_dict(source.state_dict())
        else:
            meta = {META_KEY: facts_of_model(source).to_meta()}
            torch.save({"state_dict": source.state_dict(), "meta": meta}, tmp_path / "own.pth")
            assert load_pretrained(model, tmp_path / "own.pth").resized == []
        assert torch.equal(model.pos_embed, source.pos_embed)
