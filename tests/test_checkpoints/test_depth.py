"""Weights of one recursion depth, unit or number of layers into another."""

import json

import pytest
import torch
from mmpretrain.models import VisionTransformer

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.checkpoints.facts import META_KEY, facts_of_model
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


def save(model, path, meta=True, **facts):
    """Save as our training does: with the facts in the meta, or as an older file, without."""
    meta = {META_KEY: {**facts_of_model(model).to_meta(), **facts}} if meta else {}
    torch.save({"state_dict": model.state_dict(), "meta": meta}, path)
    return path


@pytest.fixture
def images():
    return torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def test_fewer_steps_cut_the_router_as_elastic_depth_does(make_srvit, tmp_path, images):
    source = make_srvit(recursion_depth=4, std=0.2)
    model = make_srvit(recursion_depth=2, seed=1)
    report = load_pretrained(model, save(source, tmp_path / "r4.pth"))
    assert any("recursion_depth=4 in the file, 2 in the model" in note for note in report.notes)
    assert report.converted["routers.0.fc2.weight"] == "steps 1 to 2 of 4"
    assert report.new == report.missing == []
    source.active_depth = 2
    torch.testing.assert_close(model(images)[0], source(images)[0], rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("std", [0.05, 0.5])
def test_more_steps_keep_the_function(make_srvit, tmp_path, images, std):
    """Also where the router is far from its start: the new steps' share is bounded by design."""
    source = make_srvit(recursion_depth=2, std=std)
    model = make_srvit(recursion_depth=4, seed=1)
    report = load_pretrained(model, save(source, tmp_path / "r2.pth"))
    assert any("recursion_depth=2 in the file, 4 in the model" in note for note in report.notes)
    x = torch.randn(50, 32) * 5
    for router, old in zip(model.routers, source.routers, strict=True):
        weights = router(x)
        assert 0 < weights[:, 2:].sum(1).max() <= 1.0001e-4
        torch.testing.assert_close(weights[:, :2], old(x), rtol=0, atol=1.1e-4)
    torch.testing.assert_close(model(images)[0], source(images)[0], rtol=0, atol=1e-3)


def test_the_new_steps_learn(make_srvit, tmp_path, images):
    model = make_srvit(recursion_depth=4)
    load_pretrained(model, save(make_srvit(recursion_depth=2, std=0.2), tmp_path / "r2.pth"))
    model(images)[0].square().mean().backward()
    assert (model.routers[0].fc2.bias.grad != 0).all()


@pytest.mark.parametrize("meta", [True, False])
def test_same_depth_is_quiet_and_exact(make_srvit, tmp_path, meta):
    source, model = make_srvit(recursion_depth=2), make_srvit(recursion_depth=2, seed=1)
    report = load_pretrained(model, save(source, tmp_path / "r2.pth", meta=meta))
    assert report.notes == []
    assert report.converted == {}
    assert all(torch.equal(v, source.state_dict()[n]) for n, v in model.state_dict().items())


@pytest.mark.parametrize("depth", [1, 3])
def test_without_meta_the_depth_is_told_by_the_routers(make_srvit, tmp_path, depth):
    path = save(make_srvit(recursion_depth=2), tmp_path / "r2.pth", meta=False)
    report = load_pretrained(make_srvit(recursion_depth=depth), path)
    assert f"recursion_depth=2 in the file, {depth} in the model" in report.notes[0]


def test_other_mixing_is_said(make_srvit, tmp_path):
    path = save(make_srvit(recursion_depth=2, mixing="last"), tmp_path / "last.pth")
    report = load_pretrained(make_srvit(recursion_depth=2), path)
    assert report.notes == ["mixing='last' in the file, 'soft' in the model: outputs differ"]
    assert len(report.new) == 4 * 4


@pytest.mark.parametrize("meta", [True, False])
def test_other_unit_is_refused_naming_both_or_loads_the_layers_alone(make_srvit, tmp_path, meta):
    path = save(make_srvit(recursion_depth=2), tmp_path / "unit1.pth", meta=meta)
    model = make_srvit(recursion_depth=2, recursion_unit=4, seed=1)
    before = {n: v.clone() for n, v in model.state_dict().items()}
    with pytest.raises(InputError, match=r"unit1\.pth: recursion_unit=1 in the file, 4 in the mod"):
        load_pretrained(model, path)
    assert all(torch.equal(v, before[n]) for n, v in model.state_dict().items())
    report = load_pretrained(model, path, allow_partial=True)
    assert report.missing == []
    assert all(
        torch.equal(v, before[f"routers.{n}"]) for n, v in model.routers.state_dict().items()
    )


def test_heads_that_no_shape_tells_are_compared_where_the_meta_tells_them(make_srvit, tmp_path):
    path = save(make_srvit(), tmp_path / "heads.pth", num_heads=4)
    with pytest.raises(InputError, match=r"heads\.pth.*num_heads=4 in the file, 2 in the model"):
        load_pretrained(make_srvit(), path)


def test_meta_of_a_newer_version_is_no_obstacle(make_srvit, tmp_path):
    path = save(make_srvit(), tmp_path / "newer.pth", something_new=3)
    assert load_pretrained(make_srvit(), path).notes == []


@pytest.mark.parametrize("grid", [(96, 160), (64, 64)], ids=str)
def test_table_of_our_own_landscape_file_fits_another_size(make_srvit, tmp_path, grid):
    """The meta tells the grid; the numbers are mmpretrain's resizing of the same table."""
    source = make_srvit(img_size=(64, 128))
    path = save(source, tmp_path / "landscape.pth")
    model = make_srvit(img_size=grid)
    report = load_pretrained(model, path)
    expected = VisionTransformer.resize_pos_embed(
        source.pos_embed, (4, 8), model.grid, "bicubic", 1
    )
    torch.testing.assert_close(model.pos_embed, expected, rtol=1e-5, atol=1e-6)
    assert report.resized == ["pos_embed"]


# What the output of a plain ViT-S may change by (root mean square, of its standard deviation) when
# it becomes an SR-ViT with router.init='first': every layer gives a hundredth to its later steps.
FIRST_TOLERANCE = {2: 0.015, 4: 0.03}


@torch.no_grad()
@pytest.mark.parametrize("depth", FIRST_TOLERANCE)
def test_plain_vit_starts_as_nearly_the_function_it_was(tmp_path, depth):
    torch.manual_seed(0)
    plain = VisionTransformer(arch="deit-small", img_size=64, out_type="raw")
    plain.init_weights()
    plain.eval()
    torch.save({"state_dict": plain.state_dict()}, tmp_path / "deit.pth")
    model = SRViT(
        "small",
        img_size=64,
        recursion_depth=depth,
        router=dict(init="first"),
        out_type="raw",
        init_cfg=dict(type="Pretrained", checkpoint=str(tmp_path / "deit.pth")),
    ).eval()
    model.init_weights()
    x = torch.rand(1, 3, 64, 64)
    expected = plain(x)[0]
    difference = (model(x)[0] - expected).pow(2).mean().sqrt() / expected.std()
    assert 0 < difference < FIRST_TOLERANCE[depth]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(router=dict(init="first")), None),
        (dict(router=dict(init="uniform")), "router.init='uniform' ('first' keeps the function"),
        (dict(mixing="mean"), "mixing='mean'"),
        (dict(mixing="last"), "mixing='last'"),
    ],
)
def test_plain_file_whose_function_is_not_kept_is_said(make_srvit, tmp_path, options, said):
    path = save(make_srvit(recursion_depth=1), tmp_path / "r1.pth")
    notes = load_pretrained(make_srvit(recursion_depth=4, **options), path).notes
    if said is None:
        assert notes == []
    else:
        (note,) = notes
        assert f"recursion_depth=1 in the file, 4 in the model, with {said}" in note


