"""Does a COCO annotation file fit the config, and can every object in it be used?"""

from __future__ import annotations

import json
import logging
import os.path as osp
from collections import Counter
from collections.abc import Iterable

from mmengine.logging import print_log

from mmsoftmor.engine.config import annotation_path
from mmsoftmor.errors import InputError

_SHOWN = 5  # names listed in a message, images looked for on disk
# What mmdet's CocoDataset reads of each entry without a default.
_IMAGE_FIELDS = ("id", "file_name", "height", "width")
_OBJECT_FIELDS = ("id", "image_id", "category_id", "bbox", "area")


def check_coco(dataset: dict, name: str, classes: list[str] | None, masks: bool) -> None:
    """Check the annotation file of one COCO dataset config.

    Reads the file in full: about 15 s for COCO's own training set.

    Args:
        dataset: Dataset config with ``ann_file`` and, optionally, ``data_root``, ``data_prefix``.
        name: Where the dataset stands in the config, for the messages.
        classes: Class names in force, or None where they are not known.
        masks: Whether the model learns masks, so that each object needs one.

    Raises:
        InputError: Unreadable file, no images, an id twice, no category in common with the
            classes or categories in another order, an object without a usable mask, or images
            that are not in their folder.
    """
    path = annotation_path(dataset)
    content = _read(path)
    images, objects = content["images"], content.get("annotations", [])
    _check_entries(images, "image", _IMAGE_FIELDS, path)
    _check_entries(objects, "annotation", _OBJECT_FIELDS, path)
    _check_entries(content["categories"], "category", ("id", "name"), path)
    wanted = _check_categories(content, classes, name, path)
    objects = [item for item in objects if item["category_id"] in wanted]
    if not objects and "annotations" in content:
        raise InputError(f"{path}: has no annotation of the classes of {name}: nothing to learn")
    if masks:
        _check_masks(objects, path)
    _check_images(images, dataset, name)


def _read(path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}): download it again") from error
    for key in ("images", "categories"):
        if not isinstance(content, dict) or not content.get(key):
            raise InputError(f"{path}: has no {key!r}: this is not a COCO annotation file")
    return content


def _check_entries(items: list[dict], what: str, fields: tuple[str, ...], path: str) -> None:
    for index, item in enumerate(items):
        lacking = [field for field in fields if field not in item]
        if lacking:
            raise InputError(f"{path}: {what} number {index} has no {lacking[0]!r}: add it")
    counts = Counter(item["id"] for item in items)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        raise InputError(
            f"{path}: {what} id {twice[0]} occurs {counts[twice[0]]} times ({len(twice)} such "
            f"ids): give every {what} its own id"
        )


def _check_categories(content: dict, classes: list[str] | None, name: str, path: str) -> set[int]:
    """Compare names; return the ids of the categories that the config uses."""
    present = {category["name"]: category["id"] for category in content["categories"]}
    if classes is None:
        return set(present.values())
    common = [name for name in classes if name in present]
    if not common:
        raise InputError(
            f"{path}: none of its categories ({_some(present)}) is a class of {name} "
            f"({_some(classes)}): set classes at the top of your config to the file's names"
        )
    missing = [name for name in classes if name not in present]
    if missing:
        print_log(
            f"{path}: has no category for {len(missing)} of {len(classes)} classes: "
            f"{_some(missing)}",
            logger="current",
            level=logging.WARNING,
        )
    _check_order([name for name in present if name in common], classes, name, path)
    return {present[name] for name in common}


def _check_order(present: list[str], classes: list[str], name: str, path: str) -> None:
    """mmdet numbers labels in the file's order: another order, or a gap, exchanges classes."""
    for index, category in enumerate(present):
        if classes[index] != category:
            raise InputError(
                f"{path}: mmdet would take its category {category!r} for class {index} of {name}, "
                f"{classes[index]!r}, since labels follow the file's order: write classes in that "
                f"order ({_some(present)}), without names that the file does not have"
            )


def _check_masks(objects: list[dict], path: str) -> None:
    bad = [item for item in objects if _is_trained(item) and not _has_mask(item)]
    if bad:
        raise InputError(
            f"{path}: annotation {bad[0]['id']} of image {bad[0]['image_id']} has no usable "
            f"segmentation ({len(bad)} such annotations): give it a polygon of three points or "
            "more or an RLE, remove it, or use a config without a mask head"
        )


def _is_trained(item: dict) -> bool:
    """Objects that the dataset drops for their box never need a mask."""
    _, _, width, height = item["bbox"]
    return not item.get("ignore") and item["area"] > 0 and width >= 1 and height >= 1


def _has_mask(item: dict) -> bool:
    shape = item.get("segmentation")
    if isinstance(shape, dict):
        return isinstance(shape.get("counts"), (list, str)) and bool(shape.get("size"))
    return any(len(ring) >= 6 and len(ring) % 2 == 0 for ring in shape or ())


def _check_images(images: list[dict], dataset: dict, name: str) -> None:
    """Look for a few of the images: a wrong prefix misses them all."""
    if dataset.get("backend_args"):
        return
    prefix = (dataset.get("data_prefix") or {}).get("img", "")
    folder = osp.join(dataset.get("data_root") or "", prefix)
    for image in images[:: max(1, len(images) // _SHOWN)]:
        if not osp.isfile(osp.join(folder, image["file_name"])):
            raise InputError(
                f"{name}.data_prefix.img: {osp.join(folder, image['file_name'])!r}, named in "
                f"{dataset['ann_file']!r}, does not exist: correct data_prefix or data_root"
            )


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
