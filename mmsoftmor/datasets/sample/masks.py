"""Masks to COCO segmentations, without losing a pixel."""

import cv2
import numpy as np


def _pixel_edges(contour):
    """From a contour of the twofold enlarged mask to corners along the pixels' outer edges.

    A pixel's first sub-pixel (2x) stands for its left edge x, its second (2x + 1) for its right
    edge x + 1; diagonal steps of the contour fall together on the corner between them.
    """
    corners = (contour[:, 0, :] + 1) >> 1
    return corners[np.any(corners != np.roll(corners, 1, axis=0), axis=1)]


def _drop_collinear(points):
    before, after = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0)
    straight = np.all(np.sign(points - before) == np.sign(after - points), axis=1)
    return points[~straight]


def _join_hole(outer, hole):
    """Cut a hole into a closed contour by a slit of no width.

    The slit is vertical: COCO's rasteriser counts crossings within a column, of which such a slit
    has none. The contours pass through every pixel corner, so the outer one has the hole's column.
    """
    rows = np.where(outer[:, 0] == hole[0, 0])[0]
    at = rows[np.argmin(np.abs(outer[rows, 1] - hole[0, 1]))]
    return np.concatenate([outer[: at + 1], hole, hole[:1], outer[at:]])


def mask_to_polygons(mask):
    """Polygons that pycocotools rasterises to exactly this mask.

    Args:
        mask (np.ndarray): (h, w) bool.

    Returns:
        list[list[int]]: One ``[x0, y0, x1, y1, ...]`` per connected part, along pixel edges. Holes
        are cut in by a vertical slit.
    """
    x, y, width, height = cv2.boundingRect(mask.view(np.uint8))
    part = mask[y : y + height, x : x + width].view(np.uint8)
    double = cv2.resize(part, (2 * width, 2 * height), interpolation=cv2.INTER_NEAREST)
    contours, tree = cv2.findContours(double, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    corners = [_pixel_edges(contour) + (x, y) for contour in contours]
    polygons = []
    for outer, (_, _, child, parent) in zip(corners, tree[0], strict=True):
        if parent >= 0:
            continue
        while child >= 0:
            outer = _join_hole(outer, corners[child])
            child = tree[0][child][0]
        polygons.append(_drop_collinear(outer).ravel().tolist())
    return polygons


def mask_to_rle(mask):
    """Uncompressed COCO RLE of a (h, w) bool mask: column-major runs, beginning with zeros."""
    flat = mask.ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    counts = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    if flat[0]:
        counts.insert(0, 0)
    return {"size": list(mask.shape), "counts": counts}


def mask_to_box(mask):
    """COCO box ``[x, y, width, height]`` in whole pixels of a (h, w) bool mask."""
    return list(cv2.boundingRect(mask.view(np.uint8)))
