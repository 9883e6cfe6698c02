"""A job of seconds: a tiny stock classifier with dropout on sixteen images in two folders."""

import json

import cv2
import numpy as np
import pytest
import torch

from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import train

CONFIG = """
custom_imports = dict(imports=["mmsoftmor.engine", "mmsoftmor.datasets"])
default_scope = "mmpretrain"
data_root = {root!r}
pipeline = [
    dict(type="LoadCheckedImage"),
    dict(type="RandomResizedCrop", scale=32),
    dict(type="RandomFlip", prob=0.5, direction="horizontal"),
    dict(type="PackInputs"),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=2,
    persistent_workers=False,
    worker_init_fn=dict(type="seed_worker_from_torch"),
    sampler=dict(type="DefaultSampler", shuffle=True),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="CustomDataset",
        data_root=data_root,
        data_prefix="train",
        metainfo=dict(classes=("a", "b")),
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=0,
    sampler=dict(type="DefaultSampler", shuffle=False),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="CustomDataset",
        data_root=data_root,
        data_prefix="train",
        metainfo=dict(classes=("a", "b")),
        pipeline=[
            dict(type="LoadCheckedImage"),
            dict(type="Resize", scale=(32, 32)),
            dict(type="PackInputs"),
        ],
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type="Accuracy", topk=(1,))
test_evaluator = val_evaluator
model = dict(
    type="ImageClassifier",
    data_preprocessor=dict(num_classes=2, mean=[127.0] * 3, std=[60.0] * 3),
    backbone=dict(
        type="VisionTransformer",
        arch=dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32),
        img_size=32,
        patch_size=8,
        drop_rate=0.1,
        drop_path_rate=0.3,
    ),
    head=dict(type="LinearClsHead", num_classes=2, in_channels=16),
)
optim_wrapper = dict(type="OptimWrapper", optimizer=dict(type="AdamW", lr=0.001))
param_scheduler = dict(type="CosineAnnealingLR", T_max=4, by_epoch=True)
train_cfg = dict(by_epoch=True, max_epochs=4, val_interval=1)
val_cfg = dict()
test_cfg = dict()
log_level = "WARNING"
auto_scale_lr = dict(enable=False, base_batch_size=16)
default_hooks = dict(
    checkpoint=dict(type="AtomicCheckpointHook", interval=1),
    logger=dict(type="LoggerHook", interval=2),
)
custom_hooks = [dict(type="ReproducibleRNGHook"), dict(type="FiniteLossHook")]
randomness = dict(seed=7)
"""


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    for index in range(16):
        folder = root / "train" / "ab"[index % 2]
        folder.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / f"{index}.png"), random.integers(0, 255, (40, 48, 3), np.uint8))
    return root


@pytest.fixture
def config_file(tmp_path, images):
    """Path of the config of the tiny job."""
    path = tmp_path / "tiny.py"
    path.write_text(CONFIG.format(root=str(images)))
    return path


@pytest.fixture
def tiny(config_file, tmp_path):
    """Load the tiny job with some dotted keys changed; it works in ``tmp_path``."""

    def load(**options):
        dotted = {key.replace("__", "."): value for key, value in options.items()}
        return load_config(str(config_file), {"work_dir": str(tmp_path / "work"), **dotted})

    return load


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory, images):
    """A full training state, the same without its optimizer, and weights alone, of one epoch."""
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "tiny.py").write_text(CONFIG.format(root=str(images)))
    options = {"train_cfg.max_epochs": 1, "work_dir": str(folder)}
    train(load_config(str(folder / "tiny.py"), options))
    full = torch.load(folder / "epoch_1.pth", weights_only=False)
    torch.save({k: v for k, v in full.items() if k != "optimizer"}, folder / "model.pth")
    torch.save(full["state_dict"], folder / "weights.pth")
    names = dict(full="epoch_1.pth", model="model.pth", weights="weights.pth")
    return {kind: str(folder / name) for kind, name in names.items()}


