"""Where a sample dataset is written: recognised when finished, completed when interrupted."""

import json
import os
from pathlib import Path

import cv2
from tqdm import tqdm

from mmsoftmor.errors import InputError

#: Raised whenever the same seed gives other files than before.
VERSION = 3

STAMP = "sample.json"
# Holds the parameters from the start and becomes the stamp at the end.
_UNFINISHED = "sample.unfinished.json"

# Ids of validation images start here, so that an id never depends on the size of the other split.
MAX_IMAGES = 1_000_000


def write_bytes(path, data):
    """Write a file that is whole as soon as it has its name."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def write_json(path, content):
    """Write JSON (compact, key order as given) atomically."""
    write_bytes(path, json.dumps(content, separators=(",", ":")).encode())


def write_image(path, image):
    """Write an image atomically: (h, w, 3) RGB or (h, w) grey uint8, as the suffix says."""
    if image.ndim == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    options = [cv2.IMWRITE_JPEG_QUALITY, 92] if Path(path).suffix == ".jpg" else []
    written, data = cv2.imencode(Path(path).suffix, image, options)
    if not written:
        raise RuntimeError(f"OpenCV could not encode {path}")
    write_bytes(path, data.tobytes())


def generate(root, form, num_train, num_val, seed, write_split, progress=True):
    """Write one form of the dataset unless it is there already.

    Args:
        root (str | Path): Folder of its own for this form.
        form (str): Name of the form, kept in the stamp.
        num_train (int): Training images, 1 to 1,000,000.
        num_val (int): Validation images, 1 to 1,000,000.
        seed (int): Not negative.
        write_split (Callable): ``write_split(root, split, indices)`` writes the images of one
            split while it runs through ``indices``, leaving alone those already there, and returns
            its number of labelled instances.
        progress (bool): Show a progress bar. Default True.

    Returns:
        dict: The stamp: form, version, seed, num_train, num_val, and ``instances`` by split.

    Raises:
        InputError: A count or the seed is out of range, or the folder holds something else.
    """
    counts = {"train": num_train, "val": num_val}
    _check_numbers(counts, seed)
    wanted = {"form": form, "version": VERSION, "seed": seed}
    wanted |= {"num_train": num_train, "num_val": num_val}
    root = Path(root)
    finished = _open_root(root, wanted)
    if finished:
        return finished
    instances = {}
    for split, count in counts.items():
        bar = tqdm(range(count), desc=f"{form} {split}", unit="img", disable=not progress)
        instances[split] = write_split(root, split, bar)
    stamp = wanted | {"instances": instances}
    write_json(root / _UNFINISHED, stamp)
    os.replace(root / _UNFINISHED, root / STAMP)
    return stamp


def _check_numbers(counts, seed):
    for split, count in counts.items():
        if not 1 <= count <= MAX_IMAGES:
            raise InputError(f"num_{split}={count}: give 1 to {MAX_IMAGES} images")
    if seed < 0:
        raise InputError(f"seed={seed}: give a seed of 0 or more")


def _open_root(root, wanted):
    """Return the stamp of a finished dataset, or None after marking the folder as begun."""
    if root.exists() and not root.is_dir():
        raise InputError(f"{root} is a file: name a folder for the sample dataset")
    for name in (STAMP, _UNFINISHED):
        if (root / name).is_file():
            found = _read_stamp(root / name)
            _check_same(root, found, wanted)
            return found if name == STAMP else None
    if root.is_dir() and any(root.iterdir()):
        raise InputError(f"{root} holds other files and no {STAMP}: name an empty or new folder")
    write_json(root / _UNFINISHED, wanted)
    return None


def _read_stamp(path):
    try:
        stamp = json.loads(path.read_text())
    except ValueError:
        stamp = None
    if not isinstance(stamp, dict):
        raise InputError(f"{path} is damaged: delete the folder {path.parent} and run again")
    return stamp


def _check_same(root, found, wanted):
    differing = [key for key in wanted if found.get(key) != wanted[key]]
    if differing:
        details = ", ".join(f"{key}={found.get(key)}, not {wanted[key]}" for key in differing)
        raise InputError(f"{root} was made with {details}: delete it or name another folder")
