"""Do the label maps of a semantic segmentation dataset fit its images and classes?"""

from __future__ import annotations

import logging
import os.path as osp

import numpy as np
from mmengine.logging import print_log
from PIL import Image

from mmsoftmor.datasets.labels import LabelCoding, read_label_map
from mmsoftmor.errors import InputError

SAMPLED = 32  # label files that are decoded: a third of a second
_ROTATED = (5, 6, 7, 8)  # EXIF orientations that swap height and width


def check_labels(samples: list[dict], name: str, coding: LabelCoding) -> None:
    """Check the label files of a dataset: all for presence, some evenly spread ones for content.

    Args:
        samples: Each with ``img_path`` and ``seg_map_path``.
        name: Where the dataset stands in the config, for the messages.
        coding: What the values mean.

    Raises:
        InputError: No images, an image without label file, or a label map that is unreadable, has
            colours, another size than its image, a value without class, or nothing to learn from.
    """
    if not samples:
        raise InputError(f"{name}: no image found: correct data_prefix.img_path or set img_suffix")
    for sample in samples:
        if not osp.isfile(sample["seg_map_path"]):
            raise InputError(
                f"{sample['seg_map_path']}: label map of {sample['img_path']!r} does not exist: "
                f"add it, remove the image, or set {name}.seg_map_suffix"
            )
    some = samples[:: max(1, len(samples) // SAMPLED)]
    read = [(sample["seg_map_path"], *_read(sample)) for sample in some]
    total = sum(histogram for _, histogram, _ in read)
    _refuse_black_and_white(total, read[0][0], name, coding)
    for path, histogram, _ in read:
        coding.check(histogram, path)
    _report(total, read, name, coding)


def _read(sample: dict) -> tuple[np.ndarray, str]:
    """Count the values of a label map that has its image's size."""
    path = sample["seg_map_path"]
    labels, mode = read_label_map(path)
    size = _image_size(sample["img_path"])
    if size and labels.shape != size:
        raise InputError(
            f"{path}: label map is {labels.shape[0]} x {labels.shape[1]} but its image "
            f"{sample['img_path']!r} is {size[0]} x {size[1]} (height x width): replace one of them"
        )
    return np.bincount(labels.ravel().clip(0, 65535), minlength=65536), mode


def _image_size(path: str) -> tuple[int, int] | None:
    """Height and width as loaded, or None for a file that the image loader has to judge."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            turned = image.getexif().get(0x0112) in _ROTATED
    except OSError:
        return None
    return (width, height) if turned else (height, width)


def _refuse_black_and_white(
    histogram: np.ndarray, path: str, name: str, coding: LabelCoding
) -> None:
    """255 would be ignored: the whole foreground of such masks."""
    mapped = {old for old, _ in coding.value_map}
    if set(np.flatnonzero(histogram)) <= {0, 255} and histogram[255] and 255 not in mapped:
        pairs = ((0, 1), (255, 2)) if coding.reduce_zero_label else ((0, 0), (255, 1))
        raise InputError(
            f"{path}: holds only 0 and 255, like every label map looked at in {name}, and 255 is "
            f"ignored: for black-and-white masks set value_map = {pairs} and two classes at the "
            "top of your config"
        )


def _report(
    total: np.ndarray, read: list[tuple[str, np.ndarray, str]], name: str, coding: LabelCoding
) -> None:
    """Refuse labels that teach nothing; say what is worth knowing about others."""
    share = coding.ignored(total) / total.sum()
    if share == 1:
        raise InputError(
            f"{name}: every pixel of {len(read)} label maps looked at is unlabelled, such as "
            f"{read[0][0]}: correct reduce_zero_label, value_map or the files"
        )
    if share > 0.9:
        _warn(f"{name}: {share:.0%} of the pixels of {len(read)} label maps are unlabelled")
    top = int(np.flatnonzero(total[:255])[-1])
    if coding.reduce_zero_label and not coding.value_map and top == coding.num_classes - 1:
        _warn(
            f"{name}: {len(read)} label maps have values up to {top} but {coding.num_classes} "
            "classes reach that number plus one: if 0 is a class, set reduce_zero_label = False"
        )
    palettes = [path for path, _, mode in read if mode == "P"]
    if palettes:
        print_log(
            f"{name}: palette images such as {palettes[0]}: their indices are read, not colours",
            logger="current",
        )


def _warn(message: str) -> None:
    print_log(message, logger="current", level=logging.WARNING)
