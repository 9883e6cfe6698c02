"""Semantic segmentation in ADE20K's layout; importing this registers it with mmseg."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
from mmseg.datasets import ADE20KDataset
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS

from mmsoftmor.datasets.labels import LabelCoding, read_label_map
from mmsoftmor.errors import InputError


@DATASETS.register_module()
class ADELayoutDataset(ADE20KDataset):
    """ADE20K, or any data in its layout with classes of their own.

    The i-th name of ``metainfo['classes']`` is value i + 1 of the label files (i, with
    ``reduce_zero_label=False``). mmseg's dataset takes the names for a selection from ADE20K's 150
    instead and refuses others.

    Args:
        value_map (Sequence[tuple[int, int]], optional): Pairs (value in the label files, value to
            take it for), before ``reduce_zero_label``. Defaults to None.
        **kwargs: Those of mmseg's ``ADE20KDataset``. Without a ``palette``, own classes get fixed
            random colours.
    """

    def __init__(self, value_map: Sequence[tuple[int, int]] | None = None, **kwargs) -> None:
        self.value_map = value_map or ()
        super().__init__(**kwargs)

    @classmethod
    def get_label_map(cls, new_classes: Sequence[str] | None = None) -> None:
        """Return None: the order of the names says it all."""

    @classmethod
    def _load_metainfo(cls, metainfo: dict | None = None) -> dict:
        metainfo = dict(metainfo or {})
        classes = metainfo.get("classes")
        if classes is not None and tuple(classes) != cls.METAINFO["classes"]:
            metainfo.setdefault("palette", [])
        return super()._load_metainfo(metainfo)

    @property
    def coding(self) -> LabelCoding:
        """How the label files are to be read."""
        return LabelCoding(
            num_classes=len(self._metainfo["classes"]),
            reduce_zero_label=self.reduce_zero_label,
            ignore_index=self.ignore_index,
            value_map=self.value_map,
        )

    def load_data_list(self) -> list[dict]:
        """List the samples: mmseg's keys, and ``label_coding``."""
        coding = self.coding
        return [dict(sample, label_coding=coding) for sample in super().load_data_list()]

    def prepare_data(self, idx: int) -> dict:
        """Run the pipeline on a sample.

        Raises:
            InputError: OpenCV refuses the image, such as one of 1 x 5000 pixels of which nothing
                is left after resizing; names the file.
        """
        try:
            return super().prepare_data(idx)
        except cv2.error as error:
            path = self.get_data_info(idx)["img_path"]
            reason = " ".join(str(error).split())
            raise InputError(f"{path}: image cannot be used, remove it ({reason})") from error


@TRANSFORMS.register_module()
class LoadCheckedLabels(LoadAnnotations):
    """``LoadAnnotations`` that stops at a label map which does not fit its image or the classes.

    A wrong label would otherwise end the run in a device-side assertion that names no file, and a
    value beyond 255 would be cut to another class. ``reduce_zero_label`` is the dataset's, applied
    once, here. A sample of a dataset without labels passes as it is.

    Args:
        backend_args (dict, optional): Of MMEngine's file backends. Defaults to None.
    """

    def __init__(self, backend_args: dict | None = None) -> None:
        super().__init__(backend_args=backend_args)

    def _load_seg_map(self, results: dict) -> None:
        path = results.get("seg_map_path")
        if path is None:
            return
        raw, _ = read_label_map(path, self.backend_args)
        if raw.shape != tuple(results["ori_shape"]):
            raise InputError(
                f"{path}: label map is {raw.shape[0]} x {raw.shape[1]} but its image "
                f"{results['img_path']!r} is {results['ori_shape'][0]} x {results['ori_shape'][1]} "
                "(height x width): replace one of them"
            )
        results["gt_seg_map"] = results["label_coding"].encode(raw, path)
        results["seg_fields"].append("gt_seg_map")
