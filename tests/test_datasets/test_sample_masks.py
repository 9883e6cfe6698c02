"""Masks to polygons and RLE, against pycocotools' own rasteriser."""

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from mmsoftmor.datasets.sample.masks import mask_to_box, mask_to_polygons, mask_to_rle


def rasterise_polygons(polygons, shape):
    parts = coco_mask.frPyObjects([[float(v) for v in p] for p in polygons], *shape)
    return coco_mask.decode(coco_mask.merge(parts)).astype(bool)


@pytest.mark.parametrize("seed", range(40))
def test_polygons_of_ragged_masks_with_holes_rasterise_to_the_same_pixels(seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((int(rng.integers(3, 40)), int(rng.integers(3, 40)))) < rng.uniform(0.2, 0.9)
    mask[1, 1] = True
    np.testing.assert_array_equal(rasterise_polygons(mask_to_polygons(mask), mask.shape), mask)


def test_polygon_of_a_frame_is_one_ring_with_its_hole_cut_in():
    mask = np.zeros((12, 14), bool)
    mask[2:10, 3:12] = True
    mask[4:8, 5:9] = False
    polygons = mask_to_polygons(mask)
    assert len(polygons) == 1
    np.testing.assert_array_equal(rasterise_polygons(polygons, mask.shape), mask)


def test_polygon_of_a_rectangle_is_its_four_pixel_corners():
    mask = np.zeros((9, 9), bool)
    mask[2:5, 3:8] = True
    (polygon,) = mask_to_polygons(mask)
    assert set(zip(polygon[::2], polygon[1::2], strict=True)) == {(3, 2), (8, 2), (3, 5), (8, 5)}
    assert len(polygon) == 8


def test_polygon_reaches_the_border_of_the_image():
    mask = np.ones((5, 7), bool)
    np.testing.assert_array_equal(rasterise_polygons(mask_to_polygons(mask), (5, 7)), mask)


@pytest.mark.parametrize("first_pixel", [False, True])
def test_rle_decodes_to_the_same_pixels(first_pixel):
    mask = np.random.default_rng(3).random((17, 23)) < 0.5
    mask[0, 0] = first_pixel
    rle = mask_to_rle(mask)
    decoded = coco_mask.decode(coco_mask.frPyObjects(rle, *mask.shape))
    np.testing.assert_array_equal(decoded.astype(bool), mask)


def test_box_equals_the_one_pycocotools_derives():
    mask = np.zeros((20, 30), bool)
    mask[4:9, 7:19] = np.random.default_rng(0).random((5, 12)) < 0.3
    encoded = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert mask_to_box(mask) == coco_mask.toBbox(encoded).tolist()
