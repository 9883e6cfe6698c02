"""SR-ViT at R=1 against mmpretrain's and timm's plain vision transformers; its sizes."""

import pytest
import torch
from mmengine.registry import DefaultScope
from mmpretrain.models import VisionTransformer
from torch import nn

from mmsoftmor.models import SRViT

MODES = {
    "cls_token": {},
    "raw": {},
    "avg_featmap": {},
    "featmap": dict(with_cls_token=False),
}


def images(h, w, batch=2, seed=5):
    return torch.randn(batch, 3, h, w, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("out_type", MODES)
def test_deit_small_of_mmpretrain_gives_the_same_outputs_and_names(randomize, out_type):
    theirs = VisionTransformer(
        arch="deit-small", out_type=out_type, out_indices=[4, 11], **MODES[out_type]
    )
    randomize(theirs).eval()
    ours = SRViT("small", recursion_depth=1, out_type=out_type, out_indices=(4, 11)).eval()
    assert set(ours.state_dict()) == set(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict(), strict=True)
    # The table's own size, then a portrait and a landscape that are no multiple of the patch.
    for size in ((224, 224), (130, 75), (50, 250)):
        with torch.no_grad():
            outs, expected = ours(images(*size, batch=1)), theirs(images(*size, batch=1))
        assert len(outs) == len(expected) == 2
        for out, other in zip(outs, expected, strict=True):
            torch.testing.assert_close(out, other, rtol=1e-5, atol=1e-5)


TO_TIMM = (
    ("patch_embed.projection", "patch_embed.proj"),
    (".ffn.layers.0.0.", ".mlp.fc1."),
    (".ffn.layers.1.", ".mlp.fc2."),
    ("layers.", "blocks."),
    (".ln", ".norm"),
)


def timm_name(name):
    for ours, theirs in TO_TIMM:
        name = name.replace(ours, theirs)
    return f"norm.{name[4:]}" if name.startswith("ln1.") else name


def test_vit_small_of_timm_gives_the_same_tokens(randomize):
    import timm

    theirs = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=0)
    randomize(theirs).eval()
    ours = SRViT("small", recursion_depth=1, out_type="raw").eval()
    state = theirs.state_dict()
    assert {timm_name(name) for name in ours.state_dict()} == set(state)
    ours.load_state_dict({name: state[timm_name(name)] for name in ours.state_dict()})
    with torch.no_grad():
        x = images(224, 224)
        torch.testing.assert_close(ours(x)[0], theirs.forward_features(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("out_type", MODES)
def test_routers_are_the_only_addition_of_recursion(make_srvit, depth, out_type):
    plain = make_srvit(recursion_depth=1, out_type=out_type).state_dict()
    recursive = make_srvit(recursion_depth=depth, out_type=out_type).state_dict()
    added = set(recursive) - set(plain)
    assert set(plain) <= set(recursive)
    assert added == {
        f"routers.{i}.{part}.{kind}"
        for i in range(4)
        for part in ("fc1", "fc2")
        for kind in ("weight", "bias")
    }
    for name in plain:
        assert recursive[name].shape == plain[name].shape


@pytest.mark.parametrize("mixing", ["mean", "last"])
def test_mixings_without_weights_have_no_router(make_srvit, mixing):
    plain = make_srvit(recursion_depth=1).state_dict()
    assert set(make_srvit(recursion_depth=4, mixing=mixing).state_dict()) == set(plain)


def test_one_router_serves_a_unit_of_layers(make_srvit):
    assert len(make_srvit(recursion_depth=4, recursion_unit=2).routers) == 2
    assert len(make_srvit(recursion_depth=4, recursion_unit=4).routers) == 1


@pytest.mark.parametrize(
    ("arch", "depth", "count"),
    [
        ("tiny", 1, 5_717_416),
        ("tiny", 4, 6_171_352),
        ("small", 1, 22_050_664),
        ("small", 4, 23_843_224),
        ("base", 1, 86_567_656),
        ("base", 4, 93_691_672),
    ],
)
def test_parameters_with_a_head_of_1000_classes_to_the_number(arch, depth, count):
    with torch.device("meta"):
        model = SRViT(arch, recursion_depth=depth)
        head = nn.Linear(model.embed_dims, 1000)
    parameters = [*model.parameters(), *head.parameters()]
    assert len({id(p) for p in parameters}) == len(parameters)
    assert sum(p.numel() for p in parameters) == count


def test_layers_have_the_same_parameters_whatever_the_depth(make_srvit):
    counts = {
        sum(p.numel() for p in make_srvit(recursion_depth=depth).layers.parameters())
        for depth in (1, 2, 3, 4, 8)
    }
    assert len(counts) == 1


def test_registry_builds_it_for_every_library():
    from mmdet.registry import MODELS as DET
    from mmpretrain.registry import MODELS as CLS
    from mmseg.registry import MODELS as SEG

    for registry, scope in ((DET, "mmdet"), (SEG, "mmseg"), (CLS, "mmpretrain")):
        with DefaultScope.overwrite_default_scope(scope):
            model = registry.build(dict(type="mmpretrain.SRViT", arch="tiny", recursion_depth=2))
        assert isinstance(model, SRViT)


def test_package_shows_its_models_under_one_name():
    import mmsoftmor.models

    assert {"SRViT", "SimpleFeaturePyramid"} <= set(mmsoftmor.models.__all__)