def layers_of(state):
    return {n: v for n, v in state.items() if n.startswith("layers.")}


@pytest.fixture
def deep(randomize, tmp_path):
    model = randomize(SRViT({**ARCH, "num_layers": 12}, img_size=64, recursion_depth=1))
    return model.state_dict(), save(model, tmp_path / "deep.pth")


def test_a_deeper_file_is_refused_unless_a_rule_is_given(deep, make_srvit):
    with pytest.raises(InputError, match=r"num_layers=12 in the file, 4 in the model.*'averaged'"):
        load_pretrained(make_srvit(recursion_depth=3), deep[1])


# The file's layers that the model's four are made from, written out.
ORIGINS = [
    ("first", 1, [[0], [1], [2], [3]]),
    ("strided", 1, [[0], [3], [6], [9]]),
    ("averaged", 1, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]),
    ("averaged", 2, [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]),
    ("averaged", 4, [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]),
]


@pytest.mark.parametrize(("rule", "unit", "origins"), ORIGINS)
def test_fewer_layers_are_made_by_rule(deep, make_srvit, rule, unit, origins):
    state, path = deep
    init_cfg = dict(type="Pretrained", checkpoint=str(path), layers=rule)
    model = make_srvit(recursion_depth=3, recursion_unit=unit, init_cfg=init_cfg)
    model.init_weights()
    for name, value in layers_of(model.state_dict()).items():
        _, i, inner = name.split(".", 2)
        sources = [state[f"layers.{j}.{inner}"] for j in origins[int(i)]]
        torch.testing.assert_close(value, sum(sources) / len(sources), rtol=1e-6, atol=1e-7)
    report = load_pretrained(model, path, layers=rule)
    assert report.trunk_share == 1
    assert repr(rule) in report.notes[0]


@pytest.mark.parametrize(
    ("rule", "layers", "named"),
    [("middle", 4, "'middle' is unknown"), ("averaged", 8, "multiple of the model's 8 layers")],
)
def test_rule_that_cannot_be_followed_is_refused(deep, rule, layers, named):
    model = SRViT({**ARCH, "num_layers": layers}, img_size=64)
    with pytest.raises(InputError, match=named):
        load_pretrained(model, deep[1], layers=rule)


def test_recursive_file_is_not_cut(make_srvit, tmp_path):
    path = save(make_srvit(recursion_depth=2), tmp_path / "r2.pth")
    with pytest.raises(InputError, match="plain transformers"):
        load_pretrained(SRViT({**ARCH, "num_layers": 2}, img_size=64), path, layers="first")


def test_rule_changes_nothing_for_a_file_of_the_same_layers(make_srvit, tmp_path):
    source, model = make_srvit(recursion_depth=1), make_srvit(recursion_depth=1, seed=1)
    report = load_pretrained(model, save(source, tmp_path / "same.pth"), layers="averaged")
    assert report.notes == []
    assert all(torch.equal(v, source.state_dict()[n]) for n, v in model.state_dict().items())


def test_report_is_plain_data(deep, make_srvit):
    report = load_pretrained(make_srvit(recursion_depth=3), deep[1], layers="strided")
    told = json.loads(json.dumps(report.to_dict()))
    assert told["trunk_share"] == 1
    assert told["converted"]["layers.1.ln1.weight"] == "from layer 3"
    assert told["scheme"] == "mmpretrain"
    assert len(told["new"]) == 16
