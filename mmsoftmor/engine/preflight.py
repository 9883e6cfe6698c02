"""Checks of a config and its data that run before hours are spent on either.

Every check raises :class:`~mmsoftmor.errors.InputError` with the key or file and its mend. They
read configs, annotation files, folders and some label maps: no model is built and no image decoded.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import os.path as osp
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module

from mmengine.config import Config

from mmsoftmor.engine.coco_check import check_coco
from mmsoftmor.engine.config import (
    accuracies,
    annotation_path,
    class_counters,
    evaluator_metrics,
    leaf_datasets,
    model_parts,
)
from mmsoftmor.engine.label_check import (
    check_labels,
    check_listing,
    describe_labels,
    read_labels,
)
from mmsoftmor.errors import InputError

_SPLITS = {"train": ("train", "val"), "test": ("test",)}
_PACKAGES = {
    "mmdet": "onedl-mmdetection (or mmdet)",
    "mmseg": "onedl-mmsegmentation (or mmsegmentation)",
    "mmpretrain": "onedl-mmpretrain (or mmpretrain)",
}
# Keys of the 1.x and 2.x configs. The runner ignores them without a word.
_LEGACY_KEYS = {
    "fp16": "--amp or optim_wrapper = dict(type='AmpOptimWrapper', ...)",
    "optimizer": "optim_wrapper = dict(optimizer=...)",
    "optimizer_config": "optim_wrapper = dict(clip_grad=..., accumulative_counts=...)",
    "paramwise_cfg": "optim_wrapper = dict(paramwise_cfg=...)",
    "lr_config": "param_scheduler",
    "momentum_config": "param_scheduler",
    "data": "train_dataloader, val_dataloader and test_dataloader",
    "evaluation": "val_evaluator, test_evaluator and train_cfg.val_interval",
    "runner": "train_cfg",
    "total_epochs": "train_cfg.max_epochs",
    "checkpoint_config": "default_hooks.checkpoint",
    "log_config": "default_hooks.logger and visualizer",
    "dist_params": "env_cfg.dist_cfg",
    "resume_from": "--resume PATH",
    "workflow": "train_cfg.val_interval",
}


def check(
    config: Config, mode: str = "train", report: Callable[[str], object] | None = None
) -> None:
    """Check a config and the data it names.

    Args:
        config: A complete config, as :func:`~mmsoftmor.engine.config.load_config` returns it.
        mode: ``train`` checks the training and validation parts, ``test`` the test part.
        report: Is given a table of each segmentation dataset's labels, before they are judged.

    Raises:
        InputError: The first mistake found, with its mend.
    """
    _check_legacy_keys(config)
    _check_library(config)
    _check_backbone(config)
    for split in _SPLITS[mode]:
        for name, dataset in _named_datasets(config, split):
            _check_files(dataset, name)
            _check_class_names(dataset, name)
            _check_class_counts(config, dataset, name)
            if _is_coco(dataset):
                check_coco(dataset, name, _classes(config, dataset), _has_masks(config))
            if _is_ade_layout(dataset):
                _check_label_maps(config, dataset, name, split, report)
        _check_evaluator(config, split)
        _check_topk(config, split)
    if config.get("default_scope") == "mmpretrain":
        _check_class_folders(config, _SPLITS[mode])


def _check_legacy_keys(config: Config) -> None:
    found = [key for key in _LEGACY_KEYS if key in config]
    if found:
        mends = "; ".join(f"{key} -> {_LEGACY_KEYS[key]}" for key in found)
        raise InputError(
            f"{config.filename}: keys of the 1.x/2.x configs have no effect, write: {mends}"
        )


def _check_library(config: Config) -> None:
    scope = config.get("default_scope")
    if scope in _PACKAGES and importlib.util.find_spec(scope) is None:
        raise InputError(
            f"default_scope = {scope!r} but {scope} is not installed: install {_PACKAGES[scope]}"
        )
    has_mmcv = importlib.util.find_spec("mmcv") is not None
    if scope == "mmdet" and not (has_mmcv and importlib.util.find_spec("mmcv._ext")):
        raise InputError(
            "detection needs mmcv's compiled ops, but this mmcv has none (mmcv._ext): reinstall "
            "onedl-mmcv (or mmcv) from source after torch, with MMCV_WITH_OPS=1 and "
            "--no-build-isolation"
        )


def _check_backbone(config: Config) -> None:
    """The options of the backbone are ones that it has; their values it checks itself."""
    backbone = config.get("model", {}).get("backbone") or {}
    if backbone.get("type") not in ("SRViT", "mmpretrain.SRViT"):
        return
    from mmsoftmor.models import SRViT

    known = [name for name in inspect.signature(SRViT.__init__).parameters if name != "self"]
    for key in backbone:
        if key != "type" and key not in known:
            close = get_close_matches(key, known, n=1) or known
            raise InputError(
                f"model.backbone.{key} is no option of SRViT: did you mean {', '.join(close)}?"
            )


def _named_datasets(config: Config, split: str) -> Iterator[tuple[str, dict]]:
    datasets = list(leaf_datasets(config.get(f"{split}_dataloader")))
    for index, dataset in enumerate(datasets):
        suffix = f" (number {index})" if len(datasets) > 1 else ""
        yield f"{split}_dataloader.dataset{suffix}", dataset


def _check_files(dataset: dict, name: str) -> None:
    """The data root, the annotation file and the image and label folders are there."""
    if dataset.get("backend_args"):  # the files lie in a store that only the dataset can ask
        return
    root = dataset.get("data_root") or ""
    if root and not osp.isdir(root):
        raise InputError(
            f"{name}.data_root = {root!r} is no folder: set data_root at the top of your config "
            "or --cfg-options data_root=PATH"
        )
    ann_file = annotation_path(dataset)
    if ann_file and not osp.isfile(ann_file):
        raise InputError(f"{name}.ann_file: {ann_file!r} does not exist: correct ann_file")
    prefix = dataset.get("data_prefix") or {}
    folders = prefix if isinstance(prefix, dict) else {"img_path": prefix}
    for key, folder in folders.items():
        path = osp.join(root, folder)
        if folder and not (osp.isdir(path) and any(os.scandir(path))):
            raise InputError(
                f"{name}.data_prefix.{key}: folder {path!r} does not exist or is empty: correct "
                "data_prefix or data_root"
            )


def _check_class_names(dataset: dict, name: str) -> None:
    classes = (dataset.get("metainfo") or {}).get("classes")
    if isinstance(classes, str) and not osp.isfile(classes):
        raise InputError(
            f"{name}.metainfo.classes = {classes!r} is one string: write a tuple, ({classes!r},)"
        )


def _check_class_counts(config: Config, dataset: dict, name: str) -> None:
    classes = _classes(config, dataset)
    for path, part in class_counters(config):
        if classes is None or part.get("class_agnostic") or part["num_classes"] == len(classes):
            continue
        raise InputError(
            f"{path}.num_classes = {part['num_classes']} but {name} has {len(classes)} classes: "
            f"set classes at the top of your config, or {path}.num_classes={len(classes)}"
        )


def _classes(config: Config, dataset: dict) -> list[str] | None:
    """The class names in force: the config's own, else those of the dataset's type."""
    classes = (dataset.get("metainfo") or {}).get("classes")
    if classes is None:
        classes = getattr(_dataset_type(config, dataset), "METAINFO", {}).get("classes")
    if isinstance(classes, str):  # a file with one name per line
        with open(classes, encoding="utf-8") as lines:
            classes = [line.strip() for line in lines if line.strip()]
    return None if classes is None else list(classes)


def _dataset_type(config: Config, dataset: dict) -> type | None:
    kind, scope = dataset["type"], config.get("default_scope", "mmengine")
    if not isinstance(kind, str):
        return kind
    registry = import_module(f"{scope}.registry").DATASETS
    found = registry.get(kind)
    if found is None:
        raise InputError(
            f"dataset type {kind!r} is not known to {scope}: correct it, or import it "
            "with custom_imports"
        )
    return found


def _is_coco(dataset: dict) -> bool:
    return "Coco" in str(dataset["type"]) and str(dataset.get("ann_file")).endswith(".json")


def _is_ade_layout(dataset: dict) -> bool:
    return dataset["type"] == "ADELayoutDataset" and not dataset.get("backend_args")


def _check_label_maps(
    config: Config,
    dataset: dict,
    name: str,
    split: str,
    report: Callable[[str], object] | None,
) -> None:
    has_labels = bool((dataset.get("data_prefix") or {}).get("seg_map_path"))
    if not has_labels:
        _check_compares_nothing(config, name, split)
    # Only the dataset itself knows its defaults and how images and labels belong together.
    built = _dataset_type(config, dataset)(**_without_reading(dataset))
    if len(built.metainfo["classes"]) < 2:
        raise InputError(
            f"{name}: {built.metainfo['classes']} is one class and nothing to tell it from: "
            "give the background a name and a label value as well"
        )
    samples = built.load_data_list()
    suffixes = (built.img_suffix, built.seg_map_suffix)
    check_listing(samples, built.data_prefix, suffixes, name, whole=not dataset.get("ann_file"))
    _check_output_names(config, samples, split)
    if not has_labels:
        return
    facts = read_labels(samples, name)
    if report:
        report(describe_labels(facts, built.coding, built.metainfo["classes"]))
    check_labels(facts, built.coding)


def _check_class_folders(config: Config, splits: tuple[str, ...]) -> None:
    from mmsoftmor.engine.folder_check import (
        check_folders,
        check_same_folders,
        finds_images_itself,
    )

    found = {}
    for name, dataset in (pair for split in splits for pair in _named_datasets(config, split)):
        kind = _dataset_type(config, dataset)
        if finds_images_itself(kind):
            built = kind(**_without_reading(dataset))
            found[name] = check_folders(built, name, _model_classes(config))
    found = {name: folders for name, folders in found.items() if folders}
    if found:
        check_same_folders(found)


def _check_output_names(config: Config, samples: list[dict], split: str) -> None:
    """mmseg writes the prediction of a/x.jpg and of b/x.jpg to one x.png."""
    metrics = evaluator_metrics(config.get(f"{split}_evaluator"))
    if split == "train" or not any(metric.get("output_dir") for metric in metrics):
        return
    stems = Counter(osp.splitext(osp.basename(sample["img_path"]))[0] for sample in samples)
    stem, number = stems.most_common(1)[0]
    if number > 1:
        raise InputError(
            f"{split}_evaluator.output_dir: predictions are named after their images, and {number} "
            f"images are called {stem!r}, the last would replace the others: rename them"
        )


def _without_reading(dataset: dict) -> dict:
    options = {key: value for key, value in dataset.items() if key != "type"}
    return dict(options, pipeline=[], lazy_init=True)


def _check_compares_nothing(config: Config, name: str, split: str) -> None:
    """Without labels there can be neither training nor figures."""
    metrics = list(evaluator_metrics(config.get(f"{split}_evaluator")))
    if split != "test" or not all(metric.get("format_only") for metric in metrics):
        raise InputError(
            f"{name}.data_prefix names no seg_map_path, so there is nothing to compare with: add "
            "it, or set test_evaluator=dict(type='IoUMetric', format_only=True, output_dir=...)"
        )


def _has_masks(config: Config) -> bool:
    return any("mask_head" in part for _, part in model_parts(config))


def _check_evaluator(config: Config, split: str) -> None:
    """A metric that reads an annotation file reads the file of its dataset."""
    datasets = list(leaf_datasets(config.get(f"{split}_dataloader")))
    if split == "train" or len(datasets) != 1:
        return
    expected = annotation_path(datasets[0])
    for metric in evaluator_metrics(config.get(f"{split}_evaluator")):
        ann_file = metric.get("ann_file")
        if ann_file and expected and osp.realpath(ann_file) != osp.realpath(expected):
            raise InputError(
                f"{split}_evaluator.ann_file = {ann_file!r} but {split}_dataloader reads "
                f"{expected!r}: let both name one file"
            )


def _check_topk(config: Config, split: str) -> None:
    """There are as many classes as the largest k, or the first validation stops."""
    number = _model_classes(config)
    if split == "train" or number is None:
        return
    for metric in accuracies(config, split):
        topk = metric.get("topk", 1)
        largest = topk if isinstance(topk, int) else max(topk)
        if largest > number:
            raise InputError(
                f"{split}_evaluator.topk = {topk} but the model tells {number} classes apart: "
                f"leave {largest} out"
            )


def _model_classes(config: Config) -> int | None:
    return min((part["num_classes"] for _, part in class_counters(config)), default=None)
