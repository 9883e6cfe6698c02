"""Procedural textures: scalar fields in [0, 1] of any size, and their colouring."""

import cv2
import numpy as np


def value_noise(rng, shape, cell, octaves=3):
    """Multi-octave value noise.

    Args:
        rng (np.random.Generator): Source of randomness.
        shape (tuple[int, int]): Height and width in pixels.
        cell (float): Size in pixels of the coarsest blobs; each octave halves it and its weight.
        octaves (int): Number of octaves. Default 3.

    Returns:
        np.ndarray: float32 of ``shape``, stretched to [0, 1].
    """
    height, width = shape
    total = np.zeros(shape, np.float32)
    for octave in range(octaves):
        step = max(cell / 2**octave, 1.0)
        grid = rng.random((int(height / step) + 2, int(width / step) + 2), dtype=np.float32)
        # Only the coarsest octave shows the kinks of linear interpolation.
        how = cv2.INTER_CUBIC if octave == 0 else cv2.INTER_LINEAR
        total += cv2.resize(grid, (width, height), interpolation=how) * 0.5**octave
    return cv2.normalize(total, None, 0.0, 1.0, cv2.NORM_MINMAX)


def _rotated_axis(shape, angle):
    """Position in pixels of every pixel along the direction ``angle`` (radians)."""
    rows = np.arange(shape[0], dtype=np.float32) * np.float32(np.sin(angle))
    columns = np.arange(shape[1], dtype=np.float32) * np.float32(np.cos(angle))
    return rows[:, None] + columns[None, :]


def _wave(rng, shape, angle, period):
    """A sine along ``angle`` with random phase, in [-1, 1]."""
    phase = rng.uniform(0, 2 * np.pi)
    return np.sin(_rotated_axis(shape, angle) * np.float32(2 * np.pi / period) + np.float32(phase))


def _soft_step(field, sharpness):
    """Map [-1, 1] to [0, 1] through a ramp of the given steepness around 0."""
    return np.clip(field * np.float32(sharpness) * 0.5 + 0.5, 0, 1)


def _noise(rng, shape, scale):
    return value_noise(rng, shape, cell=scale * rng.uniform(1.0, 2.5))


def _plain(rng, shape, scale):
    return value_noise(rng, shape, cell=4 * scale, octaves=1) * 0.4


def _stripes(rng, shape, scale):
    angle = rng.uniform(0, np.pi)
    wave = _wave(rng, shape, angle, period=scale * rng.uniform(0.8, 1.6))
    return _soft_step(wave, rng.uniform(1.5, 5))


def _checks(rng, shape, scale):
    angle, period = rng.uniform(0, np.pi), scale * rng.uniform(1.2, 2.4)
    product = _wave(rng, shape, angle, period) * _wave(rng, shape, angle + np.pi / 2, period)
    return _soft_step(product, rng.uniform(3, 9))


def _dots(rng, shape, scale):
    angle, period = rng.uniform(0, np.pi), scale * rng.uniform(0.8, 1.4)
    total = _wave(rng, shape, angle, period) + _wave(rng, shape, angle + np.pi / 2, period)
    return _soft_step(total - np.float32(0.6), rng.uniform(3, 6))


def _gradient(rng, shape, scale):
    field = _rotated_axis(shape, rng.uniform(0, 2 * np.pi))
    field = cv2.normalize(field, None, 0.0, 0.9, cv2.NORM_MINMAX)
    return field + 0.1 * value_noise(rng, shape, cell=scale, octaves=2)


_FIELDS = {
    "noise": _noise,
    "plain": _plain,
    "stripes": _stripes,
    "checks": _checks,
    "dots": _dots,
    "gradient": _gradient,
}


def texture(rng, kind, shape, scale, colours):
    """A two-colour texture.

    Args:
        rng (np.random.Generator): Source of randomness.
        kind (str): One of ``noise``, ``plain``, ``stripes``, ``checks``, ``dots``, ``gradient``.
        shape (tuple[int, int]): Height and width in pixels.
        scale (float): Typical feature size in pixels.
        colours (np.ndarray): (2, 3) RGB colours, 0-255, between which the texture runs.

    Returns:
        np.ndarray: (height, width, 3) float32 RGB, 0-255.
    """
    field = _FIELDS[kind](rng, shape, scale)
    low, high = np.asarray(colours, np.float32)
    return field[..., None] * (high - low) + low
