"""Painting: contrast and dependence on the random stream."""

import numpy as np
import pytest

from mmsoftmor.datasets.sample.classes import CLASSES
from mmsoftmor.datasets.sample.paint import paint
from mmsoftmor.datasets.sample.scene import compose, image_rng


def test_objects_stand_off_from_their_surroundings():
    scene = compose(np.random.default_rng(5), (128, 128), [(CLASSES.index("disc"), 60.0)])
    gaps = []
    for seed in range(30):
        image = paint(np.random.default_rng(seed), scene).astype(float)
        mask = scene.objects[0].mask
        gaps.append(np.linalg.norm(image[mask].mean(axis=0) - image[~mask].mean(axis=0)))
    assert np.median(gaps) > 70
    assert min(gaps) > 30


@pytest.mark.parametrize("other", [(8, "train", 0), (7, "val", 0), (7, "train", 1)])
def test_seed_split_and_index_each_change_the_picture(other):
    def picture(seed, split, index):
        rng = image_rng(seed, "detection", split, index)
        return paint(rng, compose(rng, (64, 64), [(0, 40.0)]))

    assert not np.array_equal(picture(7, "train", 0), picture(*other))
    np.testing.assert_array_equal(picture(7, "train", 0), picture(7, "train", 0))
