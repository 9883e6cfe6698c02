"""The pyramid against a computation that is written out with torch's functions."""

import pytest
import torch
import torch.nn.functional as F
from mmengine.registry import DefaultScope
from torch import nn

from mmsoftmor.errors import InputError
from mmsoftmor.models import SimpleFeaturePyramid

C, OUT = 16, 12


def maps(h, w, count=1):
    generator = torch.Generator().manual_seed(10)
    return tuple(torch.randn(2, C, h, w, generator=generator) for _ in range(count))


def norm(x, layer):
    """Layer norm over the channels of each place."""
    mean = x.mean(dim=1, keepdim=True)
    variance = (x - mean).square().mean(dim=1, keepdim=True)
    x = (x - mean) / (variance + 1e-6).sqrt()
    return x * layer.weight[:, None, None] + layer.bias[:, None, None]


def double(x, layer):
    return F.conv_transpose2d(x, layer.weight, layer.bias, stride=2)


def to_output(x, conv1, norm1, conv3, norm3):
    x = norm(F.conv2d(x, conv1.weight), norm1)
    return norm(F.conv2d(x, conv3.weight, padding=1), norm3)


def by_hand(neck, x4, x8, x16, x32):
    up, first_norm, _, up_again, *last = neck.levels[0]
    stride4 = to_output(double(F.gelu(norm(double(x4, up), first_norm)), up_again), *last)
    up, *last = neck.levels[1]
    stride8 = to_output(double(x8, up), *last)
    stride16 = to_output(x16, *neck.levels[2])
    _, *last = neck.levels[3]
    h, w = x32.shape[-2:]
    padded = F.pad(x32, (0, w % 2, 0, h % 2), value=-torch.inf)
    quads = padded.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
    stride32 = to_output(quads.amax(dim=(3, 5)), *last)
    return stride4, stride8, stride16, stride32, stride32[:, :, ::2, ::2]


@pytest.fixture
def neck(randomize):
    return randomize(SimpleFeaturePyramid(C, OUT), std=0.3)


@pytest.mark.parametrize(("h", "w"), [(8, 8), (4, 6), (5, 7), (7, 4), (1, 1)])
@pytest.mark.parametrize("count", [1, 4])
def test_levels_equal_the_computation_by_hand(neck, h, w, count):
    inputs = maps(h, w, count)
    outs = neck(inputs)
    expected = by_hand(neck, *(inputs * (4 // count)))
    assert len(outs) == len(expected) == 5
    for out, other in zip(outs, expected, strict=True):
        torch.testing.assert_close(out, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [4, 5, 6])
def test_number_of_levels_is_as_asked(randomize, count):
    outs = randomize(SimpleFeaturePyramid(C, OUT, num_outs=count))(maps(8, 8))
    sizes = [(32, 32), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1)]
    assert [tuple(out.shape[1:]) for out in outs] == [(OUT, *size) for size in sizes[:count]]


@pytest.mark.parametrize(
    ("channels", "count"), [(192, 2_664_880), (384, 3_298_144), (768, 5_560_000)]
)
def test_parameters_for_tiny_small_and_base(channels, count):
    """2.66M, 3.30M and 5.56M: the sum of the layers' sizes as ViTDet's description gives them."""
    half, quarter, out = channels // 2, channels // 4, 256
    resample = (4 * channels * half + half) + 2 * half + (4 * half * quarter + quarter)
    resample += 4 * channels * half + half
    lateral = (quarter + half + 2 * channels) * out
    smooth = 4 * (9 * out * out + 2 * 2 * out)
    assert resample + lateral + smooth == count
    with torch.device("meta"):
        neck = SimpleFeaturePyramid(channels)
    assert sum(p.numel() for p in neck.parameters()) == count


def test_every_norm_has_eps_1e_6_and_no_output_convolution_a_bias(neck):
    norms = [m for m in neck.modules() if isinstance(m, nn.LayerNorm)]
    assert len(norms) == 1 + 2 * 4
    assert {layer.eps for layer in norms} == {1e-6}
    assert all(m.bias is None for m in neck.modules() if isinstance(m, nn.Conv2d))


def test_bare_name_builds_it_from_all_three_libraries():
    from mmdet.registry import MODELS as DET
    from mmpretrain.registry import MODELS as CLS
    from mmseg.registry import MODELS as SEG

    for registry, scope in ((DET, "mmdet"), (SEG, "mmseg"), (CLS, "mmpretrain")):
        with DefaultScope.overwrite_default_scope(scope):
            neck = registry.build(dict(type="SimpleFeaturePyramid", in_channels=C))
        assert isinstance(neck, SimpleFeaturePyramid)


def test_every_parameter_gets_a_gradient(neck):
    sum(out.square().mean() for out in neck(maps(5, 7))).backward()
    assert [n for n, p in neck.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_other_numbers_of_maps_are_refused_in_one_line(neck, count):
    with pytest.raises(InputError, match=f"got {count} maps.*out_indices") as error:
        neck(maps(4, 4, count))
    assert "\n" not in str(error.value)


def test_fewer_than_four_levels_are_refused():
    with pytest.raises(InputError, match="num_outs=3"):
        SimpleFeaturePyramid(C, num_outs=3)