DETECTOR = """
_base_ = "mmdet::_base_/models/mask-rcnn_r50_fpn.py"
custom_imports = dict(imports=["mmsoftmor.engine", "mmsoftmor.datasets"])
default_scope = "mmdet"
classes = ("square", "other")
data_root = {root!r}
extractor = dict(out_channels=16)
model = dict(
    backbone=dict(depth=18, base_channels=8, frozen_stages=-1, norm_eval=False, init_cfg=None),
    neck=dict(in_channels=[8, 16, 32, 64], out_channels=16),
    rpn_head=dict(in_channels=16, feat_channels=16),
    roi_head=dict(
        bbox_roi_extractor=extractor,
        bbox_head=dict(in_channels=16, fc_out_channels=16),
        mask_roi_extractor=extractor,
        mask_head=dict(num_convs=1, in_channels=16, conv_out_channels=16),
    ),
    test_cfg=dict(rcnn=dict(score_thr=0.0, max_per_img=5)),
)
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type="CocoDataset",
        data_root=data_root,
        ann_file="train.json",
        data_prefix=dict(img="img/"),
        pipeline=[
            dict(type="LoadCheckedImage"),
            dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
            dict(type="PackDetInputs"),
        ],
    ),
)
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type="CocoDataset",
        data_root=data_root,
        ann_file="train.json",
        data_prefix=dict(img="img/"),
        test_mode=True,
        pipeline=[
            dict(type="LoadCheckedImage"),
            dict(type="Resize", scale=(64, 64)),
            dict(
                type="PackDetInputs",
                meta_keys=("img_id", "img_path", "ori_shape", "img_shape", "scale_factor"),
            ),
        ],
    ),
)
test_evaluator = dict(
    type="CocoMetric", ann_file=data_root + "/train.json", metric=["bbox", "segm"]
)
test_cfg = dict()
optim_wrapper = dict(optimizer=dict(type="SGD", lr=0.001))
train_cfg = dict(by_epoch=True, max_epochs=1)
default_hooks = dict(logger=dict(type="LoggerHook", interval=1))
custom_hooks = [dict(type="FiniteLossHook")]
"""


@pytest.fixture(scope="session")
def squares(tmp_path_factory):
    """Eight images in COCO layout: a square in the first of each two, none in the second."""
    root = tmp_path_factory.mktemp("squares")
    (root / "img").mkdir()
    side, images, objects = 64, [], []
    for index in range(8):
        canvas = np.full((side, side, 3), 40, np.uint8)
        if index % 2 == 0:
            canvas[16:48, 8:40] = 200
            ring = [8, 16, 40, 16, 40, 48, 8, 48]
            box = dict(bbox=[8, 16, 32, 32], area=1024, segmentation=[ring], iscrowd=0)
            objects.append(dict(box, id=index + 1, image_id=index, category_id=1))
        cv2.imwrite(str(root / "img" / f"{index}.png"), canvas)
        images.append(dict(id=index, file_name=f"{index}.png", height=side, width=side))
    names = [dict(id=1, name="square"), dict(id=2, name="other")]
    content = dict(images=images, annotations=objects, categories=names)
    (root / "train.json").write_text(json.dumps(content))
    return root


@pytest.fixture
def detector_file(tmp_path, squares):
    """Path of the config of a tiny stock Mask R-CNN on ``squares``."""
    path = tmp_path / "detector.py"
    path.write_text(DETECTOR.format(root=str(squares)))
    return path


@pytest.fixture
def detector(detector_file, tmp_path):
    """Load the tiny Mask R-CNN with some dotted keys changed; it works in ``tmp_path``."""

    def load(**options):
        dotted = {key.replace("__", "."): value for key, value in options.items()}
        return load_config(str(detector_file), {"work_dir": str(tmp_path / "work"), **dotted})

    return load
