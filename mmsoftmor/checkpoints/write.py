"""Writing tensors as a checkpoint file, complete or not at all."""

import io
import json

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
        InputError: If the ending is another.
    """
    check_ending(path)
    state = {name: value.detach().clone().contiguous() for name, value in state.items()}
    if path.endswith(".safetensors"):
        notes = {META_KEY: json.dumps(meta[META_KEY])} if META_KEY in meta else {}
        write_bytes(path, save(state, metadata={"format": "pt", **notes}))
    else:
        write_bytes(path, torch_bytes({"state_dict": state, "meta": meta}))


def check_ending(path: str) -> None:
    """Raise InputError unless a target's name ends as one of ``ENDINGS``."""
    if not path.endswith(ENDINGS):
        raise InputError(f"{path}: end the name with {' or '.join(ENDINGS)}")


def torch_bytes(content: object) -> bytes:
    """Return what ``torch.save`` writes."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()
