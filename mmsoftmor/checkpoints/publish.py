"""Making a training checkpoint fit to hand out: weights and notes alone, the hash in its name."""

import hashlib
import os
import os.path as osp
from collections.abc import Mapping

from torch import Tensor

from mmsoftmor.checkpoints.reader import read_content, require_local, unwrap
from mmsoftmor.checkpoints.write import encode, write_file
from mmsoftmor.errors import InputError

WEIGHTS = ("averaged", "raw")


def publish(
    checkpoint: str | os.PathLike, out: str | None = None, weights: str = WEIGHTS[0]
) -> str:
    """Write a checkpoint without optimiser, schedule, log buffers and second set of weights.

    Where a run kept a moving average (MMEngine's ``EMAHook``), its checkpoints have the average
    under ``state_dict``, with which it was evaluated, and the trained weights under
    ``ema_state_dict``.

    Args:
        checkpoint (str | os.PathLike): A local torch or safetensors file.
        out (str, optional): Target without hash, such as ``weights/srvit_s.pth``; safetensors where
            it ends so. Defaults to None: the checkpoint's own name.
        weights (str): ``'averaged'`` takes ``state_dict`` as it stands, ``'raw'`` the trained
            weights of a run that kept an average. Defaults to ``'averaged'``.

    Returns:
        str: The file that was written: the target with the first eight digits of its SHA-256
        before the ending, which ``torch.hub`` verifies. The meta dict is kept whole; of it,
        safetensors hold SR-ViT's facts.

    Raises:
        InputError: If the file cannot be read, has no raw weights beside an average, or the target
            cannot be written.
    """
    path = os.fspath(checkpoint)
    require_local(path)
    content = read_content(path)
    file = unwrap(path, content)
    state = file.state
    if weights == "raw":
        state = {**state, **_raw(path, content)}
    elif weights not in WEIGHTS:
        raise InputError(f"--weights {weights}: use {' or '.join(WEIGHTS)}")
    written = encode(out or path, state, file.meta)
    stem, ending = osp.splitext(out or path)
    target = f"{stem}-{hashlib.sha256(written).hexdigest()[:8]}{ending or '.pth'}"
    write_file(target, written)
    return target


def _raw(path: str, content: Mapping) -> dict[str, Tensor]:
    kept = content.get("ema_state_dict")
    if not isinstance(kept, Mapping):
        raise InputError(
            f"checkpoint {path} has no ema_state_dict: its run kept no average, so its weights are "
            "the raw ones; leave --weights out"
        )
    before = "module."
    return {n.removeprefix(before): v for n, v in kept.items() if n.startswith(before)}
