"""ADE20K's layout with its own or a user's classes, read through mmseg's pipeline."""

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope
from mmseg.datasets import ADE20KDataset
from mmseg.registry import DATASETS
from mmseg.utils import register_all_modules

import mmsoftmor.datasets
import mmsoftmor.datasets.segmentation  # noqa: F401
from mmsoftmor.errors import InputError

PIPELINE = [
    dict(type="LoadCheckedImage"),
    dict(type="LoadCheckedLabels"),
    dict(type="PackSegInputs"),
]
RAW = np.array([[0, 1, 2, 255]] * 3, np.uint8)


@pytest.fixture
def layout(tmp_path):
    """Write one image and its label map; return a function that builds the dataset on them."""
    register_all_modules(init_default_scope=False)
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    cv2.imwrite(str(tmp_path / "images" / "a.jpg"), np.zeros((3, 4, 3), np.uint8))

    def build(raw=RAW, pipeline=PIPELINE, **options):
        cv2.imwrite(str(tmp_path / "labels" / "a.png"), raw)
        dataset = dict(
            type="ADELayoutDataset",
            data_root=str(tmp_path),
            data_prefix=dict(img_path="images", seg_map_path="labels"),
            pipeline=pipeline,
        )
        with DefaultScope.overwrite_default_scope("mmseg"):
            return DATASETS.build({**dataset, **options})

    return build


def labels(dataset):
    return dataset[0]["data_samples"].gt_sem_seg.data[0, 0].tolist()


def test_ade20k_is_as_mmseg_has_it(layout):
    dataset = layout()
    assert dataset.metainfo["classes"] == ADE20KDataset.METAINFO["classes"]
    assert dataset.metainfo["palette"] == ADE20KDataset.METAINFO["palette"]
    assert labels(dataset) == [255, 0, 1, 255]


def test_labels_equal_those_of_mmsegs_own_loading(layout):
    ours, raw = layout(), np.array([[0, 1, 2, 150]] * 3, np.uint8)
    theirs = [PIPELINE[0], dict(type="LoadAnnotations"), PIPELINE[2]]
    expected = layout(raw, theirs, type="ADE20KDataset")[0]["data_samples"].gt_sem_seg.data
    torch.testing.assert_close(ours[0]["data_samples"].gt_sem_seg.data, expected)


@pytest.mark.parametrize("classes", [("cat", "dog"), ("wall", "floor")])
def test_own_classes_are_the_labels_in_order(layout, classes):
    """Also where the names occur in ADE20K: 'floor' is label 2 here, 4 there."""
    dataset = layout(metainfo=dict(classes=classes))
    assert dataset.metainfo["classes"] == classes
    assert len(dataset.metainfo["palette"]) == 2
    assert labels(dataset) == [255, 0, 1, 255]


def test_own_palette_is_kept(layout):
    palette = [(1, 2, 3), (4, 5, 6)]
    dataset = layout(metainfo=dict(classes=("cat", "dog"), palette=palette))
    assert dataset.metainfo["palette"] == palette


def test_zero_can_be_a_class(layout):
    dataset = layout(metainfo=dict(classes=("a", "b", "c")), reduce_zero_label=False)
    assert labels(dataset) == [0, 1, 2, 255]


def test_value_map_comes_before_the_reduction(layout):
    raw = np.array([[0, 255, 0, 255]] * 3, np.uint8)
    classes = dict(classes=("back", "front"))
    dataset = layout(raw, metainfo=classes, value_map=((0, 1), (255, 2)))
    assert labels(dataset) == [0, 1, 0, 1]


def test_label_beyond_the_classes_stops_the_loading_with_file_and_value(layout):
    with pytest.raises(InputError, match=r"labels/a\.png: label value 2, but 1 classes"):
        layout(metainfo=dict(classes=("a",)))[0]


def test_label_map_of_another_size_is_named(layout):
    with pytest.raises(InputError, match=r"a\.png: label map is 2 x 4 but its image .* 3 x 4"):
        layout(RAW[:2])[0]


def test_labels_are_not_resized_with_the_image_in_testing(layout):
    pipeline = [PIPELINE[0], dict(type="Resize", scale=(8, 6)), *PIPELINE[1:]]
    sample = layout(pipeline=pipeline)[0]
    assert sample["inputs"].shape == (3, 6, 8)
    assert sample["data_samples"].gt_sem_seg.data.shape == (1, 3, 4)


def test_image_that_resizing_leaves_nothing_of_is_named(layout, tmp_path):
    dataset = layout(pipeline=[PIPELINE[0], dict(type="Resize", scale=(20, 5), keep_ratio=True)])
    cv2.imwrite(str(tmp_path / "images" / "a.jpg"), np.zeros((1, 50, 3), np.uint8))
    with pytest.raises(InputError, match=r"images/a\.jpg: image cannot be used") as caught:
        dataset[0]
    assert "\n" not in str(caught.value)


def test_images_without_labels_load_for_prediction(layout):
    sample = layout(data_prefix=dict(img_path="images"))[0]["data_samples"]
    assert "gt_sem_seg" not in sample
    assert sample.img_path.endswith("a.jpg")
