"""Reading a checkpoint file into plain tensors, without running code that the file may carry."""

import hashlib
import json
import os
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.dist import barrier, get_rank
from mmengine.logging import HistoryBuffer
from torch import Tensor

from mmsoftmor.errors import InputError

# Files that come with the package are named SHIPPED + their file name.
SHIPPED = "mmsoftmor://"
# Where a file may have its tensors, in the order in which they are looked for: what a training is
# resumed with, then a teacher before its student, then averages beside which there is nothing else.
WRAPPERS = (
    *("state_dict", "model", "model_state", "model_state_dict", "module", "net", "teacher"),
    *("ema", "model_ema", "state_dict_ema", "ema_state_dict", "student", "backbone"),
)
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # in a folder of Hugging Face's
HOW_TO_NAME_A_FILE = (
    "name a local file with --cfg-options model.backbone.init_cfg.checkpoint=FILE, or None to "
    "start from nothing"
)


@dataclass
class Checkpoint:
    """What a file holds.

    Attributes:
        path (str): Where it was read from.
        state (dict[str, Tensor]): The tensors by name.
        meta (dict): The file's own notes; empty where it has none.
        key (str): Where in the file the tensors are, such as ``'state_dict'``; empty at its top.
    """

    path: str
    state: dict[str, Tensor]
    meta: dict = field(default_factory=dict)
    key: str = ""


def read_checkpoint(checkpoint: str | os.PathLike) -> Checkpoint:
    """Read a checkpoint from a local file or an address.

    Safetensors and torch files are told apart by content. Of a torch file only tensors, plain
    containers and the few mmengine and numpy objects that OpenMMLab training checkpoints carry are
    allowed.

    Args:
        checkpoint (str | os.PathLike): Path, an ``http(s)://`` address, which is downloaded once
            into torch's hub folder, or ``mmsoftmor://NAME`` for a file that comes with the package.

    Returns:
        Checkpoint: The tensors (on the CPU) and the meta dict.

    Raises:
        InputError: If the file is missing, cannot be downloaded, is no checkpoint or would run
            code.
    """
    path = _locate(os.fspath(checkpoint))
    if _is_safetensors(path):
        return _read_safetensors(path)
    return unwrap(path, read_torch(path))


def read_content(checkpoint: str | os.PathLike, map_location: object = "cpu") -> object:
    """Read all that a file holds, such as a training's state, as :func:`read_checkpoint` does.

    Args:
        checkpoint (str | os.PathLike): As of :func:`read_checkpoint`.
        map_location (object): As of ``torch.load``; safetensors are read to the CPU. Defaults to
            ``'cpu'``.

    Returns:
        object: What a torch file holds; of safetensors, their ``state_dict`` and ``meta``.

    Raises:
        InputError: As of :func:`read_checkpoint`.
    """
    path = _locate(os.fspath(checkpoint))
    if _is_safetensors(path):
        file = _read_safetensors(path)
        return {"state_dict": file.state, "meta": file.meta}
    return read_torch(path, map_location)


def require_local(path: str) -> None:
    """Raise InputError unless the path is a file that may be read."""
    if not os.path.isfile(path):
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        inside = [name for name in HUB_FILES if os.path.isfile(os.path.join(path, name))]
        mend = f"name the file in it, {inside[0]}" if inside else HOW_TO_NAME_A_FILE
        raise InputError(f"checkpoint {path} {what}: {mend}")
    if not os.access(path, os.R_OK):
        raise InputError(f"checkpoint {path} may not be read by you: ask its owner for the right")


def unwrap(path: str, content: object) -> Checkpoint:
    """Find the tensors and the meta dict in what a torch file holds.

    Args:
        path (str): Where it was read from, for messages.
        content (object): What was read.

    Returns:
        Checkpoint: The tensors of the first of ``WRAPPERS`` that is there, else the content's own.

    Raises:
        InputError: If there are none.
    """
    state, key = _find_state(content)
    if not state:
        raise InputError(f"checkpoint {path} holds no tensors under any known key")
    meta = content.get("meta")
    return Checkpoint(path, state, dict(meta) if isinstance(meta, Mapping) else {}, key)


def _locate(checkpoint: str) -> str:
    if checkpoint.startswith(SHIPPED):
        path = str(Path(__file__).parent / "weights" / checkpoint.removeprefix(SHIPPED))
    elif checkpoint.startswith(("http://", "https://")):
        path = _download(checkpoint)
    else:
        path = os.path.expanduser(checkpoint)
    require_local(path)
    return path


