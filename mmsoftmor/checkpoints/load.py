"""Loading pretrained weights into a backbone, with a report of what matched."""

import logging
import os

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from mmsoftmor.checkpoints.depth import choose_layers, fit_routers
from mmsoftmor.checkpoints.facts import Facts, facts_of_model, facts_of_state
from mmsoftmor.checkpoints.pos_embed import SPECIAL_TOKENS, adapt_pos_embed, find_grid
from mmsoftmor.checkpoints.reader import Checkpoint, read_checkpoint
from mmsoftmor.checkpoints.report import LoadReport, grouped
from mmsoftmor.checkpoints.schemes import ALTERING, Trunk, find_trunk
from mmsoftmor.errors import InputError

# Tensors that no plain vision transformer has, or that belong to a task: new by design, not
# missing. ``ln2`` is the norm behind the average that ``out_type='avg_featmap'`` takes.
NEW_BY_DESIGN = ("routers.", "ln2.")
# Where a tensor that the model has no place for changes what is computed.
INSIDE = ("layers.", *ALTERING)
# Arch facts that must agree, in the order in which a mismatch is told.
ARCH = ("embed_dims", "num_layers", "num_heads", "feedforward_channels")


def load_pretrained(
    model: nn.Module,
    checkpoint: str | os.PathLike,
    prefix: str | None = None,
    allow_partial: bool = False,
    layers: str | None = None,
) -> LoadReport:
    """Load any plain vision transformer's or SR-ViT's checkpoint into a backbone; log a report.

    Args:
        model (nn.Module): The backbone, an :class:`~mmsoftmor.models.SRViT`.
        checkpoint (str | os.PathLike): File or address, see :func:`read_checkpoint`.
        prefix (str, optional): What the backbone's names have before them in the file, such as
            ``'backbone.'``, the last dot optional. Defaults to None: found in the file.
        allow_partial (bool): Whether a file that lacks trunk tensors, has tensors that the model
            has no place for, or recurses over other units may be loaded. Defaults to False.
        layers (str, optional): How a file with more layers than the model's is cut down:
            ``'first'``, ``'strided'`` or ``'averaged'``, see
            :func:`~mmsoftmor.checkpoints.depth.choose_layers`. Defaults to None: it is refused.

    Returns:
        LoadReport: What matched and what did not.

    Raises:
        InputError: If the file cannot be read or does not fit the model; the model is unchanged.
    """
    file = read_checkpoint(checkpoint)
    trunk = find_trunk(file, prefix)
    state, report = fit_trunk(file, trunk, model, allow_partial, layers)
    report.unused += [*trunk.head, *trunk.rest]
    model.load_state_dict(state, strict=False)
    log_report(report, report.notes)
    return report


def log_report(report: object, notes: list[str]) -> None:
    """Log a report, as a warning where the model computes something else than the file's."""
    level = logging.WARNING if notes else logging.INFO
    print_log(f"loaded {report}", logger="current", level=level)


def fit_trunk(
    file: Checkpoint,
    trunk: Trunk,
    model: nn.Module,
    allow_partial: bool = False,
    layers: str | None = None,
) -> tuple[dict[str, Tensor], LoadReport]:
    """Make a file's trunk fit a backbone, and report how; nothing is loaded.

    Args:
        file (Checkpoint): The file, for its path and meta.
        trunk (Trunk): What was found in it.
        model (nn.Module): The backbone.
        allow_partial (bool): See :func:`load_pretrained`. Defaults to False.
        layers (str, optional): See :func:`load_pretrained`. Defaults to None.

    Returns:
        tuple[dict[str, Tensor], LoadReport]: Tensors under the model's names and of its shapes,
        beside what it has no place for; and the report.

    Raises:
        InputError: If the file does not fit the model.
    """
    theirs, ours = facts_of_state(trunk.state, file.meta), facts_of_model(model)
    report = LoadReport(file.path, trunk.scheme.name, trunk.prefix, converted=trunk.converted)
    state = trunk.state
    try:
        if layers is not None and theirs.num_layers > ours.num_layers:
            state = _cut_layers(state, theirs, ours, layers, report)
        _check_arch(_mismatches(theirs, ours, layers, allow_partial))
        state = _fit_options(state, theirs, ours, report)
        before = _fit_recursion(state, theirs, ours, allow_partial, report)
        _note_start(theirs, model, report)
        state = _fit_table(before, theirs, model, report)
    except InputError as error:
        raise InputError(f"checkpoint {file.path}: {error}") from error
    _compare(file, before, state, model.state_dict(), report)
    _check_whole(before, report, allow_partial)
    return state, report


