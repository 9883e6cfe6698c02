"""The figures of semantic segmentation, against a confusion matrix and torchmetrics."""

import numpy as np
import pytest
import torch
from mmseg.evaluation import IoUMetric
from torchmetrics.classification import MulticlassJaccardIndex

CLASSES, IGNORED = 7, 255


def maps(images=5, missing=None):
    """Random predictions and labels of several sizes; a fifth of the pixels is unlabelled."""
    random = np.random.default_rng(0)
    for _ in range(images):
        size = random.integers(20, 60, 2)
        labels = random.integers(0, CLASSES, size)
        guess = np.where(random.random(size) < 0.6, labels, random.integers(0, CLASSES, size))
        if missing is not None:
            labels[labels == missing] = 0
            guess[guess == missing] = 0
        labels[random.random(size) < 0.2] = IGNORED
        yield guess, labels


def evaluated(pairs):
    """mmseg's metric: its figures in percent, and the unrounded ones by class."""
    metric = IoUMetric(iou_metrics=["mIoU"])
    metric.dataset_meta = dict(classes=[f"class {i}" for i in range(CLASSES)])
    for guess, labels in pairs:
        sample = dict(
            pred_sem_seg=dict(data=torch.from_numpy(guess)[None]),
            gt_sem_seg=dict(data=torch.from_numpy(labels)[None]),
        )
        metric.process({}, [sample])
    areas = [sum(column) for column in zip(*metric.results, strict=True)]
    return metric.compute_metrics(metric.results), metric.total_area_to_metrics(*areas)


def confusion(pairs):
    """Rows are labels, columns predictions; unlabelled pixels are in none."""
    matrix = np.zeros((CLASSES, CLASSES))
    for guess, labels in pairs:
        known = labels != IGNORED
        np.add.at(matrix, (labels[known], guess[known]), 1)
    return matrix


def test_figures_equal_those_of_a_confusion_matrix():
    figures, exact = evaluated(maps())
    matrix = confusion(maps())
    hits, labelled = matrix.diagonal(), matrix.sum(1)
    iou, accuracy = hits / (labelled + matrix.sum(0) - hits), hits / labelled
    np.testing.assert_allclose(exact["IoU"], iou, atol=1e-6)
    np.testing.assert_allclose(exact["Acc"], accuracy, atol=1e-6)
    np.testing.assert_allclose(exact["aAcc"], hits.sum() / matrix.sum(), atol=1e-6)
    expected = dict(mIoU=iou.mean(), mAcc=accuracy.mean(), aAcc=hits.sum() / matrix.sum())
    for name, value in expected.items():
        assert figures[name] == pytest.approx(100 * value, abs=0.005), "rounded to two places"


def test_iou_equals_torchmetrics():
    _, exact = evaluated(maps())
    theirs = MulticlassJaccardIndex(CLASSES, ignore_index=IGNORED, average="none")
    for guess, labels in maps():
        theirs.update(torch.from_numpy(guess).flatten(), torch.from_numpy(labels).flatten())
    np.testing.assert_allclose(exact["IoU"], theirs.compute(), atol=1e-6)


def test_class_that_occurs_nowhere_is_left_out_of_the_mean():
    figures, exact = evaluated(maps(missing=3))
    assert np.isnan(exact["IoU"][3])
    assert figures["mIoU"] == pytest.approx(100 * np.delete(exact["IoU"], 3).mean(), abs=0.005)


def test_prediction_on_unlabelled_pixels_does_not_count():
    pairs = list(maps())
    changed = [(np.where(lab == IGNORED, 0, guess), lab) for guess, lab in pairs]
    assert evaluated(pairs)[0] == evaluated(changed)[0]


def test_labels_as_prediction_are_perfect():
    pairs = [(np.where(labels == IGNORED, 2, labels), labels) for _, labels in maps()]
    assert evaluated(pairs)[0] == dict(aAcc=100.0, mIoU=100.0, mAcc=100.0)