def _download(address: str) -> str:
    """Download once; the name's own hash, as publishers append it, is verified.

    Without one the address is made a part of the name: every model of a hub has a file
    ``model.safetensors``.
    """
    name = os.path.basename(urlsplit(address).path)
    stated = re.search(r"-([0-9a-f]{8,})\.\w+$", name)
    if not stated:
        name = f"{hashlib.sha256(address.encode()).hexdigest()[:8]}-{name}"
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    # One process of each machine downloads: the machines may share no disk.
    if not path.exists() and int(os.environ.get("LOCAL_RANK", get_rank())) == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(address, str(path), stated and stated[1])
        except (OSError, RuntimeError) as error:  # no connection; another hash
            reason = str(error).splitlines()[0]
            raise InputError(
                f"checkpoint {address} cannot be downloaded ({reason}): {HOW_TO_NAME_A_FILE}"
            ) from error
    barrier()
    return str(path)


def _is_safetensors(path: str) -> bool:
    """Whether a file begins as safetensors do: eight bytes of length, then JSON."""
    with open(path, "rb") as file:
        return file.read(9)[8:] == b"{"


def _read_safetensors(path: str) -> Checkpoint:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = {key: _parsed(text) for key, text in (file.metadata() or {}).items()}
            return Checkpoint(path, state, meta)
    except SafetensorError as error:
        raise InputError(
            f"checkpoint {path} is truncated or no safetensors file ({error}); download or copy it "
            "again"
        ) from error


def _parsed(text: str) -> object:
    """Return a note of ours, written as JSON, as what it was; any other as it stands."""
    try:
        return json.loads(text) if text.startswith("{") else text
    except json.JSONDecodeError:
        return text


def _safe_globals() -> list:
    """Return the objects besides tensors that OpenMMLab's training checkpoints carry."""
    # A file names these two by the module path that they had in the numpy which wrote the file.
    rebuilders = [
        _under_name(value.__reduce__()[0], f"numpy.{folder}.multiarray.{name}")
        for value, name in ((np.empty(0), "_reconstruct"), (np.float64(0), "scalar"))
        for folder in ("core", "_core")
    ]
    kinds = [type(np.dtype(code)) for code in "?bBhHiIlLqQefdUS"]  # numbers and texts, no objects
    getter = _under_name(_statistics_method, "builtins.getattr")
    return [HistoryBuffer, ConfigDict, getter, np.ndarray, np.dtype, *kinds, *rebuilders]


def _statistics_method(owner: object, name: str) -> Callable:
    """Stand in for ``getattr``, by which mmengine's message hub pickles its buffers' methods."""
    if owner is not HistoryBuffer or name not in ("current", "max", "mean", "min"):
        raise pickle.UnpicklingError(f"GLOBAL getattr({owner}, {name!r})")
    return getattr(owner, name)


def _under_name(function: Callable, name: str) -> Callable:
    """Wrap a function so that torch's safe unpickler, 2.5's too, knows it by another name."""

    def call(*args):
        return function(*args)

    call.__module__, _, call.__name__ = name.rpartition(".")
    call.__qualname__ = call.__name__
    return call


def read_torch(path: str, map_location: object = "cpu") -> object:
    """Read all that a torch file holds, under the rules of :func:`read_checkpoint`."""
    try:
        with torch.serialization.safe_globals(_safe_globals()):
            return torch.load(path, map_location=map_location, weights_only=True)
    # What is no pickle at all leaves torch's safe unpickler in any of these ways.
    except (
        *(pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError),
        OSError,  # a cut archive: its end is sought before its beginning
    ) as error:
        refused = re.search(r"(?:GLOBAL |but got <class ')([\w.]+)", str(error))
        if refused:
            raise InputError(
                f"checkpoint {path} would run code ({refused[1]}); if you trust its source, load "
                "it once with torch.load(weights_only=False) and save its state dict alone"
            ) from error
        raise InputError(
            f"checkpoint {path} is truncated or no checkpoint file; download or copy it again"
        ) from error


def _find_state(content: object, key: str = "") -> tuple[dict[str, Tensor], str]:
    """Return a state dict and the keys under which it lies, one wrapper inside another."""
    if not isinstance(content, Mapping):
        return {}, key
    for wrapper in WRAPPERS:
        found = _find_state(content.get(wrapper), f"{key}.{wrapper}".lstrip("."))
        if found[0]:
            return found
    tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    return {name: value for name, value in tensors.items() if isinstance(name, str)}, key
