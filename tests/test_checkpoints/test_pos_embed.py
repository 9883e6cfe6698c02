"""Position tables fitted to a model, against a direct bicubic resize."""

import pytest
import torch
import torch.nn.functional as F

from mmsoftmor.checkpoints.pos_embed import adapt_pos_embed
from mmsoftmor.errors import InputError

DIM = 8


def smooth_grid(rows, cols):
    """A smooth analytic table of shape (1, rows * cols, DIM)."""
    y, x = torch.meshgrid(torch.linspace(0, 1, rows), torch.linspace(0, 1, cols), indexing="ij")
    waves = [torch.sin((c + 1) * y) + torch.cos((c + 2) * x) for c in range(DIM)]
    return torch.stack(waves, dim=-1).view(1, rows * cols, DIM)


def special(count):
    """Entries far from the grid's, so that mixing them in would show."""
    return 100 + torch.arange(count * DIM, dtype=torch.float).view(1, count, DIM)


def bicubic(grid, source, target):
    maps = grid.view(1, *source, DIM).permute(0, 3, 1, 2)
    maps = F.interpolate(maps, size=target, mode="bicubic", align_corners=False, antialias=False)
    return maps.permute(0, 2, 3, 1).reshape(1, -1, DIM)


@pytest.mark.parametrize("with_cls_token", [True, False])
@pytest.mark.parametrize("target", [(32, 32), (64, 64), (7, 7), (20, 31)])
def test_resize_is_a_direct_bicubic_one_of_the_grid_alone(target, with_cls_token):
    grid = smooth_grid(14, 14)
    table = torch.cat([special(1), grid], dim=1)
    fitted = adapt_pos_embed(table, 1, target, with_cls_token)
    expected = bicubic(grid, (14, 14), target)
    torch.testing.assert_close(fitted[:, int(with_cls_token) :], expected, rtol=1e-5, atol=1e-5)
    if with_cls_token:
        assert torch.equal(fitted[:, :1], special(1))


@pytest.mark.parametrize("with_cls_token", [True, False])
def test_same_grid_is_bit_identical(with_cls_token):
    table = torch.cat([special(1), smooth_grid(14, 14)], dim=1)
    fitted = adapt_pos_embed(table, 1, (14, 14), with_cls_token)
    assert torch.equal(fitted, table if with_cls_token else table[:, 1:])


def test_half_precision_table_is_resized_in_fp32():
    grid = smooth_grid(14, 14).half()
    fitted = adapt_pos_embed(grid, 0, (32, 32), False)
    expected = bicubic(grid.float(), (14, 14), (32, 32)).half()
    assert fitted.dtype == torch.half
    assert torch.equal(fitted, expected)


# Entries of the table, special tokens in the file, of which stored in the table.
LAYOUTS = [
    (196, 0, 0),
    (197, 1, 1),
    (198, 2, 2),
    (200, 4, 4),
    (201, 5, 5),
    (196, 1, 0),
    (197, 5, 1),
]


@pytest.mark.parametrize("grid", [(14, 14), (10, 18)])
@pytest.mark.parametrize(("entries", "tokens", "stored"), LAYOUTS)
def test_every_layout_of_special_tokens_leaves_the_grid(entries, tokens, stored, grid):
    patches = smooth_grid(14, 14)
    table = torch.cat([special(stored), patches], dim=1)
    assert table.shape[1] == entries
    expected = patches if grid == (14, 14) else bicubic(patches, (14, 14), grid)
    torch.testing.assert_close(adapt_pos_embed(table, tokens, grid, False), expected)
    if stored:
        fitted = adapt_pos_embed(table, tokens, grid, True)
        assert torch.equal(fitted[:, :1], special(1))
        torch.testing.assert_close(fitted[:, 1:], expected)


@pytest.mark.parametrize("tokens", [0, 1, 2])
def test_impossible_number_of_entries_is_refused_naming_both_grids(tokens):
    with pytest.raises(InputError, match=r"195 entries.*14x14") as error:
        adapt_pos_embed(torch.zeros(1, 195, DIM), tokens, (14, 14), False)
    assert "\n" not in str(error.value)


def test_class_token_that_the_file_lacks_is_refused():
    with pytest.raises(InputError, match="with_cls_token=False"):
        adapt_pos_embed(smooth_grid(14, 14), 0, (14, 14), True)


def test_oblong_table_of_the_models_own_grid_is_taken():
    table = smooth_grid(10, 18)
    assert torch.equal(adapt_pos_embed(table, 0, (10, 18), False), table)
