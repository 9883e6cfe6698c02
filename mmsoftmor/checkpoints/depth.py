"""Weights of one depth into another: fewer layers, fewer or more recursion steps.

Choosing layers follows the initialisations of Relaxed Recursive Transformers (arXiv 2410.20672).
"""

import math

import torch
from torch import Tensor

from mmsoftmor.errors import InputError

LAYER_RULES = ("first", "strided", "averaged")

# What recursion steps that a file does not have receive of the mixture, together: little enough to
# keep the function, enough for the router to learn from.
NEW_STEPS = 1e-4


def choose_layers(
    state: dict[str, Tensor], have: int, count: int, unit: int, rule: str
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Make fewer layers from a file's.

    Args:
        state (dict[str, Tensor]): The trunk under our names.
        have (int): Layers of the file.
        count (int): Layers of the model, fewer.
        unit (int): The model's ``recursion_unit``; ``averaged`` needs it.
        rule (str): ``'first'`` takes the first ``count`` layers; ``'strided'`` the layers
            ``i * have // count``, evenly spread; ``'averaged'`` the mean of the layers whose place
            a layer takes in the recursion: of ``have / count`` neighbours for a unit of one, of
            every ``count``-th for the whole stack looped.

    Returns:
        tuple[dict, dict]: The new trunk, and what each changed tensor was made from.

    Raises:
        InputError: If the rule is unknown, or layers are averaged whose number does not divide or
            whose tensors differ.
    """
    if rule not in LAYER_RULES:
        raise InputError(f"init_cfg.layers={rule!r} is unknown; use {', '.join(LAYER_RULES)}")
    if rule == "averaged" and have % count:
        raise InputError(
            f"init_cfg.layers='averaged' needs a multiple of the model's {count} layers, the file "
            f"has {have}: use 'strided'"
        )
    fewer = {name: value for name, value in state.items() if not name.startswith("layers.")}
    origin = {}
    for i in range(count):
        sources = _sources(i, have, count, unit, rule)
        for name in [name for name in state if name.startswith(f"layers.{sources[0]}.")]:
            inner = name.split(".", 2)[2]
            values = [state.get(f"layers.{j}.{inner}") for j in sources]
            if len({None if value is None else value.shape for value in values}) > 1:
                raise InputError(
                    f"init_cfg.layers={rule!r}: layers {sources} of the file do not all have "
                    f"{inner} in one shape; give a plain vision transformer's file"
                )
            target = f"layers.{i}.{inner}"
            fewer[target] = values[0] if len(values) == 1 else _mean(values)
            if sources != [i]:
                origin[target] = f"from {_listed(sources)}"
    return fewer, origin


def _sources(i: int, have: int, count: int, unit: int, rule: str) -> list[int]:
    """Return the file's layers that the model's layer ``i`` is made from."""
    if rule == "first":
        return [i]
    if rule == "strided":
        return [i * have // count]
    group, begin = have // count, i // unit * unit * (have // count)
    return [begin + i % unit + step * unit for step in range(group)]


def _mean(values: list[Tensor]) -> Tensor:
    return torch.stack([value.float() for value in values]).mean(0).to(values[0].dtype)


def _listed(layers: list[int]) -> str:
    return f"layer {layers[0]}" if len(layers) == 1 else f"the mean of layers {layers}"


def fit_routers(
    state: dict[str, Tensor], depth: int
) -> tuple[dict[str, Tensor], dict[str, str], str]:
    """Fit a file's routers to another recursion depth.

    Fewer steps: the last steps' rows are cut, so the mixture is renormalised over the steps left,
    as elastic depth does. More: each new step reads what the file's last step reads, lower by a
    constant, so that for every token all new steps together weigh at most ``NEW_STEPS`` of it.

    Args:
        state (dict[str, Tensor]): The trunk under our names, with routers.
        depth (int): The model's recursion depth, at least 2.

    Returns:
        tuple[dict, dict, str]: The new trunk, what was done to each changed tensor, and one
        sentence for the report (empty where nothing was to be done).
    """
    have = next(len(v) for name, v in state.items() if _is_last_linear(name))
    if have == depth:
        return state, {}, ""
    fitted, changed = dict(state), {}
    for name in filter(_is_last_linear, state):
        value = state[name]
        if depth < have:
            fitted[name] = value[:depth].clone()
            changed[name] = f"steps 1 to {depth} of {have}"
            continue
        new = value[-1:].repeat(depth - have, *[1] * (value.ndim - 1))
        if name.endswith("bias"):
            new += math.log(NEW_STEPS / (depth - have))
        fitted[name] = torch.cat([value, new])
        changed[name] = f"{have} steps and {depth - have} new ones"
    did = (
        "routers cut, the mixture renormalised over the steps left: outputs differ from the file's"
        if depth < have
        else f"each new step starts with next to no weight (at most {NEW_STEPS:g} in all)"
    )
    return fitted, changed, f"recursion_depth={have} in the file, {depth} in the model: {did}"


def _is_last_linear(name: str) -> bool:
    return name.startswith("routers.") and ".fc2." in name
