"""Writing a backbone alone, small enough to hand around."""

import os

import torch
from safetensors.torch import save_file

from mmsoftmor.checkpoints.reader import read_checkpoint
from mmsoftmor.checkpoints.schemes import OURS
from mmsoftmor.errors import InputError


def export_backbone(checkpoint: str | os.PathLike, path: str, half: bool = False) -> int:
    """Write the backbone of a training checkpoint as a ``.safetensors`` file, atomically.

    Args:
        checkpoint (str | os.PathLike): File of a whole model, see :func:`read_checkpoint`.
        path (str): Target; ends with ``.safetensors``.
        half (bool): Whether to store float16 in place of float32. Defaults to False.

    Returns:
        int: Size of the file in bytes.

    Raises:
        InputError: If the file cannot be read, holds no backbone in mmpretrain's naming, or the
            target's name has another ending.
    """
    if not path.endswith(".safetensors"):
        raise InputError(f"{path}: end the name with .safetensors")
    file = read_checkpoint(checkpoint)
    prefix = next(
        (name[: -len(OURS.anchor)] for name in file.state if name.endswith(OURS.anchor)), None
    )
    if prefix is None:
        raise InputError(
            f"checkpoint {file.path} has no {OURS.anchor}: it holds no vision transformer"
        )
    state = {
        name[len(prefix) :]: value.to(torch.float16 if half else value.dtype).contiguous()
        for name, value in file.state.items()
        if name.startswith(prefix)
    }
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    save_file(state, f"{path}.part", metadata={"format": "pt"})
    os.replace(f"{path}.part", path)
    return os.path.getsize(path)
