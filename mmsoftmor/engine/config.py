"""Read a config so that a three-line child is enough to change its data, classes or depth.

MMEngine executes a base file before its child, so a base's ``data_root`` is already written into
every dataset when the child sets another one. After reading, we therefore let the copies follow:
a nested value that still is what the inheritance chain had for it takes the final top-level value,
any other nested value was written on purpose and stays.
"""

from __future__ import annotations

import ast
import copy
import os.path as osp
from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config, ConfigDict

from mmsoftmor.apis.configs import SCOPE, register_config_scope, shipped_config
from mmsoftmor.errors import InputError

SPLITS = ("train", "val", "test")
LABEL_KEYS = ("reduce_zero_label", "value_map", "img_suffix", "seg_map_suffix")


def load_config(path: str, options: dict | None = None) -> Config:
    """Read a config file or a shipped config and let the shared settings reach every copy.

    The shared settings are the top-level ``data_root``, ``classes`` (tuple of names, or None for
    the dataset's own), ``palette``, ``reduce_zero_label``, ``value_map``, ``img_suffix``,
    ``seg_map_suffix``, ``recursion_depth``, and ``max_epochs`` or ``max_iters``, whose schedule is
    stretched in proportion.
    They reach the datasets' ``data_root``, ``metainfo`` and keys of the same name, the evaluators'
    ``ann_file``, the heads' ``num_classes`` (the RPN's stays) and the backbone's
    ``recursion_depth``. A value that a child or an option wrote there itself wins. With other
    classes, an inherited palette goes and an inherited top-k accuracy of more than all is left out.
    An option's list in the place of a tuple becomes a tuple.

    Args:
        path: A config file, or the name of a shipped config, with or without ``mmsoftmor::``.
        options: Dotted keys to override, as MMEngine's ``DictAction`` parses them.

    Returns:
        The complete config.

    Raises:
        InputError: No such config, a base or a custom import that cannot be had, a dict in the
            place of another value, or class names or a palette that cannot be meant.
    """
    path = _find(path)
    register_config_scope()
    config = _read(path)
    ancestors = [copy.deepcopy(config), *_bases(path)]
    if options:
        _override(config, options)
    _drop_stale_palette(config, ancestors, options or {})
    _check_classes(config)
    _follow_depth(config, ancestors)
    for key in ("max_epochs", "max_iters"):
        _follow_length(config, key, ancestors)
    _follow_classes(config, ancestors)
    _follow_class_number(config, ancestors)
    _follow_data_root(config, ancestors)
    for key in LABEL_KEYS:
        _follow_label_key(config, key, ancestors)
    return config


def leaf_datasets(dataloader: dict | None) -> Iterator[dict]:
    """The datasets of a dataloader config that read files, inside any nesting of wrappers."""
    pending = [dataloader["dataset"]] if dataloader and dataloader.get("dataset") else []
    while pending:
        dataset = pending.pop(0)
        inner = dataset.get("datasets") or [dataset.get("dataset")]
        if isinstance(inner[0], dict):
            pending[:0] = inner
        else:
            yield dataset


def evaluator_metrics(evaluator: dict | list | None) -> Iterator[dict]:
    """The metrics of an evaluator config in any of the three forms that MMEngine accepts."""
    if isinstance(evaluator, dict) and "metrics" in evaluator:
        evaluator = evaluator["metrics"]
    if isinstance(evaluator, dict):
        evaluator = [evaluator]
    yield from evaluator or ()


def model_parts(config: dict) -> Iterator[tuple[str, dict]]:
    """Yield ``(path, dict)`` of every part of the model, at any depth, parents first."""
    for root in ("model", "data_preprocessor"):
        yield from _walk(config.get(root), root)


def class_counters(config: dict) -> Iterator[tuple[str, dict]]:
    """Yield ``(path, dict)`` of every part of the model that states ``num_classes``.

    A region proposal network separates object from background whatever the classes: left out.
    """
    for path, part in model_parts(config):
        if "num_classes" in part and "rpn_head" not in path.split("."):
            yield path, part


def accuracies(config: dict, split: str) -> Iterator[dict]:
    """The metrics of a split that count a hit among the ``topk`` classes of highest score."""
    for metric in evaluator_metrics(config.get(f"{split}_evaluator")):
        kind = metric.get("type")
        if getattr(kind, "__name__", str(kind)).rpartition(".")[2] == "Accuracy":
            yield metric


def annotation_path(dataset: dict) -> str | None:
    """The annotation file of a dataset as the dataset itself will open it, or None."""
    ann_file = dataset.get("ann_file")
    return osp.join(dataset.get("data_root") or "", ann_file) if ann_file else None


def _find(path: str) -> str:
    return osp.abspath(path) if osp.isfile(path) else shipped_config(path.removeprefix(SCOPE))


