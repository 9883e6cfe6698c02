"""The training pipelines of the shipped recipes, at their full sizes, on real images."""

import json
from collections import Counter
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch
from mmdet.datasets import CocoDataset
from mmdet.registry import DATASETS, MODELS
from mmengine.dataset import pseudo_collate

RECIPES = {
    "lsj": "maskrcnn_srvit_s_coco",
    "1x": "maskrcnn_srvit_s_1x_coco",
    "3x-ms": "maskrcnn_srvit_s_3x-ms_coco",
    "copypaste": "maskrcnn_srvit_s_copypaste_coco",
}
UNFILTERED = {"train_dataloader.dataset.filter_cfg": None}


@pytest.fixture(scope="session")
def training_set(coco_config, build):
    """Return a function that builds the training dataset of a recipe."""

    def make(recipe, options=None):
        return build(DATASETS, coco_config(RECIPES[recipe], options).train_dataloader.dataset)

    return make


@pytest.fixture(scope="session")
def content(coco_root):
    return json.loads((coco_root / "annotations/instances_train2017.json").read_text())


@pytest.fixture
def preprocess(coco_config, build):
    """Return a function that collates samples and preprocesses them as a recipe's model does."""

    def run(recipe, samples):
        processor = build(MODELS, coco_config(RECIPES[recipe]).model.data_preprocessor)
        return processor(pseudo_collate(samples), training=True)

    return run


