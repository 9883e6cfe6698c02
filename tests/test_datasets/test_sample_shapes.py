"""Shapes: geometry against formulas."""

import numpy as np
import pytest

from mmsoftmor.datasets.sample.classes import CLASSES
from mmsoftmor.datasets.sample.shapes import outline, rasterise

SHAPE = (120, 140)


def coverage_area(label, size, **how):
    stencil = rasterise(outline(label, (70.3, 60.7), size, **how), SHAPE)
    return stencil.coverage.sum() / 255


@pytest.mark.parametrize(
    ("name", "area"),
    [("disc", np.pi / 4), ("square", 1.0), ("ring", np.pi / 4 * (1 - 0.56**2))],
)
@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_area_is_that_of_the_formula(name, area, angle):
    got = coverage_area(CLASSES.index(name), 60.0, angle=angle)
    assert got == pytest.approx(area * 60**2, rel=0.02)


@pytest.mark.parametrize("label", range(len(CLASSES)))
def test_stretching_and_rotating_keep_the_area(label):
    plain = coverage_area(label, 60.0)
    assert coverage_area(label, 60.0, angle=2.1, aspect=1.3) == pytest.approx(plain, rel=0.02)


def test_shapes_differ_visibly_from_each_other_at_every_rotation():
    # Compared at equal size: intersection over union of no two classes comes near 1.
    masks = {
        label: [
            rasterise(outline(label, (70, 60), 60, angle), SHAPE).mask(SHAPE)
            for angle in np.arange(0, 2 * np.pi, np.pi / 12)
        ]
        for label in range(len(CLASSES))
    }
    for first in masks:
        for second in range(first):
            still = masks[first][0]
            best = max((still & m).sum() / (still | m).sum() for m in masks[second])
            assert best < 0.85, (CLASSES[first], CLASSES[second], best)


def test_edges_are_soft_and_the_mask_is_the_half_covered_pixels():
    stencil = rasterise(outline(CLASSES.index("disc"), (70, 60), 40), SHAPE)
    assert ((stencil.coverage > 20) & (stencil.coverage < 235)).sum() > 50
    assert stencil.mask(SHAPE).sum() == (stencil.coverage >= 128).sum() == stencil.full_area


def test_stencil_is_cut_at_the_image_and_still_knows_its_full_area():
    whole = rasterise(outline(CLASSES.index("square"), (70, 60), 40), SHAPE)
    cut = rasterise(outline(CLASSES.index("square"), (0, 60), 40), SHAPE)
    assert cut.full_area == whole.full_area == 1600
    assert cut.mask(SHAPE).sum() == 800
    assert rasterise(outline(0, (-300, 60), 40), SHAPE).mask(SHAPE).sum() == 0
