"""The scene model: limits it promises."""

import numpy as np

from mmsoftmor.datasets.sample.scene import image_rng, random_scene

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


def test_sides_vary_between_portrait_and_landscape():
    shapes = np.array([scene_of(index).shape for index in SCENES])
    assert shapes.min() >= 192 and shapes.max() <= 288
    assert (shapes[:, 0] > shapes[:, 1] * 1.1).any() and (shapes[:, 1] > shapes[:, 0] * 1.1).any()
