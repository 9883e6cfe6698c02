"""Dense mode: windows, padding and images of any size, through to the pyramid."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from mmsoftmor.models import SimpleFeaturePyramid
from mmsoftmor.models.layers import window

DENSE = dict(out_type="featmap", window_size=3, global_attn_indexes=(1, 3))


def images(h, w, batch=2):
    return torch.randn(batch, 3, h, w, generator=torch.Generator().manual_seed(8))


def test_default_is_windows_of_16_with_the_last_layer_of_each_quarter_global():
    from mmsoftmor.models import SRViT

    with torch.device("meta"):
        model = SRViT("small", out_type="featmap")
    sizes = [layer.window_size for layer in model.layers]
    assert [i for i, size in enumerate(sizes) if size == 0] == [2, 5, 8, 11]
    assert set(sizes) == {0, 16}
    assert not model.with_cls_token


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_any_number_of_layers_has_default_global_layers(make_srvit, count):
    arch = dict(embed_dims=32, num_layers=count, num_heads=2, feedforward_channels=64)
    for mode in (dict(out_type="featmap", window_size=2), dict(out_type="cls_token")):
        model = make_srvit(arch=arch, recursion_depth=2, **mode)
        assert model.layers[-1].window_size == 0
        assert model(images(64, 64))[0].isfinite().all()


@pytest.mark.parametrize(("h", "w"), [(80, 112), (112, 80), (16, 16), (40, 100)])
@pytest.mark.parametrize("depth", [1, 4])
def test_windows_over_the_whole_map_equal_global_attention(make_srvit, h, w, depth):
    options = dict(out_type="featmap", recursion_depth=depth)
    windowed = make_srvit(window_size=8, global_attn_indexes=(), **options)
    global_ = make_srvit(window_size=0, **options)
    with torch.no_grad():
        out, expected = windowed(images(h, w))[0], global_(images(h, w))[0]
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("h", "w"), [(64, 80), (80, 64), (17, 99)])
@pytest.mark.parametrize("options", [{}, dict(recursion_unit=2), dict(recursion_unit=4)], ids=str)
def test_content_of_window_padding_never_shows_in_the_output(
    make_srvit, monkeypatch, options, h, w
):
    model = make_srvit(recursion_depth=4, **DENSE, **options)
    with torch.no_grad():
        clean = model(images(h, w))[0]
        pads = []

        def garbage(x, padding):
            if x.dtype == torch.bool:
                return F.pad(x, padding)
            pads.append(max(padding))
            return F.pad(x, padding, value=1e4)

        monkeypatch.setattr(window, "F", SimpleNamespace(pad=garbage))
        dirty = model(images(h, w))[0]
    assert max(pads) > 0, "nothing was padded"
    assert dirty.isfinite().all()
    torch.testing.assert_close(dirty, clean, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(("unit", "globals_", "cuts"), [(1, (1, 3), 2), (2, (), 2), (4, (), 1)])
def test_windows_are_cut_once_for_a_unit_however_often_it_recurses(
    make_srvit, monkeypatch, unit, globals_, cuts, depth, training
):
    options = dict(DENSE, global_attn_indexes=globals_)
    model = make_srvit(recursion_depth=depth, recursion_unit=unit, **options).train(training)
    calls, cut = [], window.window_partition

    def counted(*args):
        calls.append(1)
        return cut(*args)

    monkeypatch.setattr(window, "window_partition", counted)
    model(images(64, 64))
    assert len(calls) == cuts


@pytest.mark.parametrize("depth", [1, 4])
def test_every_size_gives_four_finite_levels_of_rounded_up_size(make_srvit, randomize, depth):
    backbone = make_srvit(recursion_depth=depth, **DENSE)
    neck = randomize(SimpleFeaturePyramid(32, out_channels=8, num_outs=4)).eval()
    for h in range(17, 101, 7):
        for w in range(17, 101, 7):
            with torch.no_grad():
                levels = neck(backbone(images(h, w, batch=1)))
            rows, cols = -(-h // 16), -(-w // 16)
            assert [tuple(level.shape[-2:]) for level in levels] == [
                (4 * rows, 4 * cols),
                (2 * rows, 2 * cols),
                (rows, cols),
                (-(-rows // 2), -(-cols // 2)),
            ]
            for level, stride in zip(levels, (4, 8, 16, 32), strict=True):
                assert level.shape[-2] >= h / stride
                assert level.shape[-1] >= w / stride
                assert level.isfinite().all(), (h, w)


@pytest.mark.parametrize(("h", "w"), [(17, 100), (100, 17), (63, 65), (33, 48)])
def test_zero_padding_by_hand_to_whole_patches_gives_the_same_features(make_srvit, h, w):
    model, x = make_srvit(recursion_depth=4, **DENSE), images(h, w)
    by_hand = F.pad(x, (0, -w % 16, 0, -h % 16))
    with torch.no_grad():
        assert torch.equal(model(x)[0], model(by_hand)[0])


def test_position_table_of_another_size_is_a_direct_bicubic_resize(make_srvit):
    """With silent layers what is left is the patch embedding plus the position."""
    model = make_srvit(recursion_depth=1, final_norm=False, **DENSE)
    with torch.no_grad():
        for layer in model.layers:
            layer.attn.proj.weight.zero_()
            layer.attn.proj.bias.zero_()
            layer.ffn.layers[1].weight.zero_()
            layer.ffn.layers[1].bias.zero_()
        x = images(48, 96)
        projection = model.patch_embed.projection
        grid = model.pos_embed.view(1, 4, 4, 32).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(3, 6), mode="bicubic", align_corners=False)
        expected = F.conv2d(x, projection.weight, projection.bias, stride=16) + grid
        torch.testing.assert_close(model(x)[0], expected, rtol=1e-5, atol=1e-5)


def test_batch_of_mixed_sizes_is_padded_as_either_policy_says(mask_rcnn_cfg):
    from mmdet.registry import MODELS
    from mmdet.testing import demo_mm_inputs
    from mmengine.registry import DefaultScope

    def final_shape(batch_augments):
        cfg = mask_rcnn_cfg().data_preprocessor
        cfg.batch_augments = batch_augments
        with DefaultScope.overwrite_default_scope("mmdet"):
            preprocessor = MODELS.build(cfg)
        data = demo_mm_inputs(2, [(3, 50, 70), (3, 90, 40)], num_classes=3, with_mask=True)
        return tuple(preprocessor(data, training=True)["inputs"].shape)

    assert final_shape(None) == (2, 3, 96, 96)
    square = [dict(type="BatchFixedSizePad", size=(128, 128), pad_mask=True)]
    assert final_shape(square) == (2, 3, 128, 128)
