"""Semantic segmentation form of the sample dataset, in ADE20K's layout."""

import cv2
import numpy as np

from .classes import CLASSES, STUFF_CLASSES
from .paint import paint
from .scene import image_rng, random_scene
from .store import generate, write_image

_FOLDERS = {"train": "training", "val": "validation"}


def make_segmentation(root, num_train=400, num_val=80, seed=0, progress=True):
    """Write the segmentation form: ``{images,annotations}/{training,validation}``.

    Images are 192-288 pixels a side. Labels are one-channel PNG: 0 unlabelled, 1-8 the shapes,
    9-12 the kinds of background (:data:`SEG_CLASSES` in order). Each class has a typical hue,
    so that minutes of training suffice. About half of the objects have a two-pixel edge left
    unlabelled.

    Args:
        root (str | Path): A folder of its own; finished work is kept, unfinished completed.
        num_train (int): Training images. Default 400.
        num_val (int): Validation images. Default 80.
        seed (int): An image depends on this and its index alone. Default 0.
        progress (bool): Show a progress bar. Default True.

    Returns:
        dict: The stamp, as in ``<root>/sample.json``; ``stamp['instances']`` counts by split.

    Raises:
        InputError: A number is out of range, or the folder holds something else.
    """

    def write_split(root, split, indices):
        return sum(_write_pair(root, split, index, seed) for index in indices)

    return generate(root, "segmentation", num_train, num_val, seed, write_split, progress)


def _write_pair(root, split, index, seed):
    rng = image_rng(seed, "segmentation", split, index)
    scene = random_scene(rng)
    name = f"sample_{split}_{index + 1:08d}"
    label_path = root / "annotations" / _FOLDERS[split] / f"{name}.png"
    # The label is written last: where it stands, the image does.
    if not label_path.exists():
        write_image(root / "images" / _FOLDERS[split] / f"{name}.jpg", _paint(rng, scene))
        write_image(label_path, label_map(scene))
    return len(scene.objects)


def _paint(rng, scene):
    """Each class about its typical hue, as sky and grass have theirs."""

    def hue_among(count):
        return lambda index: (index + rng.uniform(-0.4, 0.4)) / count % 1

    return paint(rng, scene, hue_among(len(CLASSES)), hue_among(len(STUFF_CLASSES)))


def label_map(scene):
    """Semantic labels of a scene.

    Args:
        scene (Scene): The layout.

    Returns:
        np.ndarray: (h, w) uint8; 0 unlabelled, ``i + 1`` for class ``i`` of :data:`SEG_CLASSES`.
    """
    labels = (np.array(scene.kinds, np.uint8) + len(CLASSES) + 1)[scene.regions]
    for item in scene.objects:
        labels[item.mask] = item.label + 1
    cross = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    for item in scene.objects:
        if item.soft_edge:
            edge = cv2.morphologyEx(item.mask.view(np.uint8), cv2.MORPH_GRADIENT, cross)
            labels[edge > 0] = 0
    return labels
