"""Windows against full attention under an explicit block mask, written out here."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from mmsoftmor.models.layers import (
    TransformerLayer,
    in_windows,
    window_merge,
    window_partition,
)

DIM, HEADS = 32, 4
# Divisible and not, portrait and landscape, larger and smaller than a window.
MAPS = [(8, 8, 4), (8, 4, 4), (4, 12, 4), (5, 9, 4), (9, 5, 4), (11, 3, 4), (3, 7, 5), (1, 1, 4)]


@pytest.fixture
def layer(randomize):
    return randomize(TransformerLayer(DIM, HEADS, 64), std=0.3)


def tokens(h, w, batch=2):
    return torch.randn(batch, h * w, DIM, generator=torch.Generator().manual_seed(4))


def layer_with_blocks(layer, x, hw, size):
    """The layer on the whole map, where only tokens of one window see each other."""
    rows, cols = torch.meshgrid(torch.arange(hw[0]), torch.arange(hw[1]), indexing="ij")
    windows = torch.stack([rows // size, cols // size], -1).view(-1, 2)
    together = (windows[:, None] == windows[None]).all(-1)

    def norm(x, ln):
        return F.layer_norm(x, (DIM,), ln.weight, ln.bias, 1e-6)

    def heads(t):
        return t.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    qkv = norm(x, layer.ln1) @ layer.attn.qkv.weight.T + layer.attn.qkv.bias
    q, k, v = map(heads, qkv.split(DIM, dim=-1))
    logits = q @ k.transpose(-1, -2) / (DIM // HEADS) ** 0.5
    seen = logits.masked_fill(~together, -torch.inf).softmax(-1) @ v
    x = x + seen.transpose(1, 2).flatten(2) @ layer.attn.proj.weight.T + layer.attn.proj.bias
    fc1, fc2 = layer.ffn.layers[0][0], layer.ffn.layers[1]
    hidden = F.gelu(norm(x, layer.ln2) @ fc1.weight.T + fc1.bias)
    return x + hidden @ fc2.weight.T + fc2.bias


@pytest.mark.parametrize(("h", "w", "size"), MAPS)
def test_windowed_layer_equals_full_attention_with_a_block_mask(layer, h, w, size):
    x = tokens(h, w)
    expected = layer_with_blocks(layer, x, (h, w), size)
    torch.testing.assert_close(in_windows(layer, x, (h, w), size), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("h", "w", "size"), MAPS)
def test_merging_undoes_cutting(h, w, size):
    x = tokens(h, w)
    windows, mask = window_partition(x, (h, w), size)
    count = -(-h // size) * -(-w // size)
    assert windows.shape == (2, count, size * size, DIM)
    torch.testing.assert_close(window_merge(windows, (h, w), size), x, rtol=0, atol=0)
    assert (mask is None) == (h % size == 0 and w % size == 0)
    if mask is not None:
        assert mask.shape == (2 * count, 1, 1, size * size)
        assert mask.sum() == 2 * h * w
        assert mask.any(dim=-1).all(), "a window without a real token would have no softmax"


@pytest.mark.parametrize(("h", "w"), [(5, 9), (9, 5), (3, 3)])
def test_content_of_padding_never_reaches_real_tokens_nor_gradients(layer, h, w, monkeypatch):
    def run():
        layer.zero_grad()
        x = tokens(h, w).requires_grad_()
        y = x
        for _ in range(3):
            y = in_windows(layer, y, (h, w), 4)
        y.square().sum().backward()
        return y, x.grad, [p.grad.clone() for p in layer.parameters()]

    def garbage(x, padding):
        if x.dtype == torch.bool:
            return F.pad(x, padding)
        noise = 1e4 * torch.randn(F.pad(x, padding).shape)
        return torch.where(F.pad(torch.ones_like(x), padding) > 0, F.pad(x, padding), noise)

    clean = run()
    monkeypatch.setattr("mmsoftmor.models.layers.window.F", SimpleNamespace(pad=garbage))
    dirty = run()
    for a, b in zip(dirty[:2], clean[:2], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    for a, b in zip(dirty[2], clean[2], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("h", "w"), [(8, 8), (5, 7), (7, 5)])
def test_one_window_over_the_whole_map_equals_global_attention(layer, h, w):
    x = tokens(h, w)
    torch.testing.assert_close(in_windows(layer, x, (h, w), 8), layer(x), rtol=1e-5, atol=1e-5)


def test_size_zero_means_no_windows(layer):
    x = tokens(5, 7)
    torch.testing.assert_close(in_windows(layer, x, (5, 7), 0), layer(x), rtol=0, atol=0)
