"""The shipped S config loads, trains on and evaluates real ADE20K images.

Changed through options are only the data root and folder, the size of the crop, the starting
weights, the learning rate of the few steps, and what a CPU asks for.
"""

import json
import math

import cv2
import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData

from mmsoftmor.engine import preflight
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test as evaluate
from mmsoftmor.engine.launch import train

SIDE = 96
FOLDERS = dict(img_path="images/validation", seg_map_path="annotations/validation")


@pytest.fixture
def ade_config(ade_root, tmp_path):
    """Return a function that loads the shipped S config on the two images."""

    def load(**options):
        return load_config(
            "upernet_srvit_s_ade20k",
            {
                "data_root": str(ade_root),
                "train_dataloader.dataset.data_prefix": FOLDERS,
                "model.backbone.init_cfg.checkpoint": None,
                "work_dir": str(tmp_path),
                **options,
            },
        )

    return load


def dataset(config, split):
    from mmseg.registry import DATASETS
    from mmseg.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    with DefaultScope.overwrite_default_scope("mmseg"):
        return DATASETS.build(config[f"{split}_dataloader"].dataset)


def test_checks_before_training_accept_the_data(ade_config):
    preflight.check(ade_config(), "train")
    preflight.check(ade_config(), "test")


def test_training_pipeline_gives_crops_with_labels_of_150_classes(ade_config):
    images = dataset(ade_config(), "train")
    assert len(images) == 2
    for index in range(2):
        sample = images[index]
        labels = sample["data_samples"].gt_sem_seg.data
        assert sample["inputs"].shape[1:] == labels.shape[1:]
        assert max(labels.shape[1:]) == 512
        present = set(labels.unique().tolist()) - {255}
        assert present and max(present) < 150


def test_test_pipeline_keeps_labels_at_the_original_size(ade_config, ade_root):
    for sample in dataset(ade_config(), "test"):
        path = sample["data_samples"].seg_map_path
        raw = cv2.imread(path, cv2.IMREAD_UNCHANGED).astype(int)
        expected = np.where(raw == 0, 255, raw - 1)
        np.testing.assert_array_equal(sample["data_samples"].gt_sem_seg.data[0], expected)
        assert min(sample["inputs"].shape[1:]) == 512


def test_label_map_fed_back_as_prediction_is_perfect(ade_config):
    config = ade_config()
    images = dataset(config, "test")
    with DefaultScope.overwrite_default_scope("mmseg"):
        evaluator = Evaluator(config.test_evaluator)
    evaluator.dataset_meta = images.metainfo
    for item in images:
        sample = item["data_samples"]
        labels = sample.gt_sem_seg.data.clone()
        labels[labels == 255] = 0  # what stands on unlabelled pixels must not matter
        sample.pred_sem_seg = PixelData(data=labels)
        evaluator.process([sample], item)
    figures = evaluator.evaluate(len(images))
    assert figures == dict(aAcc=100.0, mIoU=100.0, mAcc=100.0)


@pytest.mark.slow
def test_training_lowers_the_loss_and_its_weights_are_evaluated(ade_config, tmp_path):
    options = {
        "model.data_preprocessor.size": (SIDE, SIDE),
        "train_dataloader.dataset.pipeline.2.scale": (4 * SIDE, SIDE),
        "train_dataloader.dataset.pipeline.3.crop_size": (SIDE, SIDE),
        "train_dataloader.num_workers": 0,
        "test_dataloader.dataset.pipeline.1.scale": (4 * SIDE, SIDE),
        "test_dataloader.num_workers": 0,
        "test_dataloader.persistent_workers": False,
        "val_dataloader": None,
        "val_evaluator": None,
        "val_cfg": None,
        "param_scheduler": [],
        "optim_wrapper.optimizer.lr": 5e-4,  # the recipe's is for 160k steps from DeiT
        "train_cfg.max_iters": 10,
        "default_hooks.logger.interval": 1,
        "default_hooks.checkpoint.save_best": None,
        "log_processor.window_size": 1,
    }
    config = ade_config(**options)
    train(config)
    (log,) = tmp_path.rglob("scalars.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 10 and all(map(math.isfinite, losses))
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    assert all(math.isfinite(line["grad_norm"]) for line in lines if "grad_norm" in line)

    figures = evaluate(config, str(tmp_path / "iter_10.pth"))
    assert set(figures) == {"aAcc", "mIoU", "mAcc"}
    assert all(0 <= value <= 100 for value in figures.values())
    state = torch.load(tmp_path / "iter_10.pth", weights_only=False)["state_dict"]
    assert all(value.isfinite().all() for value in state.values())
