"""Do the label maps of a semantic segmentation dataset fit its images and classes?"""

from __future__ import annotations

import logging
import os.path as osp
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mmengine.fileio import list_dir_or_file
from mmengine.logging import print_log
from PIL import Image

from mmsoftmor.datasets.labels import LabelCoding, read_label_map
from mmsoftmor.errors import InputError

SAMPLED = 32  # label files that are decoded: a third of a second
_ROTATED = (5, 6, 7, 8)  # EXIF orientations that swap height and width


@dataclass(frozen=True)
class LabelFile:
    """What is in one label file: its mode in PIL's words, and its pixels by value (65536,)."""

    path: str
    mode: str
    dtype: str
    histogram: np.ndarray


@dataclass(frozen=True)
class LabelFacts:
    """The label files of a dataset: how many there are, and some evenly spread ones, decoded.

    ``name`` is where the dataset stands in the config, for messages.
    """

    name: str
    count: int
    files: list[LabelFile]

    @cached_property
    def histogram(self) -> np.ndarray:
        """Pixels of the decoded files by value, (65536,)."""
        return sum(file.histogram for file in self.files)


def check_listing(
    samples: list[dict], prefix: dict, suffixes: tuple[str, str], name: str, whole: bool
) -> None:
    """Are the images found, and are all label maps in use?

    Args:
        samples: Each with ``img_path`` and, if there are labels, ``seg_map_path``.
        prefix: The folders ``img_path`` and ``seg_map_path``.
        suffixes: How image and label files end.
        name: Where the dataset stands in the config.
        whole: Whether the samples ought to be all that the folders hold.

    Raises:
        InputError: There are no samples.
    """
    if not samples:
        found = Counter(osp.splitext(path)[1] for path in _files(prefix["img_path"]))
        others = ", ".join(f"{number} {suffix}" for suffix, number in found.most_common(3))
        raise InputError(
            f"{name}: no {suffixes[0]} image in {prefix['img_path']!r} (there are: {others}): set "
            "img_suffix at the top of your config, or correct data_prefix.img_path"
        )
    if whole and prefix.get("seg_map_path"):
        used = {osp.normpath(sample["seg_map_path"]) for sample in samples}
        labels = (p for p in _files(prefix["seg_map_path"]) if p.endswith(suffixes[1]))
        unused = sorted(path for path in labels if osp.normpath(path) not in used)
        if unused:
            _warn(
                f"{name}: {len(unused)} label maps have no {suffixes[0]} image and are not used, "
                f"such as {unused[0]}"
            )


def _files(folder: str) -> Iterator[str]:
    """All files in a folder at any depth, but hidden ones, as datasets list them."""
    for path in list_dir_or_file(folder, list_dir=False, recursive=True):
        yield osp.join(folder, path)


def read_labels(samples: list[dict], name: str) -> LabelFacts:
    """Look for every label file of a dataset and decode some.

    Args:
        samples: Each with ``img_path`` and ``seg_map_path``; at least one.
        name: Where the dataset stands in the config.

    Raises:
        InputError: An image without label file, or a label map that is unreadable, has colours, or
            another size than its image.
    """
    for sample in samples:
        if not osp.isfile(sample["seg_map_path"]):
            raise InputError(
                f"{sample['seg_map_path']}: label map of {sample['img_path']!r} does not exist: "
                f"add it, remove the image, or set seg_map_suffix ({name})"
            )
    some = samples[:: max(1, len(samples) // SAMPLED)]
    return LabelFacts(name, len(samples), [_read(sample) for sample in some])


def check_labels(facts: LabelFacts, coding: LabelCoding) -> None:
    """Refuse label maps that do not fit the classes; say what is worth knowing about others.

    Raises:
        InputError: A black-and-white mask, a value without class, or nothing to learn from.
    """
    _refuse_black_and_white(facts, coding)
    for file in facts.files:
        coding.check(file.histogram, file.path)
    _judge(facts, coding)


def _read(sample: dict) -> LabelFile:
    """Count the values of a label map that has its image's size."""
    path = sample["seg_map_path"]
    labels, mode = read_label_map(path)
    size = _image_size(sample["img_path"])
    if size and labels.shape != size:
        raise InputError(
            f"{path}: label map is {labels.shape[0]} x {labels.shape[1]} but its image "
            f"{sample['img_path']!r} is {size[0]} x {size[1]} (height x width): replace one of them"
        )
    return LabelFile(path, mode, str(labels.dtype), np.bincount(labels.ravel(), minlength=65536))


def _image_size(path: str) -> tuple[int, int] | None:
    """Height and width as loaded, or None for a file that the image loader has to judge."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            turned = image.getexif().get(0x0112) in _ROTATED
    except OSError:
        return None
    return (width, height) if turned else (height, width)


def describe_labels(facts: LabelFacts, coding: LabelCoding, classes: Sequence[str]) -> str:
    """A table of the label files looked at: their form, and each value's class and share."""
    kinds = Counter(f"{file.dtype}, mode {file.mode}" for file in facts.files)
    lines = [f"{facts.name}: {len(facts.files)} of {facts.count} label maps read, one channel"]
    lines += [f"  {number} x {kind}" for kind, number in kinds.items()]
    total = facts.histogram.sum()
    for value in np.flatnonzero(facts.histogram):
        meaning = _meaning(int(value), coding, classes)
        lines.append(f"  {value:5d}  {facts.histogram[value] / total:8.3%}  {meaning}")
    lines.append(f"  unlabelled: {coding.ignored(facts.histogram) / total:.3%}")
    return "\n".join(lines)


def _meaning(value: int, coding: LabelCoding, classes: Sequence[str]) -> str:
    index = int(coding.table[value]) if value < 256 else len(classes)
    if index == coding.ignore_index:
        return "unlabelled"
    return classes[index] if index < len(classes) else "no class"


def _refuse_black_and_white(facts: LabelFacts, coding: LabelCoding) -> None:
    """255 would be ignored: the whole foreground of such masks."""
    mapped = {old for old, _ in coding.value_map}
    present = set(np.flatnonzero(facts.histogram))
    if present == {0, 255} and 255 not in mapped:
        pairs = ((0, 1), (255, 2)) if coding.reduce_zero_label else ((0, 0), (255, 1))
        raise InputError(
            f"{facts.files[0].path}: holds only 0 and 255, like every label map looked at in "
            f"{facts.name}, and 255 is ignored: for black-and-white masks set value_map = {pairs} "
            "and two classes at the top of your config"
        )


def _judge(facts: LabelFacts, coding: LabelCoding) -> None:
    name, number = facts.name, len(facts.files)
    share = coding.ignored(facts.histogram) / facts.histogram.sum()
    if share == 1:
        raise InputError(
            f"{name}: every pixel of {number} label maps looked at is unlabelled, such as "
            f"{facts.files[0].path}: correct reduce_zero_label, value_map or the files"
        )
    if share > 0.9:
        _warn(f"{name}: {share:.0%} of the pixels of {number} label maps are unlabelled")
    top = max((v for v in np.flatnonzero(facts.histogram) if v != 255), default=0)
    if coding.reduce_zero_label and not coding.value_map and top == coding.num_classes - 1:
        _warn(
            f"{name}: {number} label maps have values up to {top} but {coding.num_classes} "
            "classes reach that number plus one: if 0 is a class, set reduce_zero_label = False"
        )
    palettes = [file.path for file in facts.files if file.mode == "P"]
    if palettes:
        print_log(
            f"{name}: palette images such as {palettes[0]}: their indices are read, not colours",
            logger="current",
        )


def _warn(message: str) -> None:
    print_log(message, logger="current", level=logging.WARNING)
