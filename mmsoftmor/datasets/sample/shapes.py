"""Outlines of the eight shapes and their exact, anti-aliased rasters."""

from dataclasses import dataclass

import cv2
import numpy as np

from .classes import CLASSES

# Each pixel is split in this many sub-pixels a side; coverage has 16 + 1 levels.
_SUPERSAMPLING = 4


def _arc(radius, start, stop, centre=(0.0, 0.0), points=48):
    angles = np.linspace(start, stop, points)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * radius + centre


def _crescent():
    # A unit disc without a disc of radius 0.8 whose centre lies 0.5 to the right.
    cut, shift = 0.8, 0.5
    crossing = (1 + shift**2 - cut**2) / (2 * shift)
    outer, inner = np.arccos(crossing), np.arccos((crossing - shift) / cut)
    back = _arc(cut, 2 * np.pi - inner, inner, centre=(shift, 0.0))
    return [np.concatenate([_arc(1.0, outer, 2 * np.pi - outer), back])]


def _cross():
    a, b = 0.34, 1.0
    corners = [(a, b), (a, a), (b, a), (b, -a), (a, -a), (a, -b)]
    return [np.array(corners + [(-x, -y) for x, y in corners])]


def _disc():
    return [_arc(1.0, 0, 2 * np.pi)]


def _heart():
    t = np.linspace(0, 2 * np.pi, 64)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return [np.stack([x, -y], axis=1)]


def _ring():
    return [_arc(1.0, 0, 2 * np.pi), _arc(0.56, 0, 2 * np.pi)]


def _square():
    return [np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)]


def _star():
    angles = np.arange(10) * np.pi / 5 - np.pi / 2
    radii = np.where(np.arange(10) % 2 == 0, 1.0, 0.45)
    return [np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii[:, None]]


def _triangle():
    return [_arc(1.0, -np.pi / 2, -np.pi / 2 + 4 * np.pi / 3, points=3)]


def _centred(contours):
    """Move the bounding box's centre to 0 and scale its longer side to 1."""
    low, high = contours[0].min(axis=0), contours[0].max(axis=0)
    return [(contour - (low + high) / 2) / (high - low).max() for contour in contours]


_BUILDERS = {
    "crescent": _crescent,
    "cross": _cross,
    "disc": _disc,
    "heart": _heart,
    "ring": _ring,
    "square": _square,
    "star": _star,
    "triangle": _triangle,
}
_OUTLINES = tuple(_centred(_BUILDERS[name]()) for name in CLASSES)


def outline(label, centre, size, angle=0.0, aspect=1.0):
    """Contours of one shape in image coordinates (pixel ``i`` spans ``[i, i + 1)``).

    Args:
        label (int): Index into :data:`CLASSES`.
        centre (tuple[float, float]): x and y in pixels.
        size (float): Pixels across (longer side before stretching and rotating).
        angle (float): Rotation in radians. Default 0.
        aspect (float): Width over height; the area is kept. Default 1.

    Returns:
        list[np.ndarray]: (N, 2) float arrays of x, y; where there are two, the second is a hole.
    """
    stretch = np.array([np.sqrt(aspect), 1 / np.sqrt(aspect)])
    cos, sin = np.cos(angle), np.sin(angle)
    rotation = np.array([[cos, sin], [-sin, cos]])
    return [(part * stretch * size) @ rotation + np.asarray(centre) for part in _OUTLINES[label]]


@dataclass(frozen=True)
class Stencil:
    """Coverage of one object on an image.

    Attributes:
        coverage (np.ndarray): (h, w) uint8, 0-255: the part of each pixel that the object covers.
        x (int): Image column of the patch's first column.
        y (int): Image row of the patch's first row.
        full_area (int): Pixels that the object would have on an endless image.
    """

    coverage: np.ndarray
    x: int
    y: int
    full_area: int

    @property
    def window(self):
        """tuple[slice, slice]: Rows and columns of the image that the patch lies on."""
        height, width = self.coverage.shape
        return slice(self.y, self.y + height), slice(self.x, self.x + width)

    def mask(self, shape):
        """Pixels of an image of ``shape`` that are covered by half or more, as (h, w) bool."""
        mask = np.zeros(shape, bool)
        mask[self.window] = self.coverage >= 128
        return mask


def rasterise(contours, shape):
    """Fill contours (even-odd, so that inner ones are holes) with exact coverage.

    Args:
        contours (list[np.ndarray]): (N, 2) arrays of x, y in image coordinates.
        shape (tuple[int, int]): Height and width of the image, to which the patch is cut.

    Returns:
        Stencil: The patch; empty if the contours lie outside the image.
    """
    points = np.concatenate(contours)
    x0, y0 = np.floor(points.min(axis=0)).astype(int)
    x1, y1 = np.ceil(points.max(axis=0)).astype(int)
    fine = np.zeros(((y1 - y0) * _SUPERSAMPLING, (x1 - x0) * _SUPERSAMPLING), np.uint8)
    scaled = [np.rint((c - (x0, y0)) * _SUPERSAMPLING - 0.5).astype(np.int32) for c in contours]
    cv2.fillPoly(fine, scaled, 255)
    coverage = cv2.resize(fine, (int(x1 - x0), int(y1 - y0)), interpolation=cv2.INTER_AREA)
    full_area = int((coverage >= 128).sum())
    left, top = max(x0, 0), max(y0, 0)
    right, bottom = max(min(x1, shape[1]), left), max(min(y1, shape[0]), top)
    inside = coverage[top - y0 : bottom - y0, left - x0 : right - x0]
    return Stencil(inside, int(left), int(top), full_area)
