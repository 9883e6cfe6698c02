"""The scene model: limits it promises."""

import numpy as np
import pytest

from mmsoftmor.datasets.sample.classes import CLASSES
from mmsoftmor.datasets.sample.scene import compose, image_rng, paint, random_scene

SCENES = range(60)


def scene_of(index):
    return random_scene(image_rng(7, "detection", "train", index))


def test_masks_of_one_scene_are_disjoint():
    for index in SCENES:
        scene = scene_of(index)
        taken = np.zeros(scene.shape, int)
        for item in scene.objects:
            taken += item.mask
        assert taken.max(initial=0) <= 1


def test_every_object_shows_at_least_half_of_itself():
    for index in SCENES:
        for item in scene_of(index).objects:
            assert item.mask.sum() >= 0.5 * item.stencil.full_area


def test_some_objects_are_occluded():
    hidden = [
        item.mask.sum() < item.stencil.mask(scene.shape).sum()
        for scene in map(scene_of, SCENES)
        for item in scene.objects
    ]
    assert 0.02 < np.mean(hidden) < 0.4


def test_painting_is_bright_against_its_surroundings():
    scene = compose(np.random.default_rng(5), (128, 128), [(CLASSES.index("disc"), 60.0)])
    gaps = []
    for seed in range(30):
        image = paint(np.random.default_rng(seed), scene).astype(float)
        mask = scene.objects[0].mask
        gaps.append(np.linalg.norm(image[mask].mean(axis=0) - image[~mask].mean(axis=0)))
    assert np.median(gaps) > 70
    assert min(gaps) > 30


def test_sides_vary_between_portrait_and_landscape():
    shapes = np.array([scene_of(index).shape for index in SCENES])
    assert shapes.min() >= 192 and shapes.max() <= 288
    assert (shapes[:, 0] > shapes[:, 1] * 1.1).any() and (shapes[:, 1] > shapes[:, 0] * 1.1).any()


@pytest.mark.parametrize("other", [(8, "train", 0), (7, "val", 0), (7, "train", 1)])
def test_seed_split_and_index_each_change_the_picture(other):
    def picture(seed, split, index):
        rng = image_rng(seed, "detection", split, index)
        return paint(rng, compose(rng, (64, 64), [(0, 40.0)]))

    assert not np.array_equal(picture(7, "train", 0), picture(*other))
    np.testing.assert_array_equal(picture(7, "train", 0), picture(7, "train", 0))
