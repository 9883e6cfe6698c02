"""What the values of a label map file mean, and whether they fit the classes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mmengine import fileio
from PIL import Image, UnidentifiedImageError

from mmsoftmor.errors import InputError


@dataclass(frozen=True)
class LabelCoding:
    """How the values of label files become class indices.

    Attributes:
        num_classes (int): Number of classes n; indices are 0 to n - 1.
        reduce_zero_label (bool): Whether 0 in the files is "unlabelled" and class i is i + 1.
        ignore_index (int): What pixels without class have afterwards.
        value_map (Sequence[tuple[int, int]]): ``(value in the file, value to take it for)``,
            before ``reduce_zero_label``.

    Raises:
        InputError: ``value_map`` is no sequence of such pairs of 0 to 255, or there are more
            classes than 8 bits can tell apart.
    """

    num_classes: int
    reduce_zero_label: bool = False
    ignore_index: int = 255
    value_map: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        wrong = next((pair for pair in _listed(self.value_map) if not _is_pair(pair)), None)
        if wrong is not None:
            raise InputError(
                f"value_map = {self.value_map!r}: {wrong!r} is no pair (value in the label files, "
                "value to take it for), each 0 to 255: write ((0, 1), (255, 2)), say"
            )
        most = 254 if self.reduce_zero_label else 255
        if self.num_classes > most:
            raise InputError(
                f"{self.num_classes} classes do not fit label maps of 8 bits with 255 for "
                f"unlabelled (reduce_zero_label = {self.reduce_zero_label}): {most} at most"
            )

    @cached_property
    def table(self) -> np.ndarray:
        """Class index of each of the 256 file values, uint8; out of range where none is meant."""
        values = np.arange(256)
        for old, new in self.value_map:
            values[old] = new
        if self.reduce_zero_label:
            values = np.where((values == 0) | (values == 255), 256, values) - 1
        return values.astype(np.uint8)

    def encode(self, raw: np.ndarray, path: str) -> np.ndarray:
        """Turn a raw label map (H, W) into class indices (H, W) uint8.

        Raises:
            InputError: A value stands for no class; names the file and the value.
        """
        self.check(np.bincount(raw.ravel(), minlength=256), path)
        return self.table[raw]

    def check(self, histogram: np.ndarray, path: str) -> None:
        """Raise InputError if a value that occurs (counts by value) stands for no class."""
        present = np.flatnonzero(histogram)
        wrong = [v for v in present if v > 255 or not self._is_class_or_ignored(self.table[v])]
        if wrong:
            raise InputError(f"{path}: label value {wrong[-1]}{self._mend(wrong)}")

    def ignored(self, histogram: np.ndarray) -> int:
        """Number of pixels without class among counts by value (256,)."""
        return int(histogram[:256][self.table == self.ignore_index].sum())

    def _is_class_or_ignored(self, index: int) -> bool:
        return index < self.num_classes or index == self.ignore_index

    def _mend(self, wrong: list[int]) -> str:
        n = self.num_classes
        if wrong[-1] > 255:
            return " does not fit 8 bits: write class numbers and 255 for unlabelled"
        if self.reduce_zero_label:
            valid = f"1 to {n}, 0 and 255 are unlabelled (reduce_zero_label = True)"
            hint = "" if self.value_map else ", or name what the value means in value_map"
        else:
            valid = f"0 to {n - 1}, 255 is unlabelled (reduce_zero_label = False)"
            hint = (
                ", or set reduce_zero_label = True if 0 means unlabelled"
                if wrong == [n]
                else ", or name what the value means in value_map"
            )
        return f", but {n} classes have the values {valid}: correct classes or the file{hint}"


def _listed(value_map) -> list:
    return list(value_map) if isinstance(value_map, (list, tuple)) else [value_map]


def _is_pair(value) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(isinstance(v, int) and 0 <= v <= 255 for v in value)


def read_label_map(path: str, backend_args: dict | None = None) -> tuple[np.ndarray, str]:
    """Read a label map file.

    Args:
        path (str): An image file of one channel. A palette file gives its indices.
        backend_args (dict, optional): Of MMEngine's file backends. Defaults to None: the path's.

    Returns:
        tuple[np.ndarray, str]: The values (H, W), uint8 or wider, and PIL's name of the mode.

    Raises:
        InputError: The file is missing, no image, has colours instead of numbers, or was packed
            by JPEG, which changes them.
    """
    try:
        content = fileio.get(path, backend_args=backend_args)
        with Image.open(io.BytesIO(content)) as image:
            bands, mode, form = image.getbands(), image.mode, image.format
            values = np.array(image)
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: is no image file: replace it") from error
    except OSError as error:
        raise InputError(f"{path}: label map cannot be read ({error}): restore it") from error
    if form == "JPEG":
        raise InputError(f"{path}: JPEG changes the values of a label map: write it as PNG, anew")
    if len(bands) > 1:
        raise InputError(
            f"{path}: has {len(bands)} channels ({mode}), but a label map has one, with a class "
            "number in each pixel: replace colours by numbers"
        )
    if values.dtype.kind == "f":
        raise InputError(f"{path}: holds fractions (mode {mode}): write whole numbers, 0 to 255")
    if values.dtype.kind == "i" and not 0 <= values.min() <= values.max() < 65536:
        raise InputError(f"{path}: label values {values.min()} to {values.max()}: write 0 to 255")
    return values.astype(np.uint8) if values.dtype == bool else values, mode
