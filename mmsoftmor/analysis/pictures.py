"""Results that people would rather look at than read, as pictures."""

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence

import cv2
import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, VISUALIZERS, init_default_scope

GAP = 8  # pixels between pictures
WHITE = (255, 255, 255)
ROW_HEIGHT = 256


def draw_predictions(
    model: torch.nn.Module,
    config: Config,
    indices: Sequence[int],
    path: str,
    columns: int = 2,
    **options,
) -> None:
    """Draw ground truth and predictions of test images side by side into one picture.

    Args:
        model (torch.nn.Module): A detector or segmentor in evaluation mode.
        config (Config): Its config; the test dataset and the visualizer are read.
        indices (Sequence[int]): Which images of the test dataset, in this order.
        path (str): The picture, written atomically; its extension is the format.
        columns (int): Pairs in a row. Defaults to 2.
        **options: Of the visualizer's ``add_datasample``, such as ``pred_score_thr=0.5``, the
            lowest score of an object that is drawn.
    """

    def draw(visualizer, image: np.ndarray, sample, out_file: str) -> None:
        visualizer.add_datasample(sample.img_path, image, sample, out_file=out_file, **options)

    _draw(model, config, indices, path, columns, draw)


def draw_classes(
    model: torch.nn.Module,
    config: Config,
    indices: Sequence[int],
    path: str,
    columns: int = 4,
) -> None:
    """Write the true and the predicted class of test images on them, as one picture.

    Args are those of :func:`draw_predictions`, for a classifier.
    """

    def draw(visualizer, image: np.ndarray, sample, out_file: str) -> None:
        visualizer.visualize_cls(
            image,
            sample,
            classes=visualizer.dataset_meta["classes"],
            resize=ROW_HEIGHT,
            out_file=out_file,
        )

    _draw(model, config, indices, path, columns, draw)


def _draw(
    model: torch.nn.Module,
    config: Config,
    indices: Sequence[int],
    path: str,
    columns: int,
    draw: Callable,
) -> None:
    init_default_scope(config.default_scope)
    dataset = DATASETS.build(config.test_dataloader.dataset)
    visualizer = VISUALIZERS.build(
        dict(config.visualizer, name=f"pictures of {path}", vis_backends=None)
    )
    visualizer.dataset_meta = dataset.metainfo
    drawn = []
    with tempfile.TemporaryDirectory() as folder:
        # The whole picture, both halves, is what every library's visualizer writes to a file.
        part = os.path.join(folder, "part.png")
        for index in indices:
            with torch.no_grad():
                sample = model.test_step(pseudo_collate([dataset[index]]))[0].cpu()
            image = mmcv.imread(sample.img_path, channel_order="rgb")
            with warnings.catch_warnings():  # objects at the edge of the image are no mistake
                warnings.filterwarnings("ignore", message=".*out of bounds")
                draw(visualizer, image, sample, part)
            drawn.append(mmcv.imread(part, channel_order="rgb"))
    _write(path, _tiled(drawn, columns))


def _tiled(images: list[np.ndarray], columns: int) -> np.ndarray:
    """Lay pictures of one height out in rows, white between and around them."""
    images = [_at_row_height(image) for image in images]
    rows = [_joined(images[i : i + columns], axis=1) for i in range(0, len(images), columns)]
    width = max(row.shape[1] for row in rows)
    rows = [mmcv.impad(row, shape=(row.shape[0], width), pad_val=WHITE) for row in rows]
    return mmcv.impad(_joined(rows, axis=0), padding=GAP, pad_val=WHITE)


def _at_row_height(image: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    return mmcv.imresize(image, (round(width * ROW_HEIGHT / height), ROW_HEIGHT))


def _joined(images: list[np.ndarray], axis: int) -> np.ndarray:
    spaced = [images[0]]
    for image in images[1:]:
        gap = list(image.shape)
        gap[axis] = GAP
        spaced += [np.full(gap, 255, np.uint8), image]
    return np.concatenate(spaced, axis=axis)


def _write(path: str, image: np.ndarray) -> None:
    stem, extension = os.path.splitext(path)
    mmcv.imwrite(cv2.cvtColor(image, cv2.COLOR_RGB2BGR), f"{stem}.part{extension}")
    os.replace(f"{stem}.part{extension}", path)
