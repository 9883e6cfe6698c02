"""Writing tensors as a checkpoint file, complete or not at all."""

import io
import json
import os

import torch
from safetensors.torch import save
from torch import Tensor

from mmsoftmor.checkpoints.facts import META_KEY
from mmsoftmor.engine.atomic import write_bytes
from mmsoftmor.errors import InputError

ENDINGS = (".pth", ".safetensors")


def write_state(path: str, state: dict[str, Tensor], meta: dict) -> None:
    """Write tensors and notes, in the form that the file's ending names.

    Args:
        path (str): Target; ends with ``.pth`` or ``.safetensors``.
        state (dict[str, Tensor]): The tensors by name.
        meta (dict): Notes. A ``.pth`` file keeps all under ``meta``; the header of a safetensors
            file holds texts alone, so it keeps SR-ViT's facts, as JSON.

    Raises:
        InputError: If the ending is another, or nothing can be written there.
    """
    check_ending(path)
    write_file(path, encode(path, state, meta))


def encode(path: str, state: dict[str, Tensor], meta: dict) -> bytes:
    """Return the content of the file that :func:`write_state` writes."""
    # Copies, for a tensor that is a part of another would bring the whole other with it.
    state = {name: value.detach().clone().contiguous() for name, value in state.items()}
    if path.endswith(".safetensors"):
        notes = {META_KEY: json.dumps(meta[META_KEY])} if META_KEY in meta else {}
        return save(state, metadata={"format": "pt", **notes})
    buffer = io.BytesIO()
    torch.save({"state_dict": state, "meta": meta}, buffer)
    return buffer.getvalue()


def write_file(path: str, content: bytes) -> None:
    """Write a file atomically; InputError where that cannot be."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder: name a file in it")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): name another place"
        ) from error


def check_ending(path: str) -> None:
    """Raise InputError unless a target's name ends as one of ``ENDINGS``."""
    if not path.endswith(ENDINGS):
        raise InputError(f"{path}: end the name with {' or '.join(ENDINGS)}")
