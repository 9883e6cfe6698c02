"""Importing this registers the backbone and the neck."""

from mmsoftmor.models.backbones import SRViT
from mmsoftmor.models.necks import SimpleFeaturePyramid

__all__ = ["SRViT", "SimpleFeaturePyramid"]
