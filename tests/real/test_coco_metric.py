"""The config's evaluator on real ground truth, against pycocotools on the annotation file."""

import numpy as np
import pytest
import torch
from mmdet.registry import DATASETS
from mmengine.evaluator import Evaluator
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

FIGURES = ("mAP", "mAP_50", "mAP_75", "mAP_s", "mAP_m", "mAP_l")
KINDS = ("bbox", "segm")


@pytest.fixture(scope="module")
def config(coco_config):
    return coco_config()


@pytest.fixture(scope="module")
def dataset(config, build):
    return build(DATASETS, config.test_dataloader.dataset)


@pytest.fixture(scope="module")
def annotations(coco_root):
    return COCO(str(coco_root / "annotations/instances_val2017.json"))


@pytest.fixture
def samples(dataset):
    """The validation images with their ground truth, in original pixels, as predictions."""
    loaded = [dataset[index]["data_samples"] for index in range(len(dataset))]
    for sample in loaded:
        truth = sample.gt_instances
        sample.pred_instances = InstanceData(
            bboxes=truth.bboxes.tensor.clone(),
            labels=truth.labels,
            masks=truth.masks.to_tensor(torch.bool, "cpu"),
            scores=torch.full((len(truth),), 0.9),
        )
    return loaded


@pytest.fixture
def score(config, dataset):
    """Return a function that evaluates samples with the config's own settings."""

    def run(samples):
        with DefaultScope.overwrite_default_scope("mmdet"):
            evaluator = Evaluator(config.test_evaluator)
        evaluator.dataset_meta = dataset.metainfo
        evaluator.process(samples)
        return evaluator.evaluate(len(samples))

    return run


def reference(annotations, detections):
    """The metric's figures by pycocotools alone."""
    figures = {}
    for kind, other in zip(KINDS, ("segmentation", "bbox"), strict=True):
        items = [{k: v for k, v in item.items() if k != other} for item in detections]
        evaluation = COCOeval(annotations, annotations.loadRes(items), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        names = (f"coco/{kind}_{name}" for name in FIGURES)
        figures.update(zip(names, evaluation.stats[:6], strict=True))
    return figures


def as_detections(sample, annotations, classes):
    """Predictions in COCO's result format, categories found by their names."""
    ids = {item["name"]: item["id"] for item in annotations.dataset["categories"]}
    for item in sample.pred_instances:
        x1, y1, x2, y2 = item.bboxes[0].tolist()
        yield {
            "image_id": sample.img_id,
            "category_id": ids[classes[item.labels.item()]],
            "bbox": [x1, y1, x2 - x1, y2 - y1],
            "segmentation": rle.encode(np.asfortranarray(item.masks[0].numpy().astype(np.uint8))),
            "score": item.scores.item(),
        }


def spoil(predicted, generator):
    """Miss objects, shift boxes and masks, give wrong classes and scores."""
    count = len(predicted)
    shift = torch.from_numpy(generator.normal(0, 4, (count, 1))).float()
    predicted.bboxes = predicted.bboxes + shift * (torch.arange(count)[:, None] % 2)
    predicted.masks = torch.roll(predicted.masks, 3, dims=2)
    predicted.scores = torch.from_numpy(generator.uniform(0.1, 1, count))
    wrong = torch.from_numpy(generator.uniform(size=count) < 0.2)
    predicted.labels = torch.where(wrong, 0, predicted.labels)
    return predicted[torch.from_numpy(generator.uniform(size=count) < 0.8)]


def test_ground_truth_as_prediction_scores_one(samples, score):
    assert len(samples) == 25
    assert score(samples) == {f"coco/{kind}_{name}": 1.0 for kind in KINDS for name in FIGURES}


def test_pycocotools_alone_agrees_that_it_is_one(annotations):
    detections = [
        {**item, "score": 0.9, "segmentation": annotations.annToRLE(item)}
        for item in annotations.dataset["annotations"]
        if not item["iscrowd"]
    ]
    for value in reference(annotations, detections).values():
        assert value == pytest.approx(1.0, abs=1e-12)


def test_imperfect_predictions_score_as_pycocotools_says(samples, score, dataset, annotations):
    generator = np.random.default_rng(0)
    for sample in samples:
        sample.pred_instances = spoil(sample.pred_instances, generator)
    classes = dataset.metainfo["classes"]
    detections = [
        item for sample in samples for item in as_detections(sample, annotations, classes)
    ]
    metrics = score(samples)
    assert all(0.1 < metrics[f"coco/{kind}_mAP"] < 0.9 for kind in KINDS)
    expected = reference(annotations, detections)
    assert metrics == pytest.approx(expected, abs=5.1e-4)  # the metric rounds to three digits


def spot_in_crowd(sample, side=12):
    """A square inside the image's crowd region and clear of its objects: class, box, mask."""
    crowd = sample.ignored_instances
    region = crowd.masks.masks[0].astype(bool)
    region &= ~sample.gt_instances.masks.masks.any(axis=0)
    inside = np.lib.stride_tricks.sliding_window_view(region, (side, side)).all(axis=(2, 3))
    y, x = np.argwhere(inside)[0].tolist()
    mask = torch.zeros(1, *region.shape, dtype=torch.bool)
    mask[0, y : y + side, x : x + side] = True
    return crowd.labels[:1], torch.tensor([[x, y, x + side, y + side]]).float(), mask


@pytest.mark.parametrize("same_class", [True, False])
def test_a_detection_in_a_crowd_is_a_false_alarm_only_for_another_class(
    samples, score, dataset, same_class
):
    crowded = [sample for sample in samples if len(sample.ignored_instances)]
    assert [sample.img_id for sample in crowded] == [87038, 296649]
    chair = dataset.metainfo["classes"].index("chair")
    for sample in crowded:
        label, box, mask = spot_in_crowd(sample)
        detection = InstanceData(
            bboxes=box,
            labels=label if same_class else torch.full_like(label, chair),
            masks=mask,
            scores=torch.ones(1),  # ahead of every true one, where a false alarm costs the most
        )
        sample.pred_instances = InstanceData.cat([sample.pred_instances, detection])
    metrics = score(samples)
    for kind in KINDS:
        assert (metrics[f"coco/{kind}_mAP"] == 1.0) is same_class
