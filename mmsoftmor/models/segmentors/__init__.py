"""Importing this registers the segmentor and its test-time augmentation; it needs mmseg."""

from mmsoftmor.models.segmentors.bounded import BoundedEncoderDecoder
from mmsoftmor.models.segmentors.tta import RunningSegTTA

__all__ = ["BoundedEncoderDecoder", "RunningSegTTA"]
