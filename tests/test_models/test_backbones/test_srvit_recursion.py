"""The whole backbone against a loop that is written out from the formulas."""

import pytest
import torch
import torch.nn.functional as F

from mmsoftmor.models import SRViT

DENSE = dict(out_type="featmap", window_size=3, global_attn_indexes=(1, 3))
CLASSIFY = dict(out_type="raw")


def images(h=64, w=64, batch=2):
    return torch.randn(batch, 3, h, w, generator=torch.Generator().manual_seed(6))


def window_mask(h, w, size):
    """True where two tokens of an h x w map lie in the same window."""
    number = torch.tensor([(r // size) * w + c // size for r in range(h) for c in range(w)])
    return number[:, None] == number[None]


def unrolled(model, x, depth=None, unit=1):
    """Every step, every weight and the sum, without the model's own recursion and windows.

    Only for images of the size that the position table is made for.
    """
    depth = depth or model.recursion_depth
    projection = model.patch_embed.projection
    x = F.conv2d(x, projection.weight, projection.bias, stride=16)
    h, w = x.shape[-2:]
    x = x.flatten(2).transpose(1, 2)
    if model.with_cls_token:
        x = torch.cat([model.cls_token.expand(len(x), 1, -1), x], dim=1)
    x = x + model.pos_embed
    for first in range(0, len(model.layers), unit):
        steps, state = [], x
        for _ in range(depth):
            for layer in model.layers[first : first + unit]:
                size = layer.window_size
                state = layer(state, window_mask(h, w, size) if size else None)
            steps.append(state)
        x = mixed(model, x, steps, first, unit)
    x = model.ln1(x)
    return x.transpose(1, 2).unflatten(2, (h, w)) if model.out_type == "featmap" else x


def mixed(model, x, steps, first, unit):
    if model.mixing == "last" or len(steps) == 1:
        return steps[-1]
    if model.mixing == "mean":
        return torch.stack(steps).mean(dim=0)
    router, norm = model.routers[first // unit], model.layers[first].ln1
    hidden = F.gelu(F.linear(norm(x), router.fc1.weight, router.fc1.bias))
    logits = F.linear(hidden, router.fc2.weight, router.fc2.bias)[..., : len(steps)]
    weights = logits.float().exp() / logits.float().exp().sum(-1, keepdim=True)
    return sum(weights[..., r, None] * step for r, step in enumerate(steps))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("mode", [CLASSIFY, DENSE], ids=["global", "windows"])
@pytest.mark.parametrize("mixing", ["soft", "mean", "last"])
@pytest.mark.parametrize("depth", [2, 4])
def test_backbone_equals_the_unrolled_loop(make_srvit, depth, mixing, mode, training):
    model = make_srvit(recursion_depth=depth, mixing=mixing, **mode).train(training)
    with torch.no_grad():
        torch.testing.assert_close(
            model(images())[0], unrolled(model, images()), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("mode", [CLASSIFY, DENSE], ids=["global", "windows"])
@pytest.mark.parametrize("depth", [2, 4])
def test_backbone_equals_the_unrolled_loop_under_bf16(make_srvit, depth, mode):
    model = make_srvit(recursion_depth=depth, **mode)
    with torch.no_grad():
        expected = unrolled(model, images())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(images())[0]
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("mode", [CLASSIFY, DENSE], ids=["global", "windows"])
@pytest.mark.parametrize("unit", [1, 2, 4])
@pytest.mark.parametrize("mixing", ["soft", "mean", "last"])
def test_units_of_layers_recurse_together(make_srvit, mixing, unit, mode):
    model = make_srvit(recursion_depth=3, recursion_unit=unit, mixing=mixing, **mode)
    with torch.no_grad():
        expected = unrolled(model, images(), unit=unit)
        torch.testing.assert_close(model(images())[0], expected, rtol=1e-6, atol=1e-6)


def test_drop_path_is_drawn_anew_at_every_recursion_step(make_srvit):
    model = make_srvit(recursion_depth=4, drop_path_rate=0.5, **DENSE).train()
    fates = []
    model.layers[-1].drop_path.register_forward_hook(
        lambda _, __, out: fates.append(tuple((out.flatten(1).abs().amax(1) > 0).tolist()))
    )
    torch.manual_seed(0)
    with torch.no_grad():
        out = model(images(batch=16))[0]
        torch.manual_seed(0)
        expected = unrolled(model, images(batch=16))
    assert len(fates) == 8
    assert len(set(fates[:4])) == 4, "the steps must not share one draw"
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)


def test_drop_path_rate_is_linear_over_the_layers(make_srvit):
    rates = [layer.drop_path.drop_prob for layer in make_srvit(drop_path_rate=0.3).layers]
    assert rates == pytest.approx([0.0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("mode", [CLASSIFY, DENSE], ids=["global", "windows"])
def test_all_mixings_agree_at_depth_one(make_srvit, mode):
    outs = [
        make_srvit(recursion_depth=1, mixing=m, **mode)(images())[0]
        for m in ("soft", "mean", "last")
    ]
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])


@pytest.mark.parametrize("mixing", ["soft", "mean", "last"])
def test_fewer_active_steps_renormalise_the_mixture(make_srvit, mixing):
    model = make_srvit(recursion_depth=4, mixing=mixing, **CLASSIFY)
    with torch.no_grad():
        for depth in (1, 2, 3, 4):
            model.active_depth = depth
            expected = unrolled(model, images(), depth)
            torch.testing.assert_close(model(images())[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", [CLASSIFY, DENSE], ids=["global", "windows"])
@pytest.mark.parametrize("mixing", ["soft", "mean", "last"])
def test_one_active_step_is_the_plain_vit(make_srvit, mixing, mode):
    deep = make_srvit(recursion_depth=4, mixing=mixing, active_depth=1, **mode)
    plain = make_srvit(recursion_depth=1, seed=9, **mode)
    state = {k: v for k, v in deep.state_dict().items() if not k.startswith("routers.")}
    plain.load_state_dict(state, strict=True)
    assert torch.equal(deep(images())[0], plain(images())[0])


def turned_recursive(arch, init, **options):
    """Return a plain ViT with its own initialisation and the same turned into R=4."""
    torch.manual_seed(0)
    plain = SRViT(arch, recursion_depth=1, **options)
    plain.init_weights()
    deep = SRViT(arch, recursion_depth=4, router=dict(init=init), **options)
    deep.init_weights()
    missing = deep.load_state_dict(plain.state_dict(), strict=False).missing_keys
    assert all(name.startswith("routers.") for name in missing)
    return plain.eval(), deep.eval()


def deviation(plain, deep):
    with torch.no_grad():
        expected, out = plain(images(96, 96))[0], deep(images(96, 96))[0]
    return ((out - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("options", [dict(out_type="cls_token"), dict(out_type="featmap")], ids=str)
def test_a_plain_vit_turned_recursive_starts_as_nearly_the_function_it_was(options):
    """The first step keeps 0.99: twelve layers together move the output by about one percent."""
    first = deviation(*turned_recursive("tiny", "first", **options))
    uniform = deviation(*turned_recursive("tiny", "uniform", **options))
    assert 0 < first < 0.03
    assert first < uniform / 10


def test_fresh_routers_hold_the_documented_mixture():
    _, deep = turned_recursive("tiny", "first")
    for router in deep.routers:
        weights = router(torch.randn(5, deep.embed_dims))
        torch.testing.assert_close(weights[:, 0], torch.full((5,), 0.99), rtol=0, atol=1e-6)
