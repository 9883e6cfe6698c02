"""Fitting a checkpoint's position table to the model that reads it."""

import math

import torch
from mmpretrain.models.utils import resize_pos_embed
from torch import Tensor

from mmsoftmor.errors import InputError

# What a file may hold before its patches: DeiT's distillation token or DINOv2's registers come
# after the class token.
SPECIAL_TOKENS = ("cls_token", "dist_token", "register_tokens")


def adapt_pos_embed(
    table: Tensor,
    special_tokens: int,
    grid: tuple[int, int],
    with_cls_token: bool,
    source_grid: tuple[int, int] | None = None,
) -> Tensor:
    """Fit a stored position table to a model's grid and class token.

    The grid part is resized bicubically in fp32 without antialias. The entries of special tokens
    are never resized: the class token's is kept or dropped, the others' are dropped. A class token
    that the file has without an entry gets one of zeros, which adds nothing to it.

    Args:
        table (Tensor): Stored table, shape (1, T + N, C), the T special tokens first.
        special_tokens (int): Special tokens (class, distillation, registers) that the file holds.
            Some families give only the class token an entry in the table, some give none.
        grid (tuple[int, int]): Rows and columns of the model's table.
        with_cls_token (bool): Whether the model has a class token.
        source_grid (tuple[int, int], optional): Rows and columns that the table is known to have;
            ignored where its entries are others. Defaults to None: a square grid if one fits (a
            24x24 table has as many entries as an 18x32 one), else the model's.

    Returns:
        Tensor: Table of shape (1, rows * cols (+ 1 with a class token), C).

    Raises:
        InputError: If no grid fits the number of entries, or the model has a class token and the
            file neither the token nor an entry for it.
    """
    source_grid, stored = find_grid(table.shape[1], special_tokens, grid, source_grid)
    if with_cls_token and not stored and not special_tokens:
        raise InputError(
            f"the file's position table has {table.shape[1]} entries, a "
            f"{source_grid[0]}x{source_grid[1]} grid without a class token's entry, but the model "
            "has a class token: build it with with_cls_token=False"
        )
    patches = resize_pos_embed(table[:, stored:], source_grid, grid, num_extra_tokens=0)
    if not with_cls_token:
        return patches
    entry = table[:, :1] if stored else torch.zeros_like(patches[:, :1])
    return torch.cat([entry, patches], dim=1)


def find_grid(
    entries: int,
    special_tokens: int,
    grid: tuple[int, int],
    source_grid: tuple[int, int] | None = None,
) -> tuple[tuple[int, int], int]:
    """Return a table's grid and how many special tokens have an entry in it.

    Args:
        entries (int): Entries of the table. The others are as of :func:`adapt_pos_embed`.
        special_tokens (int): Special tokens that the file holds.
        grid (tuple[int, int]): Rows and columns of the model's table.
        source_grid (tuple[int, int], optional): Those that the table is known to have. Defaults to
            None.

    Returns:
        tuple[tuple[int, int], int]: Rows and columns, and the number of special tokens before them.

    Raises:
        InputError: If no grid fits the number of entries.
    """
    if source_grid and entries - special_tokens == math.prod(source_grid):
        return source_grid, special_tokens
    counts = sorted({special_tokens, min(special_tokens, 1), 0}, reverse=True)
    for stored in counts:
        side = math.isqrt(max(entries - stored, 0))
        if side and side * side == entries - stored:
            return (side, side), stored
    for stored in counts:
        if entries - stored == math.prod(grid):
            return grid, stored
    raise InputError(
        f"the file's position table has {entries} entries for {special_tokens} special tokens: no "
        f"square grid has that many, and the model's grid is {grid[0]}x{grid[1]}; give the file "
        "that belongs to a square image, or build the model for the file's image size"
    )
