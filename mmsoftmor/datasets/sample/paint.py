"""Painting of a composed scene."""

import cv2
import numpy as np

from .classes import STUFF_CLASSES
from .textures import texture

_OBJECT_TEXTURES = ("noise", "plain", "stripes", "dots")
_COLOUR_GAP = 105  # between an object's colours and its surroundings: distance in RGB, 0-255


def paint(rng, scene, object_hue=None, stuff_hue=None):
    """Paint a scene: textures, soft edges, mild shading, sensor noise.

    Args:
        rng (np.random.Generator): The generator with which the scene was composed.
        scene (Scene): The layout.
        object_hue (Callable, optional): ``object_hue(label)`` gives an object's hue, 0 to 1.
            Default None: any hue.
        stuff_hue (Callable, optional): ``stuff_hue(kind)`` gives that of a background region.
            Default None: any hue, or none at all.

    Returns:
        np.ndarray: (h, w, 3) uint8 RGB.
    """
    image = _paint_background(rng, scene, stuff_hue)
    for item in scene.objects:
        hue = None if object_hue is None else object_hue(item.label)
        _paint_object(rng, image, item.stencil, hue)
    _shade(rng, image)
    grain = rng.integers(0, 256, size=(2, *image.shape), dtype=np.uint8)
    # The difference of two uniform values is a triangular noise of deviation 104.
    image += (grain[0].astype(np.float32) - grain[1]) * np.float32(rng.uniform(2, 6) / 104)
    return np.clip(image, 0, 255).astype(np.uint8)


def _paint_background(rng, scene, stuff_hue):
    image = None
    for region, kind in enumerate(scene.kinds):
        scale, hue = rng.uniform(12, 40), None if stuff_hue is None else stuff_hue(kind)
        colours = _background_colours(rng, hue)
        layer = texture(rng, STUFF_CLASSES[kind], scene.shape, scale, colours)
        if image is None:
            image = layer
        else:
            inside = (scene.regions == region).astype(np.float32)
            image += (layer - image) * cv2.GaussianBlur(inside, (3, 3), 0)[..., None]
    return image


def _background_colours(rng, hue):
    """Two shades of a dull colour; where the hue means something, it can be seen."""
    if hue is None:
        base = _hsv(rng.random(), rng.uniform(0.0, 0.3), rng.uniform(0.25, 0.8))
    else:
        base = _hsv(hue, rng.uniform(0.2, 0.4), rng.uniform(0.35, 0.8))
    step = rng.normal(size=3) * 0.4 + rng.choice([-1.0, 1.0])
    step *= rng.uniform(30, 75) / np.linalg.norm(step)
    return np.clip(np.stack([base - step / 2, base + step / 2]), 5, 250)


def _hsv(hue, saturation, value):
    """HSV in [0, 1] to RGB, 0-255."""
    distance = np.abs((hue * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    return 255 * value * (1 - saturation * (1 - np.clip(distance, 0, 1)))


def _object_colours(rng, around, hue):
    """Two shades of a hue that stand off from the local background, or the best of twelve draws."""
    best, best_gap = None, -1.0
    for _ in range(12):
        shade = rng.random() if hue is None else hue
        saturation, value = rng.uniform(0.65, 1), rng.uniform(0.55, 1)
        second = value * rng.uniform(0.5, 0.85)
        colours = np.stack([_hsv(shade, saturation, value), _hsv(shade, saturation, second)])
        gap = np.linalg.norm(colours - around, axis=1).min()
        if gap > best_gap:
            best, best_gap = colours, gap
        if gap > _COLOUR_GAP:
            break
    return best


def _paint_object(rng, image, stencil, hue):
    patch = image[stencil.window]
    alpha = stencil.coverage.astype(np.float32)[..., None] / 255
    around = patch.mean(axis=(0, 1))
    kind = _OBJECT_TEXTURES[int(rng.integers(len(_OBJECT_TEXTURES)))]
    size = max(patch.shape[:2])
    scale = np.clip(size * rng.uniform(0.12, 0.3), 4, 24)
    layer = texture(rng, kind, patch.shape[:2], scale, _object_colours(rng, around, hue))
    _shade(rng, layer)
    patch += (layer - patch) * alpha


def _shade(rng, image):
    """Light from one side: a linear change of brightness by at most 18 % either way, in place."""
    down, right = rng.uniform(-0.09, 0.09, size=2)
    rows = np.linspace(1 - down, 1 + down, image.shape[0], dtype=np.float32)
    columns = np.linspace(-right, right, image.shape[1], dtype=np.float32)
    image *= (rows[:, None] + columns[None, :])[..., None]
