"""Detection form: exact ground truth as pycocotools sees it."""

import contextlib
import io

import cv2
import numpy as np
import pytest
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from mmsoftmor.datasets.sample import CATEGORY_IDS, CLASSES
from mmsoftmor.datasets.sample.scene import image_rng, random_scene


@pytest.fixture(scope="module")
def coco(detection_root):
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(detection_root / "annotations/instances_val2017.json"))


def test_categories_have_gaps_and_the_order_of_the_classes(coco):
    assert [(c["id"], c["name"]) for c in coco.dataset["categories"]] == list(
        zip(CATEGORY_IDS, CLASSES, strict=True)
    )
    assert max(CATEGORY_IDS) > len(CATEGORY_IDS)


def test_header_blocks_are_present(coco):
    assert coco.dataset["info"]["description"]
    licenses = {licence["id"] for licence in coco.dataset["licenses"]}
    assert {image["license"] for image in coco.dataset["images"]} <= licenses


def test_images_have_coco_names_and_the_sizes_stated(coco, detection_root):
    assert len(coco.imgs) == 100
    for image in coco.imgs.values():
        assert image["file_name"] == f"{image['id']:012d}.jpg"
        pixels = cv2.imread(str(detection_root / "val2017" / image["file_name"]))
        assert pixels.shape == (image["height"], image["width"], 3)


def test_ids_are_unique_over_both_splits(coco, detection_root):
    with contextlib.redirect_stdout(io.StringIO()):
        train = COCO(str(detection_root / "annotations/instances_train2017.json"))
    assert not set(train.imgs) & set(coco.imgs)
    assert not set(train.anns) & set(coco.anns)
    assert len(coco.anns) == len(coco.dataset["annotations"])


def test_masks_are_exactly_the_visible_pixels_of_the_generator(coco):
    for index, image_id in enumerate(sorted(coco.imgs)):
        scene = random_scene(image_rng(0, "detection", "val", index))
        annotations = coco.imgToAnns[image_id]
        assert len(annotations) == len(scene.objects)
        for annotation, item in zip(annotations, scene.objects, strict=True):
            np.testing.assert_array_equal(coco.annToMask(annotation).astype(bool), item.mask)
            assert annotation["category_id"] == CATEGORY_IDS[item.label]
            assert annotation["iscrowd"] == item.crowd


def test_areas_and_boxes_equal_those_of_the_segmentation(coco):
    for annotation in coco.anns.values():
        rle = coco.annToRLE(annotation)
        assert annotation["area"] == coco_mask.area(rle)
        assert annotation["bbox"] == coco_mask.toBbox(rle).tolist()


def test_objects_are_polygons_and_crowds_uncompressed_rle(coco):
    for annotation in coco.anns.values():
        if annotation["iscrowd"]:
            assert isinstance(annotation["segmentation"]["counts"], list)
        else:
            assert all(len(polygon) >= 8 for polygon in annotation["segmentation"])


def test_small_medium_large_crowd_and_empty_are_all_there(coco):
    areas = np.array([a["area"] for a in coco.anns.values() if not a["iscrowd"]])
    small, large = (areas < 32**2).mean(), (areas > 96**2).mean()
    assert 0.08 < small < 0.35
    assert 0.05 < large < 0.35
    assert sum(a["iscrowd"] for a in coco.anns.values()) >= 3
    empty = set(coco.imgs) - {annotation["image_id"] for annotation in coco.anns.values()}
    assert 0 < len(empty) <= 15
    assert {a["category_id"] for a in coco.anns.values() if not a["iscrowd"]} == set(CATEGORY_IDS)


def evaluate(coco, kind, category_of=lambda annotation: annotation["category_id"]):
    truth = [a for a in coco.dataset["annotations"] if not a["iscrowd"]]
    results = [
        {
            "image_id": a["image_id"],
            "category_id": category_of(a),
            "bbox": a["bbox"],
            "segmentation": coco.annToRLE(a),
            "score": 1.0,
        }
        for a in truth
    ]
    for result in results:
        result.pop("segmentation" if kind == "bbox" else "bbox")
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(coco, coco.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_ground_truth_as_predictions_scores_one_in_every_size(coco, kind):
    stats = evaluate(coco, kind)
    # AP, AP50, AP75, AP small/medium/large: all of them have ground truth.
    np.testing.assert_allclose(stats[:6], 1.0, atol=1e-12)


def test_wrong_categories_score_next_to_nothing(coco):
    following = dict(zip(CATEGORY_IDS, CATEGORY_IDS[1:] + CATEGORY_IDS[:1], strict=True))
    assert evaluate(coco, "bbox", lambda a: following[a["category_id"]])[0] < 0.05
