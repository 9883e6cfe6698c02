"""Pictures of detections: ground truth beside prediction, tiled on white."""

import numpy as np

from mmsoftmor.analysis import pictures


def test_tiles_share_a_height_and_are_parted_by_white():
    black = [np.zeros((128, 100, 3), np.uint8), np.zeros((256, 300, 3), np.uint8)] * 2
    tiled = pictures._tiled(black[:3], columns=2)
    gap, height = pictures.GAP, pictures.ROW_HEIGHT
    assert tiled.shape == (2 * height + 3 * gap, 200 + 300 + 3 * gap, 3)
    assert (tiled[:gap] == 255).all() and (tiled[:, :gap] == 255).all()
    assert (tiled[gap : gap + height, gap + 200 : 2 * gap + 200] == 255).all()
    assert (tiled[2 * gap + height : -gap, 2 * gap + 200 :] == 255).all()
    assert not tiled[gap : gap + height, gap : gap + 200].any()
