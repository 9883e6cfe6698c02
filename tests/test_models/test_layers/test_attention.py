"""Attention and the transformer layer against torch's own and mmpretrain's."""

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.models.backbones.vision_transformer import TransformerEncoderLayer

from mmsoftmor.models.layers import Attention, TransformerLayer

DIM, HEADS = 32, 4


def by_torch(attention, x, mask=None):
    """The same attention from torch's own multi-head function."""
    out, _ = F.multi_head_attention_forward(
        x.transpose(0, 1),
        x.transpose(0, 1),
        x.transpose(0, 1),
        DIM,
        HEADS,
        attention.qkv.weight,
        attention.qkv.bias,
        None,
        None,
        False,
        0.0,
        attention.proj.weight,
        attention.proj.bias,
        key_padding_mask=mask,
        need_weights=False,
    )
    return out.transpose(0, 1)


def tokens(*shape):
    return torch.randn(*shape, DIM, generator=torch.Generator().manual_seed(2))


def test_attention_equals_torch(randomize):
    attention, x = randomize(Attention(DIM, HEADS), std=0.3), tokens(2, 9)
    torch.testing.assert_close(attention(x), by_torch(attention, x), rtol=1e-5, atol=1e-5)


def test_masked_attention_equals_torch_with_key_padding(randomize):
    attention, x = randomize(Attention(DIM, HEADS), std=0.3), tokens(3, 9)
    real = torch.rand(3, 9, generator=torch.Generator().manual_seed(3)) > 0.4
    assert real.any(dim=1).all()
    assert not real.all()
    expected = by_torch(attention, x, ~real)
    torch.testing.assert_close(attention(x, real[:, None, None]), expected, rtol=1e-5, atol=1e-5)


def test_a_window_axis_is_like_a_larger_batch(randomize):
    attention, x = randomize(Attention(DIM, HEADS), std=0.3), tokens(2, 3, 9)
    expected = attention(x.flatten(0, 1)).view_as(x)
    torch.testing.assert_close(attention(x), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, dict(qkv_bias=False), dict(layer_scale_init_value=0.1)], ids=str
)
def test_layer_has_names_and_outputs_of_mmpretrain(randomize, options):
    ours = TransformerLayer(DIM, HEADS, 64, **options)
    theirs = TransformerEncoderLayer(DIM, HEADS, 64, norm_cfg=dict(type="LN", eps=1e-6), **options)
    randomize(theirs, std=0.3)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    x = tokens(2, 9)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


def test_huge_logits_stay_finite_in_half_precision(randomize):
    """Logits beyond fp16's range of 65,504 must not overflow."""
    attention, x = randomize(Attention(DIM, HEADS)), tokens(2, 9)
    with torch.no_grad():
        attention.qkv.weight[: 2 * DIM] *= 3000
        q, k, _ = attention.qkv(x).chunk(3, dim=-1)
        assert (q @ k.transpose(1, 2)).abs().max() > 65504
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert attention(x).isfinite().all()


def test_drop_path_is_drawn_once_for_a_sample_and_not_for_its_windows(randomize):
    layer = randomize(TransformerLayer(DIM, HEADS, 64, drop_path_rate=0.5)).train()
    with torch.no_grad():  # silence the MLP: what is left is the attention branch
        layer.ffn.layers[1].weight.zero_()
        layer.ffn.layers[1].bias.zero_()
    x = tokens(16, 4, 9)
    torch.manual_seed(0)
    kept = (layer(x) - x).abs().amax(dim=(2, 3)) > 0
    assert (kept == kept[:, :1]).all(), "the windows of a sample must share their fate"
    assert 0 < kept[:, 0].sum() < 16


def test_drop_path_is_drawn_anew_at_every_call(randomize):
    layer = randomize(TransformerLayer(DIM, HEADS, 64, drop_path_rate=0.5)).train()
    x, fates = tokens(16, 9), []
    layer.drop_path.register_forward_hook(
        lambda _, __, out: fates.append(out.flatten(1).abs().amax(1) > 0)
    )
    torch.manual_seed(0)
    for _ in range(4):
        layer(x)
    assert len({tuple(fate.tolist()) for fate in fates}) == 4


def test_no_drop_path_in_evaluation(randomize):
    layer = randomize(TransformerLayer(DIM, HEADS, 64, drop_path_rate=0.5)).eval()
    x = tokens(2, 9)
    torch.testing.assert_close(layer(x), layer(x), rtol=0, atol=0)
