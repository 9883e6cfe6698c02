"""The forms in which one and the same vision transformer comes: wrappers, prefixes, tokens."""

import pytest
import torch
from safetensors.torch import save_file

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.checkpoints.schemes import HUGGING_FACE, TIMM
from mmsoftmor.errors import InputError


@pytest.fixture
def source(make_srvit):
    return make_srvit(recursion_depth=1)


@pytest.fixture
def state(source):
    """The source's tensors under timm's names."""
    return {TIMM.restore(name): value for name, value in source.state_dict().items()}


def assert_loads(source, make_srvit, path, **options):
    model = make_srvit(recursion_depth=1, seed=1)
    report = load_pretrained(model, path, **options)
    for name, value in source.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    return report


@pytest.mark.parametrize(
    "keys",
    [
        ["state_dict"],
        ["model"],
        ["model_state"],
        ["ema"],
        ["teacher"],
        ["model_ema"],
        ["model", "teacher"],
    ],
    ids=".".join,
)
@pytest.mark.parametrize("prefix", ["", "module.", "backbone.", "encoder.", "module.vit."])
def test_wrappers_and_prefixes(source, state, make_srvit, tmp_path, keys, prefix):
    content = {prefix + name: value for name, value in state.items()}
    for key in reversed(keys):
        content = {key: content, "epoch": 3}
    torch.save(content, tmp_path / "vit.pth")
    assert assert_loads(source, make_srvit, tmp_path / "vit.pth").prefix == prefix


def test_teacher_goes_before_its_student(source, state, make_srvit, tmp_path):
    zeros = {name: torch.zeros_like(value) for name, value in state.items()}
    torch.save({"student": zeros, "teacher": state}, tmp_path / "dino.pth")
    assert_loads(source, make_srvit, tmp_path / "dino.pth")
    flat = {f"student.{n}": v for n, v in zeros.items()}
    flat |= {f"teacher.{n}": v for n, v in state.items()}
    torch.save(flat, tmp_path / "flat.pth")
    assert assert_loads(source, make_srvit, tmp_path / "flat.pth").prefix == "teacher."


@pytest.mark.parametrize("name", ["pytorch_model.bin", "vit.safetensors", "vit"])
@pytest.mark.parametrize("safe", [True, False])
def test_content_and_not_the_name_tells_the_form(source, state, make_srvit, tmp_path, name, safe):
    (save_file if safe else torch.save)(state, tmp_path / name)
    assert_loads(source, make_srvit, tmp_path / name)


def test_chunked_layers_of_dinov2s_training(source, state, make_srvit, tmp_path):
    chunked = {}
    for name, value in state.items():
        head, *rest = name.split(".")
        i = int(rest[0]) if head == "blocks" else None
        chunked[name if i is None else f"blocks.{i // 2}.{i}.{'.'.join(rest[1:])}"] = value
    torch.save(chunked, tmp_path / "chunked.pth")
    assert_loads(source, make_srvit, tmp_path / "chunked.pth")


# Special tokens of a file beside the class token, and those that have an entry in its table.
LAYOUTS = [
    ({}, 1),
    ({"dist_token": 1}, 2),
    ({"reg_token": 4}, 5),
    ({"reg_token": 4}, 1),
    ({"reg_token": 4}, 0),
    ({}, 0),
]


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(("tokens", "entries"), LAYOUTS, ids=str)
def test_special_tokens_are_counted_from_the_file(
    state, make_srvit, tmp_path, tokens, entries, dense
):
    grid = torch.randn(1, 196, 32)
    special = torch.randn(1, entries, 32)
    state |= {name: torch.ones(1, count, 32) for name, count in tokens.items()}
    state["pos_embed"] = torch.cat([special, grid], 1)
    torch.save(state, tmp_path / "vit.pth")
    options = dict(out_type="featmap", window_size=4) if dense else {}
    model = make_srvit(recursion_depth=1, img_size=224, **options)
    report = load_pretrained(model, tmp_path / "vit.pth")
    assert torch.equal(model.pos_embed[:, -196:], grid)
    # The layers computed with these, so it is said; that a dense model has no class token is usual.
    assert ["dropped, SR-ViT has none" in note for note in report.notes] == [True] * len(tokens)
    if not dense:
        expected = special[:, :1] if entries else torch.zeros(1, 1, 32)
        assert torch.equal(model.pos_embed[:, :1], expected)


@pytest.mark.parametrize("entries", [195, 199])
def test_impossible_count_is_refused_naming_both(state, make_srvit, tmp_path, entries):
    state["pos_embed"] = torch.zeros(1, entries, 32)
    torch.save(state, tmp_path / "vit.pth")
    with pytest.raises(InputError, match=rf"vit\.pth.*{entries} entries.*14x14") as error:
        load_pretrained(make_srvit(recursion_depth=1, img_size=224), tmp_path / "vit.pth")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "alien", ["blocks.0.attn.q_norm.weight", "blocks.0.mlp.w12.weight", "norm_pre.weight"]
)
def test_what_srvit_does_not_compute_is_refused(state, make_srvit, tmp_path, alien):
    torch.save({**state, alien: torch.ones(4)}, tmp_path / "vit.pth")
    model = make_srvit(recursion_depth=1)
    with pytest.raises(InputError, match="does not compute"):
        load_pretrained(model, tmp_path / "vit.pth")
    assert load_pretrained(model, tmp_path / "vit.pth", allow_partial=True).trunk_share == 1


def test_layer_scale_of_the_file_alone_is_refused(state, make_srvit, tmp_path):
    state |= {f"blocks.{i}.ls1.gamma": torch.ones(32) for i in range(4)}
    torch.save(state, tmp_path / "vit.pth")
    with pytest.raises(InputError, match=r"layer_scale_init_value=1e-05"):
        load_pretrained(make_srvit(recursion_depth=1), tmp_path / "vit.pth")


def test_prefix_that_is_not_there_names_the_one_that_is(state, make_srvit, tmp_path):
    torch.save({f"vit.{name}": value for name, value in state.items()}, tmp_path / "vit.pth")
    with pytest.raises(InputError, match=r"under prefix 'teacher\.', but under 'vit\.'"):
        load_pretrained(make_srvit(recursion_depth=1), tmp_path / "vit.pth", prefix="teacher")


@pytest.mark.parametrize("scheme", [TIMM, HUGGING_FACE], ids=lambda scheme: scheme.name)
def test_renaming_undoes_restoring(scheme, make_srvit):
    plain = make_srvit(recursion_depth=1, layer_scale_init_value=1e-5)
    names = [n for n in plain.state_dict() if scheme is TIMM or ".qkv." not in n]
    assert [scheme.rename(scheme.restore(name)) for name in names] == names
