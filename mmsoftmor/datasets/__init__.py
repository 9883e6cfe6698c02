"""Datasets and how they are read. Importing this registers the image loader."""

from mmsoftmor.datasets.loading import LoadCheckedImage

__all__ = ["LoadCheckedImage"]
