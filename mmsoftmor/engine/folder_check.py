"""Do the folders or the meta file of a classification dataset fit its classes?

MMPretrain's ``CustomDataset`` (``ImageNet`` is one) labels the folders in the order of their names
and trusts a meta file. It stops at another number of folders, but with a traceback, and tells
neither classes in another order nor a label without class.
"""

from __future__ import annotations

import os.path as osp
from collections.abc import Sequence

from mmengine.fileio import list_dir_or_file, list_from_file
from mmpretrain.datasets import CustomDataset
from mmpretrain.datasets.custom import find_folders

from mmsoftmor.errors import InputError

SAMPLED = 32  # images of a meta file that are looked for
_SHOWN = 20  # class names that a message shows in full


def finds_images_itself(kind: type) -> bool:
    """Whether a type of dataset reads folders and meta files as ``CustomDataset`` does."""
    own = ("load_data_list", "_find_samples")
    return issubclass(kind, CustomDataset) and all(
        getattr(kind, method) is getattr(CustomDataset, method) for method in own
    )


def check_folders(dataset: CustomDataset, name: str, number: int | None = None) -> list[str] | None:
    """Check that a classification dataset has images, and labels that its classes explain.

    Args:
        dataset: The dataset, built with ``lazy_init``: it has read nothing yet.
        name: Where the dataset stands in the config, for messages.
        number: Classes that the model tells apart, for a dataset without class names; None where
            that is open.

    Returns:
        The class folders in the order of their labels, or None if labels come from elsewhere.

    Raises:
        InputError: No folder, no image, another number of folders than of classes, classes in
            another order than their folders, or a line of the meta file that cannot be meant.
    """
    classes = list(dataset.CLASSES or ())
    number = len(classes) or number
    prefix = dataset.img_prefix
    if not osp.isdir(prefix):
        raise InputError(
            f"{name}: folder {prefix!r} does not exist: correct data_root or data_prefix"
        )
    if dataset.ann_file:
        _check_meta_file(dataset, name, number)
        return None
    folders = None
    if dataset.with_label:
        folders, _ = find_folders(prefix)
        if not folders:
            raise InputError(
                f"{name}: {prefix!r} has no class folder: put the images of each class into a "
                "folder, or correct data_root or data_prefix"
            )
        if number is not None and len(folders) != number:
            raise InputError(_other_number(folders, classes, number, prefix, name))
        _check_order(folders, classes, prefix, name)
    files = list_dir_or_file(prefix, list_dir=False, recursive=True)
    if not any(map(dataset.is_valid_file, files)):
        suffixes = ", ".join(sorted(dataset.extensions))
        raise InputError(
            f"{name}: no image in {prefix!r}, none ends in {suffixes}: correct data_root, "
            "data_prefix or extensions"
        )
    return folders


def check_same_folders(found: dict[str, list[str]]) -> None:
    """Check that a label stands for one class in every dataset.

    Args:
        found: Each dataset's place in the config, and its folders in the order of their labels.

    Raises:
        InputError: A label is that of another folder in one dataset than in the first.
    """
    first, *others = found
    for name in others:
        for label, (folder, other) in enumerate(zip(found[first], found[name], strict=False)):
            if folder != other:
                raise InputError(
                    f"label {label} is folder {folder!r} in {first} but {other!r} in {name}: give "
                    "both the same folders"
                )


def _other_number(
    folders: list[str], classes: list[str], number: int, prefix: str, name: str
) -> str:
    known = set(folders) & set(classes)
    odd = [f"folder {folder!r} has no class" for folder in folders if folder not in classes]
    odd += [f"class {title!r} has no folder" for title in classes if title not in folders]
    hint = f" ({odd[0]})" if known else ""
    return (
        f"{name}: {prefix!r} has {_count(folders, 'class folder')} but the config "
        f"{number} classes{hint}: set classes = {_tuple(folders)} at the top of your config, or "
        "correct data_root or the folders"
    )


def _check_order(folders: list[str], classes: list[str], prefix: str, name: str) -> None:
    """A class that is called like a folder has to be that folder's."""
    label = {folder: index for index, folder in enumerate(folders)}
    for index, title in enumerate(classes):
        if label.get(title, index) != index:
            raise InputError(
                f"{name}: class {index} is {title!r}, but label {index} is that of folder "
                f"{folders[index]!r}: folders of {prefix!r} get their labels in the order of "
                f"their names, write classes = {_tuple(folders)}"
            )


def _check_meta_file(dataset: CustomDataset, name: str, number: int | None) -> None:
    path = dataset.ann_file
    try:
        lines = list_from_file(path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no UTF-8 text: {error} ({name}.ann_file)") from error
    if not lines:
        raise InputError(f"{path}: has no line: write PATH LABEL for each image ({name}.ann_file)")
    if dataset.with_label:
        images = [_image(line, index, path, number) for index, line in enumerate(lines, 1)]
    else:
        images = lines
    step = max(1, len(images) // SAMPLED)
    for index in range(0, len(images), step):
        image = osp.join(dataset.img_prefix, images[index])
        if not osp.isfile(image):
            raise InputError(
                f"{path}: line {index + 1} names image {image!r}, which does not exist: correct "
                f"the line, data_root or data_prefix ({name})"
            )


def _image(line: str, index: int, path: str, number: int | None) -> str:
    """The image that a line of a meta file names, if its label is that of a class."""
    image, _, label = line.strip().rpartition(" ")
    if not image or not label.isdecimal():
        raise InputError(f"{path}: line {index} is {line!r}: write PATH LABEL, the label a number")
    if number is not None and int(label) >= number:
        raise InputError(
            f"{path}: line {index} has label {label}, but {number} classes have the labels 0 to "
            f"{number - 1}: correct the line, or classes at the top of your config"
        )
    return image


def _count(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"


def _tuple(names: Sequence[str]) -> str:
    return repr(tuple(names)) if len(names) <= _SHOWN else f"({names[0]!r}, {names[1]!r}, ...)"