@pytest.fixture(scope="session")
def spread(training_set):
    """Return a function that gives samples from all over a recipe's training dataset."""

    @cache
    def load(recipe, count=8):
        dataset = training_set(recipe)
        return [dataset[index] for index in range(0, len(dataset), len(dataset) // count)]

    return load


def find(dataset, key):
    """Index of the image with an id."""
    return [dataset.get_data_info(index)["img_id"] for index in range(len(dataset))].index(key)


def tight_boxes(masks):
    """Corners of the smallest box around each mask, None for an empty one."""
    for mask in masks:
        rows, columns = np.nonzero(mask.any(axis=1))[0], np.nonzero(mask.any(axis=0))[0]
        yield (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) if len(rows) else None


@pytest.mark.parametrize("recipe", RECIPES)
def test_boxes_lie_inside_the_image_and_each_has_a_class_and_a_mask(spread, recipe):
    objects = 0
    for sample in spread(recipe):
        truth, (height, width) = sample["data_samples"].gt_instances, sample["inputs"].shape[1:]
        boxes = truth.bboxes.tensor
        assert sample["inputs"].shape[0] == 3
        assert sample["data_samples"].img_shape == (height, width)
        assert truth.masks.masks.shape == (len(boxes), height, width)
        assert ((truth.labels >= 0) & (truth.labels < 80)).all()
        assert (boxes >= 0).all()
        assert (boxes[:, 2:] <= torch.tensor([width, height])).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()
        objects += len(boxes)
    assert objects > 20


@pytest.mark.parametrize("recipe", ["lsj", "copypaste"])
def test_boxes_are_tight_around_cropped_and_occluded_masks(spread, recipe):
    for sample in spread(recipe):
        truth = sample["data_samples"].gt_instances
        for box, tight in zip(truth.bboxes.tensor, tight_boxes(truth.masks.masks), strict=True):
            assert box.tolist() == list(tight)


@pytest.mark.parametrize("recipe", ["1x", "3x-ms"])
def test_masks_stay_inside_boxes_that_are_not_recomputed(spread, recipe):
    """A thin tip of a polygon, and what a crop leaves of an object, can be smaller than the box."""
    outwards, seen = np.array([1, 1, -1, -1]), 0
    for sample in spread(recipe):
        truth = sample["data_samples"].gt_instances
        for box, tight in zip(truth.bboxes.tensor, tight_boxes(truth.masks.masks), strict=True):
            if tight is not None:
                assert ((box.numpy() - tight) * outwards <= 3).all(), (box, tight)
                seen += 1
    assert seen > 20


def test_boxes_and_classes_are_the_scaled_annotations(spread, content):
    """Without a crop: every box of the file, by its name, flipped where the image is."""
    names = {item["id"]: item["name"] for item in content["categories"]}
    for sample in (item["data_samples"] for item in spread("1x")):
        truth = sample.gt_instances
        scale, width = np.array(sample.scale_factor), sample.img_shape[1]
        expected = []
        for item in content["annotations"]:
            if item["image_id"] == sample.img_id and not item["iscrowd"]:
                x, y, w, h = item["bbox"]
                left, top, right, bottom = np.array([x, y, x + w, y + h]) * np.tile(scale, 2)
                if sample.flip:
                    left, right = width - right, width - left
                expected.append((names[item["category_id"]], left, top, right, bottom))
        found = [(CocoDataset.METAINFO["classes"][label],) for label in truth.labels]
        assert [item[:1] for item in expected] == found
        boxes = [item[1:] for item in expected]
        np.testing.assert_allclose(truth.bboxes.tensor, boxes, atol=0.01)


def test_jittered_images_are_normalised_and_padded_to_the_fixed_size_with_zeros(spread, preprocess):
    samples = deepcopy(spread("lsj"))
    originals = [sample["inputs"].clone() for sample in samples]
    batch = preprocess("lsj", samples)
    assert batch["inputs"].shape == (len(samples), 3, 1024, 1024)
    mean = torch.tensor([123.675, 116.28, 103.53]).view(3, 1, 1)
    std = torch.tensor([58.395, 57.12, 57.375]).view(3, 1, 1)
    padded = 0
    for image, original, sample in zip(
        batch["inputs"], originals, batch["data_samples"], strict=True
    ):
        height, width = sample.img_shape
        normalised = (original.flip(0).float() - mean) / std  # files are read as BGR
        torch.testing.assert_close(image[:, :height, :width], normalised)
        assert not image[:, height:].any() and not image[:, :, width:].any()
        assert sample.batch_input_shape == (1024, 1024)
        assert sample.gt_instances.masks.masks.shape[1:] == (1024, 1024)
        padded += (height, width) != (1024, 1024)
    assert padded > 0


def test_crowd_regions_are_ignored_instances(training_set, content):
    dataset = training_set("1x")
    crowds = Counter(item["image_id"] for item in content["annotations"] if item["iscrowd"])
    singles = Counter(item["image_id"] for item in content["annotations"] if not item["iscrowd"])
    assert crowds.total() == 10
    for key, count in crowds.items():
        sample = dataset[find(dataset, key)]["data_samples"]
        assert len(sample.ignored_instances) == count
        assert len(sample.gt_instances) == singles[key]


def test_crowd_regions_of_mixed_images_are_ignored_instances(training_set, content):
    dataset = training_set("copypaste")
    crowds = {item["image_id"] for item in content["annotations"] if item["iscrowd"]}
    index = find(dataset.dataset, min(crowds))
    samples = [dataset[index]["data_samples"] for _ in range(3)]
    assert any(len(sample.ignored_instances) for sample in samples)
    classes = CocoDataset.METAINFO["classes"]
    names = {item["id"]: item["name"] for item in content["categories"]}
    wanted = {names[item["category_id"]] for item in content["annotations"] if item["iscrowd"]}
    for sample in samples:
        assert {classes[label] for label in sample.ignored_instances.labels} <= wanted


def test_a_greyscale_file_is_read_with_three_equal_channels(training_set):
    dataset = training_set("1x")
    image = dataset[find(dataset, 86)]["inputs"]
    assert image.shape[0] == 3
    assert (image == image[:1]).all() and image.float().std() > 10


@pytest.mark.parametrize("recipe", RECIPES)
def test_training_leaves_out_images_without_objects(training_set, content, recipe):
    dataset = training_set(recipe)
    dataset = getattr(dataset, "dataset", dataset)
    seen = {dataset.get_data_info(index)["img_id"] for index in range(len(dataset))}
    assert seen == {item["image_id"] for item in content["annotations"]}
    assert len(content["images"]) - len(seen) == 2


def test_images_without_objects_pass_when_they_are_asked_for(training_set, content, preprocess):
    dataset = training_set("lsj", UNFILTERED)
    occupied = {item["image_id"] for item in content["annotations"]}
    empty = [item["id"] for item in content["images"] if item["id"] not in occupied]
    assert len(dataset) == len(content["images"]) and len(empty) == 2
    batch = preprocess("lsj", [dataset[find(dataset, key)] for key in empty])
    for sample in batch["data_samples"]:
        assert sample.gt_instances.bboxes.shape == (0, 4)
        assert sample.gt_instances.masks.masks.shape == (0, 1024, 1024)


def test_evaluation_keeps_images_without_objects(coco_config, build):
    dataset = build(DATASETS, coco_config().test_dataloader.dataset)
    objects = [len(dataset.get_data_info(index)["instances"]) for index in range(len(dataset))]
    assert len(objects) == 25 and objects.count(0) == 2
