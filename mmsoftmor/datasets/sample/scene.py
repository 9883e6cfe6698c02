"""The scene model that all three forms of the sample dataset share: what lies where.

A scene is first composed (exact masks), then painted (pixels, in paint.py). Both draw from one
random generator in this order, so that labels alone can be had without painting.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from .classes import CLASSES, STUFF_CLASSES
from .shapes import Stencil, outline, rasterise
from .textures import value_noise

_MIN_VISIBLE = 0.6  # of an object's full area, after occlusion and the image's edge
_MAY_OCCLUDE = 0.4  # share of the objects that may be placed over others
_PLACE_TRIES = 12

# First word of the random stream of each split, apart so that no two share an image.
_STREAMS = {
    ("detection", "train"): 0,
    ("detection", "val"): 1,
    ("segmentation", "train"): 2,
    ("segmentation", "val"): 3,
    ("classification", "train"): 4,
    ("classification", "val"): 5,
}


@dataclass
class SceneObject:
    """One object, or one crowd of objects of the same class.

    Attributes:
        label (int): Index into :data:`CLASSES`.
        stencil (Stencil): Its whole coverage, as painted.
        mask (np.ndarray): (h, w) bool, its visible pixels.
        crowd (bool): Whether this is a cluster of small shapes.
        soft_edge (bool): Whether its edge is left unlabelled in the segmentation form.
    """

    label: int
    stencil: Stencil
    mask: np.ndarray
    crowd: bool
    soft_edge: bool


@dataclass
class Scene:
    """A composed scene: ``objects`` from back to front over a background of 1-3 regions.

    Attributes:
        shape (tuple[int, int]): Height and width in pixels.
        kinds (tuple[int, ...]): For each region its index into :data:`STUFF_CLASSES`.
        regions (np.ndarray): (h, w) uint8, the region that each background pixel belongs to.
        objects (list[SceneObject]): From back to front.
    """

    shape: tuple
    kinds: tuple
    regions: np.ndarray
    objects: list


def compose(rng, shape, requests, crowd=None):
    """Lay out a scene.

    Args:
        rng (np.random.Generator): Source of randomness.
        shape (tuple[int, int]): Height and width in pixels.
        requests (list[tuple[int, float]]): Class index and size in pixels of each object, back to
            front. An object for which no free place is found is left out.
        crowd (int, optional): Class index of a cluster of small shapes behind the objects.

    Returns:
        Scene: The layout; every object shows at least 60 % of itself.
    """
    kinds, regions = _background_regions(rng, shape)
    scene = Scene(shape, kinds, regions, [])
    if crowd is not None:
        _place(rng, scene, crowd, partial(_random_cluster, rng, shape, crowd), is_crowd=True)
    for label, size in requests:
        _place(rng, scene, label, partial(_random_shape, rng, shape, label, size))
    return scene


def _background_regions(rng, shape):
    count = int(rng.choice([1, 2, 3], p=[0.5, 0.38, 0.12]))
    kinds = tuple(int(kind) for kind in rng.permutation(len(STUFF_CLASSES))[:count])
    regions = np.zeros(shape, np.uint8)
    rows = np.arange(shape[0], dtype=np.float32)[:, None]
    columns = np.arange(shape[1], dtype=np.float32)[None, :]
    for region in range(1, count):
        angle = rng.uniform(0, 2 * np.pi)
        through_y, through_x = rng.uniform(0.3, 0.7, size=2) * shape
        side = (rows - through_y) * np.float32(np.sin(angle))
        side = side + (columns - through_x) * np.float32(np.cos(angle))
        wobble = value_noise(rng, shape, cell=min(shape) / 2, octaves=1) - np.float32(0.5)
        regions[side + wobble * np.float32(0.25 * min(shape)) > 0] = region
    return kinds, regions


def _random_shape(rng, shape, label, size):
    # Up to about a tenth of the object may lie beyond the image's edge.
    margin = min(0.42 * size, min(shape) / 2)
    centre = rng.uniform(margin, shape[1] - margin), rng.uniform(margin, shape[0] - margin)
    angle, aspect = rng.uniform(0, 2 * np.pi), np.exp(rng.uniform(-0.25, 0.25))
    return rasterise(outline(label, centre, size, angle, aspect), shape)


def _random_cluster(rng, shape, label):
    cell = rng.uniform(15, 22)
    columns, rows = rng.integers(3, 6, size=2)
    left = rng.uniform(0, max(shape[1] - columns * cell, 1))
    top = rng.uniform(0, max(shape[0] - rows * cell, 1))
    contours = []
    for index in range(columns * rows):
        jitter = rng.uniform(0.42, 0.58, size=2)
        centre = np.array([index % columns, index // columns]) + jitter
        size = cell * rng.uniform(0.6, 0.72)
        contours += outline(label, centre * cell + (left, top), size, rng.uniform(0, 2 * np.pi))
    return rasterise(contours, shape)


def _place(rng, scene, label, draw_stencil, is_crowd=False):
    """Put one more object in front if, within a few tries, it hides no other too much."""
    may_occlude = rng.random() < _MAY_OCCLUDE
    for _ in range(_PLACE_TRIES):
        stencil = draw_stencil()
        mask = stencil.mask(scene.shape)
        if _fits(scene, stencil, mask, may_occlude):
            break
    else:
        return
    for other in scene.objects:
        other.mask &= ~mask
    soft_edge = bool(rng.random() < 0.5)
    scene.objects.append(SceneObject(label, stencil, mask, is_crowd, soft_edge))


def _fits(scene, stencil, mask, may_occlude):
    """Whether enough of the new object, and of what remains of each older one, would be seen."""
    if mask.sum() < _MIN_VISIBLE * stencil.full_area:
        return False
    for other in scene.objects:
        left = np.count_nonzero(other.mask & ~mask)
        if left < _MIN_VISIBLE * other.stencil.full_area:
            return False
        if not may_occlude and left < np.count_nonzero(other.mask):
            return False
    return True


def random_requests(rng, shape):
    """Classes and sizes of 0-6 objects: mostly medium, some small, some large.

    Args:
        rng (np.random.Generator): Source of randomness.
        shape (tuple[int, int]): Height and width in pixels of the image.

    Returns:
        list[tuple[int, float]]: Class index and size in pixels, large ones first (at the back).
    """
    count = int(rng.choice(7, p=[0.05, 0.14, 0.21, 0.22, 0.18, 0.12, 0.08]))
    ranges = ((20, 32), (42, 105), (110, 180))
    requests = []
    for _ in range(count):
        low, high = ranges[int(rng.choice(3, p=[0.14, 0.66, 0.2]))]
        size = min(rng.uniform(low, high), 0.8 * min(shape))
        requests.append((int(rng.integers(len(CLASSES))), float(size)))
    return sorted(requests, key=lambda request: -request[1])


def image_rng(seed, form, split, index):
    """The random generator of one image, which depends on nothing but these four."""
    return np.random.default_rng([seed, _STREAMS[form, split], index])


def random_scene(rng):
    """Compose a scene of 192-288 pixels a side with 0-6 objects and, in one of ten, a crowd."""
    shape = tuple(int(side) for side in rng.integers(192, 289, size=2))
    requests = random_requests(rng, shape)
    crowd = None
    if requests and rng.random() < 0.1:
        crowd, requests = int(rng.integers(len(CLASSES))), requests[:3]
    return compose(rng, shape, requests, crowd)