def _mismatches(theirs: Facts, ours: Facts, layers: str | None, partial: bool) -> list[str]:
    """Return ``name=theirs in the file, ours in the model`` for each arch fact that differs."""
    known = {name: (getattr(theirs, name), getattr(ours, name)) for name in ARCH}
    if layers is not None or (partial and theirs.num_layers < ours.num_layers):
        known.pop("num_layers")
    return [
        f"{name}={a} in the file, {b} in the model"
        for name, (a, b) in known.items()
        if a and a != b
    ]


def _check_arch(differing: list[str]) -> None:
    if not differing:
        return
    advice = "build the model with the file's arch"
    if differing[0].startswith("num_layers"):
        advice += ", or cut a deeper file down with init_cfg.layers='first', 'strided', 'averaged'"
    raise InputError(f"arch differs: {'; '.join(differing)}; {advice}")


def _cut_layers(state: dict, theirs: Facts, ours: Facts, rule: str, report: LoadReport) -> dict:
    if theirs.recursion_depth > 1:
        raise InputError(
            f"init_cfg.layers={rule!r} cuts plain transformers, the file recurses "
            f"{theirs.recursion_depth} times: give a file of recursion_depth=1"
        )
    unit = ours.recursion_unit
    state, origin = choose_layers(state, theirs.num_layers, ours.num_layers, unit, rule)
    report.converted = {**{k: v for k, v in report.converted.items() if k in state}, **origin}
    report.notes.append(
        f"num_layers={theirs.num_layers} in the file, {ours.num_layers} in the model: layers taken "
        f"by the rule {rule!r}"
    )
    return state


def _fit_options(state: dict, theirs: Facts, ours: Facts, report: LoadReport) -> dict:
    """Refuse options that differ; a bias that the file does not have is zero in the model.

    Zeros keep the function, whereas a layer scale's starting value would switch branches off.
    """
    if theirs.patch_size != ours.patch_size:
        raise InputError(
            f"patch_size={theirs.patch_size} in the file, {ours.patch_size} in the model: set "
            f"patch_size={theirs.patch_size}, or give a file of patch size {ours.patch_size}"
        )
    if theirs.layer_scale != ours.layer_scale:
        value = 1e-5 if theirs.layer_scale else 0
        raise InputError(
            f"the file has {'a' if theirs.layer_scale else 'no'} layer scale, the model has "
            f"{'one' if ours.layer_scale else 'none'}: set layer_scale_init_value={value}"
        )
    if theirs.qkv_bias and not ours.qkv_bias:
        raise InputError("the file has a qkv bias, the model has none: set qkv_bias=True")
    # Where some layers have the bias, another one's is lost, and reported as missing.
    no_bias = ours.qkv_bias and not theirs.qkv_bias
    endings = ("patch_embed.projection.weight", *[".attn.qkv.weight"] * no_bias)
    state = dict(state)
    for name in [name for name in state if name.endswith(endings)]:
        bias = name.replace(".weight", ".bias")
        if bias not in state:
            state[bias] = torch.zeros(len(state[name]))
            report.converted[bias] = "no bias in the file, zeros"
    return state


def _fit_recursion(
    state: dict, theirs: Facts, ours: Facts, partial: bool, report: LoadReport
) -> dict:
    """Carry a recursive file over to the model's depth, unit and mixing, or say why not."""
    if theirs.recursion_depth == 1:
        return state
    both = ours.recursion_depth > 1
    if both and theirs.mixing == "soft" and not partial and not any(map(_is_router, state)):
        raise InputError(
            f"its meta tells recursion_depth={theirs.recursion_depth} and mixing='soft', but it "
            "has no routers: give the whole file, or set allow_partial=True to take the layers"
        )
    if both and theirs.recursion_unit not in (None, ours.recursion_unit):
        what = (
            f"recursion_unit={theirs.recursion_unit} in the file, {ours.recursion_unit} in the "
            "model"
        )
        if not partial:
            raise InputError(
                f"{what}: set recursion_unit={theirs.recursion_unit}, or allow_partial=True to "
                "take the layers without the routers"
            )
        report.notes.append(f"{what}: the file's routers are left out")
        return {name: value for name, value in state.items() if not _is_router(name)}
    if both and theirs.mixing not in (None, ours.mixing):
        report.notes.append(
            f"mixing={theirs.mixing!r} in the file, {ours.mixing!r} in the model: outputs differ"
        )
    if both and theirs.mixing == ours.mixing == "soft" and any(map(_is_router, state)):
        state, changed, note = fit_routers(state, ours.recursion_depth)
        report.converted.update(changed)
        report.notes += [note] if note else []
    elif theirs.recursion_depth != ours.recursion_depth:
        report.notes.append(
            f"recursion_depth={theirs.recursion_depth} in the file, {ours.recursion_depth} in the "
            "model: outputs differ from the file's"
        )
    return state