def _read(path: str) -> Config:
    try:
        return Config.fromfile(path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: a base config is missing: {error}") from error
    except ImportError as error:
        raise InputError(f"{path}: an import failed: {_first_cause(error)}") from error
    except TypeError as error:  # MMEngine's own words name the key and the mend
        raise InputError(f"{path}: {error}") from error


def _override(config: Config, options: dict) -> None:
    """Merge options; the command line knows no tuples, which some transforms insist on."""
    options = {key: _keep_tuple(value, _at(config, key)) for key, value in options.items()}
    try:
        config.merge_from_dict(options)
    except (TypeError, KeyError, AttributeError) as error:  # a value's kind, a list's index
        raise InputError(f"option that does not fit the config: {error}") from error


def _keep_tuple(value, current):
    if isinstance(value, list) and isinstance(current, tuple):
        return tuple(value)
    if isinstance(value, dict) and isinstance(current, dict):
        return type(value)({k: _keep_tuple(v, current.get(k)) for k, v in value.items()})
    return value


def _at(node, dotted: str):
    """The value at a dotted key, whose parts may be indexes of lists, or None."""
    for part in dotted.split("."):
        if isinstance(node, (dict, Config)):
            node = node.get(part)
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return None
    return node


def _first_cause(error: BaseException) -> str:
    """The innermost error in one line: the outer ones only blame the search path."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _bases(path: str) -> list[Config]:
    """Every file of the inheritance chain above ``path``, each as it resolves by itself."""
    if Config._is_lazy_import(path):  # these share one variable by import: nothing to follow
        return []
    chain = []
    for base in Config._get_base_files(path):
        base_path, _ = Config._get_cfg_path(base, path)
        chain += [Config.fromfile(base_path, import_custom_modules=False), *_bases(base_path)]
    return chain


def _check_classes(config: Config) -> None:
    classes = config.get("classes")
    if isinstance(classes, str):
        raise InputError(f"classes = {classes!r} is one string: write a tuple, ({classes!r},)")
    if classes is not None and len(set(classes)) != len(classes):
        raise InputError(f"classes names a class twice: {tuple(classes)}")
    palette = config.get("palette")
    if palette is None:
        return
    if classes is None:
        raise InputError("palette is set but classes is not: add classes, one name per colour")
    if len(palette) != len(classes):
        raise InputError(f"palette has {len(palette)} colours but classes {len(classes)} names")
    wrong = [colour for colour in palette if not _is_colour(colour)]
    if wrong:
        raise InputError(f"palette: {wrong[0]!r} is no colour: write (red, green, blue), 0 to 255")


def _is_colour(value) -> bool:
    is_triple = isinstance(value, (list, tuple)) and len(value) == 3
    return is_triple and all(isinstance(part, int) and 0 <= part <= 255 for part in value)


def _follow_depth(config: Config, ancestors: list[Config]) -> None:
    depth, backbone = config.get("recursion_depth"), config.get("model", {}).get("backbone")
    if depth is None or backbone is None:
        return
    if backbone.get("recursion_depth") in _earlier("recursion_depth", depth, ancestors):
        backbone["recursion_depth"] = depth


def _follow_length(config: Config, key: str, ancestors: list[Config]) -> None:
    """Let another ``max_epochs``, set at the top or in ``train_cfg``, reach the whole schedule.

    The same for ``max_iters``. An inherited schedule is stretched in proportion; one that a child
    wrote itself stays.
    """
    before = next((c for c in ancestors if key in c and _length(c, key) == c[key]), None)
    if before is None or _length(config, key) is None:
        return
    old = before[key]
    new = config[key] if config[key] != old else _length(config, key)
    if new == old:
        return
    config[key] = config.train_cfg[key] = new
    schedulers = config.get("param_scheduler")
    if schedulers == before.get("param_scheduler"):
        listed = [schedulers] if isinstance(schedulers, dict) else schedulers or ()
        _stretch([s for s in listed if s.get("by_epoch", True) == (key == "max_epochs")], old, new)


def _length(config: Config, key: str) -> int | None:
    return (config.get("train_cfg") or {}).get(key)


def _stretch(schedulers: list[dict], old: int, new: int) -> None:
    """Stretch from ``old`` to ``new``; a warm-up stays as long, unless it would be all there is."""
    bounds = {s.get(key) for s in schedulers for key in ("begin", "end")} - {None, 0, old}
    moved = {at: max(1, at * new // old) for at in bounds if at >= new}
    for scheduler in schedulers:
        begin = scheduler.get("begin", 0)
        start = moved.get(begin, begin)
        if start >= new:  # a run of one epoch: what follows the warm-up is never reached
            continue
        if scheduler.get("T_max") == old - begin:
            scheduler["T_max"] = new - start
        if "begin" in scheduler:
            scheduler["begin"] = start
        if "end" in scheduler:
            end = scheduler["end"]
            scheduler["end"] = new if end == old else moved.get(end, end)
        if "milestones" in scheduler:
            scheduler["milestones"] = [round(at * new / old) for at in scheduler["milestones"]]


def _follow_classes(config: Config, ancestors: list[Config]) -> None:
    classes, palette = config.get("classes"), config.get("palette")
    if classes is None:
        return
    shared = dict(classes=classes) if palette is None else dict(classes=classes, palette=palette)
    earlier = [list(names) for names in _earlier("classes", classes, ancestors) if names]
    stale = [old for old in _earlier("palette", palette, ancestors) if old]
    for dataset in _all_datasets(config):
        metainfo = dataset.get("metainfo") or {}
        current = metainfo.get("classes")
        if current is None or list(current) in [*earlier, list(classes)]:
            if metainfo.get("palette") in stale:
                metainfo = {key: value for key, value in metainfo.items() if key != "palette"}
            dataset["metainfo"] = ConfigDict(metainfo, **shared)


def _follow_class_number(config: Config, ancestors: list[Config]) -> None:
    """Let heads count the classes, and accuracies not look among more than there are."""
    classes = config.get("classes")
    if classes is None:
        return
    others = [old for old in ancestors if old.get("classes") != classes]
    counts = {len(names) for names in _earlier("classes", classes, ancestors) if names}
    counts |= {node["num_classes"] for old in others for _, node in class_counters(old)}
    for _, node in class_counters(config):
        if node["num_classes"] in counts:
            node["num_classes"] = len(classes)
    for split in SPLITS[1:]:
        inherited = [metric.get("topk") for old in others for metric in accuracies(old, split)]
        for metric in accuracies(config, split):
            topk = metric.get("topk")
            if isinstance(topk, (list, tuple)) and topk in inherited:
                metric["topk"] = tuple(k for k in topk if k <= len(classes)) or (1,)


def _drop_stale_palette(config: Config, ancestors: list[Config], options: dict) -> None:
    """Forget the colours of other classes, unless they were written again for these."""
    palette, classes = config.get("palette"), config.get("classes")
    if palette is None or "palette" in options:
        return
    for old in ancestors:  # from the file itself upwards
        if "classes" in old and old["classes"] != classes:
            if old.get("palette") == palette:
                config["palette"] = None
            return
        if _assigns(old.filename, "palette"):
            return


def _assigns(path: str, name: str) -> bool:
    """Whether a Python config file itself gives a name a value."""
    if not path.endswith(".py"):
        return False
    names = ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in names
    )


def _follow_data_root(config: Config, ancestors: list[Config]) -> None:
    root = config.get("data_root")
    if root is not None:
        earlier = [osp.normpath(old) for old in _earlier("data_root", root, ancestors) if old]
        for dataset in _all_datasets(config):
            if dataset.get("data_root") and osp.normpath(dataset["data_root"]) in earlier:
                dataset["data_root"] = root
    for split in SPLITS[1:]:
        _follow_annotations(config, split, ancestors)


def _follow_annotations(config: Config, split: str, ancestors: list[Config]) -> None:
    """Where a metric read its dataset's annotation file in the chain, it reads it still."""
    expected = _annotation_files(config, split)
    agreed = set()
    for old in ancestors:
        agreed |= _metric_files(old, split) & _annotation_files(old, split)
    for metric in evaluator_metrics(config.get(f"{split}_evaluator")):
        ann_file = metric.get("ann_file")
        if ann_file and osp.normpath(ann_file) in agreed and len(expected) == 1:
            metric["ann_file"] = next(iter(expected))


def _follow_label_key(config: Config, key: str, ancestors: list[Config]) -> None:
    """Let a key on label files reach every dataset that declares it."""
    if key not in config:
        return
    earlier = _earlier(key, config[key], ancestors)
    for dataset in _all_datasets(config):
        if key in dataset and dataset[key] in earlier:
            dataset[key] = config[key]


def _annotation_files(config: Config, split: str) -> set[str]:
    paths = map(annotation_path, leaf_datasets(config.get(f"{split}_dataloader")))
    return {osp.normpath(path) for path in paths if path}


def _metric_files(config: Config, split: str) -> set[str]:
    metrics = evaluator_metrics(config.get(f"{split}_evaluator"))
    return {osp.normpath(metric["ann_file"]) for metric in metrics if metric.get("ann_file")}


def _all_datasets(config: Config) -> Iterator[dict]:
    for split in SPLITS:
        yield from leaf_datasets(config.get(f"{split}_dataloader"))


def _earlier(key: str, final, ancestors: list[Config]) -> list:
    """The values other than the final one that a top-level key had along the chain."""
    return [old[key] for old in ancestors if key in old and old[key] != final]


def _walk(node, path: str) -> Iterator[tuple[str, dict]]:
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from _walk(value, f"{path}.{key}")
    elif isinstance(node, (list, tuple)):
        for index, value in enumerate(node):
            yield from _walk(value, f"{path}.{index}")
