"""The stock mmdet dataset reads the detection form to the generator's own masks."""

import numpy as np
import pytest
from mmcv.transforms import Compose, LoadImageFromFile
from mmdet.datasets import CocoDataset
from mmdet.datasets.transforms import LoadAnnotations

from mmsoftmor.datasets.sample import CLASSES, PALETTE
from mmsoftmor.datasets.sample.scene import image_rng, random_scene


@pytest.fixture(scope="module")
def dataset(detection_root):
    return CocoDataset(
        data_root=str(detection_root),
        ann_file="annotations/instances_val2017.json",
        data_prefix={"img": "val2017/"},
        metainfo={"classes": CLASSES, "palette": list(PALETTE)},
        test_mode=True,
    )


def test_every_image_is_listed_under_its_path(dataset, detection_root):
    assert len(dataset) == 100
    first = dataset.get_data_info(0)
    assert first["img_path"] == str(detection_root / "val2017/000001000001.jpg")


def test_masks_labels_and_boxes_are_the_generators(dataset):
    load = Compose([LoadImageFromFile(), LoadAnnotations(with_bbox=True, with_mask=True)])
    for index in range(len(dataset)):
        scene = random_scene(image_rng(0, "detection", "val", index))
        results = load(dataset.get_data_info(index))
        assert results["gt_bboxes_labels"].tolist() == [item.label for item in scene.objects]
        assert results["gt_ignore_flags"].tolist() == [item.crowd for item in scene.objects]
        for number, item in enumerate(scene.objects):
            np.testing.assert_array_equal(results["gt_masks"].masks[number].astype(bool), item.mask)
            rows, columns = np.nonzero(item.mask)
            corners = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert results["gt_bboxes"].tensor[number].tolist() == corners


def test_training_drops_only_empty_images(detection_root):
    dataset = CocoDataset(
        data_root=str(detection_root),
        ann_file="annotations/instances_val2017.json",
        data_prefix={"img": "val2017/"},
        metainfo={"classes": CLASSES},
        filter_cfg={"filter_empty_gt": True, "min_size": 32},
    )
    scenes = [random_scene(image_rng(0, "detection", "val", index)) for index in range(100)]
    assert len(dataset) == sum(bool(scene.objects) for scene in scenes) < 100
