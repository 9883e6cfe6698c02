"""Cutting token maps into windows and putting them together again: pure functions."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def window_partition(x: Tensor, hw: tuple[int, int], size: int) -> tuple[Tensor, Tensor | None]:
    """Cut a token map into non-overlapping windows, padded at the bottom and right.

    Args:
        x (Tensor): Tokens in row-major order, shape (B, H*W, C).
        hw (tuple[int, int]): Rows H and columns W of the map.
        size (int): Side S of a window in tokens.

    Returns:
        tuple[Tensor, Tensor | None]: Windows of shape (B, G, S*S, C), where G counts the windows of
        one image, and a boolean mask of shape (B*G, 1, 1, S*S), true where a token is real. None
        where nothing was padded.
    """
    b, _, c = x.shape
    h, w = hw
    pad_h, pad_w = -h % size, -w % size
    padding = (0, 0, 0, pad_w, 0, pad_h)
    windows = _cut(F.pad(x.view(b, h, w, c), padding), size)
    if not (pad_h or pad_w):
        return windows, None
    real = F.pad(torch.ones(1, h, w, 1, device=x.device, dtype=torch.bool), padding)
    mask = _cut(real, size).view(-1, 1, 1, size * size)
    return windows, mask.repeat(b, 1, 1, 1)


def _cut(x: Tensor, size: int) -> Tensor:
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c).transpose(2, 3)
    return x.reshape(b, -1, size * size, c)


def window_merge(windows: Tensor, hw: tuple[int, int], size: int) -> Tensor:
    """Undo :func:`window_partition` and drop the padding.

    Args:
        windows (Tensor): Windows of shape (B, G, S*S, C).
        hw (tuple[int, int]): Rows H and columns W of the unpadded map.
        size (int): Side S of a window in tokens.

    Returns:
        Tensor: Tokens of shape (B, H*W, C).
    """
    b, _, _, c = windows.shape
    h, w = hw
    rows, cols = -(-h // size), -(-w // size)
    x = windows.view(b, rows, cols, size, size, c).transpose(2, 3)
    x = x.reshape(b, rows * size, cols * size, c)
    return x[:, :h, :w].reshape(b, h * w, c)


def in_windows(
    fn: Callable[[Tensor, Tensor | None], Tensor], x: Tensor, hw: tuple[int, int], size: int
) -> Tensor:
    """Run ``fn(tokens, mask)`` on the windows of a token map, or on the whole map at size 0.

    Args:
        fn (Callable): Maps tokens and the mask of real tokens to tokens of the same shape.
        x (Tensor): Tokens of shape (B, H*W, C).
        hw (tuple[int, int]): Rows H and columns W of the map.
        size (int): Side of a window in tokens; 0 for none.

    Returns:
        Tensor: Tokens of shape (B, H*W, C).
    """
    if not size:
        return fn(x, None)
    windows, mask = window_partition(x, hw, size)
    return window_merge(fn(windows, mask), hw, size)
