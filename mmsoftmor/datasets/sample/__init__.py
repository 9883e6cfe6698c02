"""A small generated dataset with exact ground truth, for detection, segmentation, classification.

The three forms share one scene model: textured shapes over procedural backgrounds. An image
depends on the seed, its form, its split and its index alone, whatever the number of images.
"""

from .classes import (
    CATEGORY_IDS,
    CLASSES,
    CLS_CLASSES,
    PALETTE,
    SEG_CLASSES,
    SEG_PALETTE,
    STUFF_CLASSES,
)
from .classification import make_classification
from .detection import make_detection
from .segmentation import make_segmentation

__all__ = [
    "CATEGORY_IDS",
    "CLASSES",
    "CLS_CLASSES",
    "PALETTE",
    "SEG_CLASSES",
    "SEG_PALETTE",
    "STUFF_CLASSES",
    "make_classification",
    "make_detection",
    "make_segmentation",
]
