"""The building blocks: recursion with its mixture, attention, windows."""

from mmsoftmor.models.layers.attention import Attention, TransformerLayer
from mmsoftmor.models.layers.softmor import MIXINGS, Router, recurse
from mmsoftmor.models.layers.window import in_windows, window_merge, window_partition

__all__ = [
    "MIXINGS",
    "Attention",
    "Router",
    "TransformerLayer",
    "in_windows",
    "recurse",
    "window_merge",
    "window_partition",
]
