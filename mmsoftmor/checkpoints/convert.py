"""Converting a file of any supported naming scheme to ours, or to timm's."""

import os

import torch
from torch import Tensor

from mmsoftmor.checkpoints.facts import META_KEY, facts_of_state
from mmsoftmor.checkpoints.reader import read_checkpoint
from mmsoftmor.checkpoints.schemes import HEAD, OURS, TIMM, Trunk, find_alien, find_trunk
from mmsoftmor.checkpoints.write import check_ending, write_state
from mmsoftmor.errors import InputError

TARGETS = {scheme.name: scheme for scheme in (OURS, TIMM)}


def convert(
    checkpoint: str | os.PathLike,
    out: str,
    names: str = OURS.name,
    backbone_only: bool = False,
    half: bool = False,
    prefix: str | None = None,
) -> list[str]:
    """Write a file's vision transformer under other names, every value to the last bit.

    In our names a classifier's file has ``backbone.*`` and its head ``head.layers.head.*``, as
    mmpretrain's; without a head the names stand alone. In timm's, the head is ``head.*``.

    Args:
        checkpoint (str | os.PathLike): File or address, see
            :func:`~mmsoftmor.checkpoints.reader.read_checkpoint`.
        out (str): Target, ``.pth`` or ``.safetensors``, written atomically.
        names (str): ``'mmpretrain'``, which are ours, or ``'timm'``. Defaults to ``'mmpretrain'``.
        backbone_only (bool): Whether to leave a classification head out. Defaults to False.
        half (bool): Whether to store float16. Defaults to False.
        prefix (str, optional): As of :func:`~mmsoftmor.checkpoints.load.load_pretrained`.

    Returns:
        list[str]: Names in the file of what was left out: necks, other heads, decoders.

    Raises:
        InputError: If the file holds no plain vision transformer or SR-ViT, if the target is timm's
            names and the file recurses, or if the target's name has another ending, is the file's
            own or cannot be written.
    """
    check_ending(out)
    if names not in TARGETS:
        raise InputError(f"--to {names}: use {' or '.join(TARGETS)}")
    file = read_checkpoint(checkpoint)
    if os.path.exists(out) and os.path.samefile(out, file.path):
        raise InputError(f"{out} is the file to be converted: give the new one another name")
    trunk = find_trunk(file, prefix)
    left_out = list(trunk.rest)
    if backbone_only:
        left_out, trunk.head = [*trunk.head, *left_out], {}
    facts = facts_of_state(trunk.state, file.meta)
    if names == TIMM.name and facts.recursion_depth > 1:
        raise InputError(
            f"checkpoint {file.path} recurses {facts.recursion_depth} times, timm's vision "
            "transformers do not: only recursion_depth=1 can be converted to timm's names"
        )
    state = _renamed(file.path, trunk, names)
    if half:
        state = {name: value.to(torch.float16) for name, value in state.items()}
    meta = file.meta if out.endswith(".pth") else {}
    write_state(out, state, {**meta, META_KEY: facts.to_meta()})
    return left_out


def _renamed(path: str, trunk: Trunk, names: str) -> dict[str, Tensor]:
    alien = find_alien(trunk)
    if alien:
        raise InputError(
            f"checkpoint {path} has parts that SR-ViT does not compute: {', '.join(alien[:3])}; "
            "give a plain vision transformer's file"
        )
    if names == TIMM.name:
        head = {name.replace(HEAD, TIMM.head): value for name, value in trunk.head.items()}
        return {TIMM.restore(name): value for name, value in trunk.state.items()} | head
    before = "backbone." if trunk.head else ""
    return {before + name: value for name, value in trunk.state.items()} | trunk.head