def _note_start(theirs: Facts, model: nn.Module, report: LoadReport) -> None:
    """Say so where a plain file's function is not kept: only the first step computes it."""
    if theirs.recursion_depth > 1 or model.recursion_depth == 1:
        return
    start = f"mixing={model.mixing!r}"
    if model.mixing == "soft":
        if all(router.init == "first" for router in model.routers):
            return
        start = "router.init='uniform' ('first' keeps the function, nearly)"
    report.notes.append(
        f"recursion_depth=1 in the file, {model.recursion_depth} in the model, with {start}: "
        "outputs differ from the file's"
    )


def _is_router(name: str) -> bool:
    return name.startswith("routers.")


def _fit_table(state: dict, theirs: Facts, model: nn.Module, report: LoadReport) -> dict:
    """Fit the position table; special tokens that the model does not have go with their entries."""
    if "pos_embed" not in state:
        return state
    special = [name for name in SPECIAL_TOKENS if name in state]
    count, table, grid = sum(state[n].shape[1] for n in special), state["pos_embed"], model.grid
    found, _ = find_grid(table.shape[1], count, grid, theirs.grid)
    if found != grid:
        report.grids = "{}x{} in the file, {}x{} in the model".format(*found, *grid)
    table = adapt_pos_embed(table, count, grid, model.with_cls_token, theirs.grid)
    dropped = special[1:] if model.with_cls_token else special
    others = [name for name in dropped if name != "cls_token"]
    if others:
        report.notes.append(
            f"{' and '.join(others)} of the file dropped, SR-ViT has none: outputs differ from the "
            "file's"
        )
    return {n: value for n, value in state.items() if n not in dropped} | {"pos_embed": table}


def _compare(file: Checkpoint, before: dict, state: dict, own: dict, report: LoadReport) -> None:
    """Sort every tensor of the model, ``own``, and of the file before its table was fitted."""
    lost = "routers." if any(map(_is_router, state)) else ()  # a file that has some has them all
    for name, value in own.items():
        if name not in state:
            new = name.startswith(NEW_BY_DESIGN) and not name.startswith(lost)
            (report.new if new else report.missing).append(name)
            continue
        check_values(file.path, name, state[name])
        if state[name].shape != value.shape:
            raise InputError(
                f"checkpoint {file.path}: {name} has shape {tuple(state[name].shape)}, the model's "
                f"is {tuple(value.shape)}; build the model with the file's arch and options"
            )
        if name == "pos_embed" and report.grids:
            report.resized.append(name)
        elif name == "pos_embed" and not _same(state[name], before[name]):
            report.converted[name] = "entries of special tokens fitted, the grid's as they are"
        elif name not in report.converted:
            report.matched.append(name)
    report.unused = [name for name in before if name not in own]
    lacking = sum(own[name].numel() for name in report.missing)
    trunk = sum(v.numel() for name, v in own.items() if not name.startswith(NEW_BY_DESIGN))
    report.trunk_share = 1 - lacking / trunk


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a, b)


def check_values(path: str, name: str, value: Tensor) -> None:
    """Raise InputError for what would be copied into a model and be no weights there."""
    dense = value.layout is torch.strided and not value.is_meta
    if not dense or not value.is_floating_point() or value.element_size() == 1:
        raise InputError(
            f"checkpoint {path}: {name} is no plain tensor of floating-point numbers ({value.dtype}"
            f", {value.layout}, on {value.device}); give a file that is not quantised"
        )
    if not value.isfinite().all():
        raise InputError(
            f"checkpoint {path}: {name} has values that are infinite or not a number; give a file "
            "from before the training diverged, or download it again"
        )


def _check_whole(state: dict, report: LoadReport, partial: bool) -> None:
    """Refuse a file that leaves a part of the trunk at random, or has parts we do not compute."""
    if partial:
        return
    if report.missing:
        raise InputError(
            f"checkpoint {report.path} gives {report.percent} of the trunk's parameters; "
            f"missing: {grouped(report.missing)}; give the file that belongs to this backbone, or "
            "set init_cfg.allow_partial=True"
        )
    alien = [name for name in state if name in report.unused and name.startswith(INSIDE)]
    if alien:
        raise InputError(
            f"checkpoint {report.path} has parts that SR-ViT does not compute: {grouped(alien)}; "
            "give a plain vision transformer's file, or set init_cfg.allow_partial=True"
        )
