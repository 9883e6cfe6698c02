"""Segmentation form: ADE20K layout and labels."""

import cv2
import numpy as np

from mmsoftmor.datasets.sample import CLASSES, SEG_CLASSES, SEG_PALETTE
from mmsoftmor.datasets.sample.scene import image_rng, random_scene


def label_files(root):
    return sorted((root / "annotations/validation").glob("*.png"))


def test_every_image_has_a_label_of_its_size(segmentation_root):
    for split, count in (("training", 12), ("validation", 30)):
        images = sorted((segmentation_root / "images" / split).glob("*.jpg"))
        labels = sorted((segmentation_root / "annotations" / split).glob("*.png"))
        assert len(images) == count
        assert [path.stem for path in images] == [path.stem for path in labels]
        for image, label in zip(images, labels, strict=True):
            pixels = cv2.imread(str(image))
            values = cv2.imread(str(label), cv2.IMREAD_UNCHANGED)
            assert values.dtype == np.uint8
            assert values.shape == pixels.shape[:2]


def test_labels_take_every_value_from_unlabelled_to_the_last_class(segmentation_root):
    counts = np.zeros(256, int)
    for path in label_files(segmentation_root):
        counts += np.bincount(cv2.imread(str(path), -1).ravel(), minlength=256)
    assert np.flatnonzero(counts).tolist() == list(range(len(SEG_CLASSES) + 1))
    assert 0.001 < counts[0] / counts.sum() < 0.05
    assert len(SEG_PALETTE) == len(SEG_CLASSES) == 12


def test_objects_carry_their_class_except_on_unlabelled_edges(segmentation_root):
    for index, path in enumerate(label_files(segmentation_root)):
        scene = random_scene(image_rng(0, "segmentation", "val", index))
        labels = cv2.imread(str(path), -1)
        covered = np.zeros(scene.shape, bool)
        for item in scene.objects:
            covered |= item.mask
            assert set(np.unique(labels[item.mask])) <= {0, item.label + 1}
            if not item.crowd:
                assert (labels[item.mask] > 0).mean() > 0.5
        kinds = np.array(scene.kinds)[scene.regions] + len(CLASSES) + 1
        outside = ~covered & (labels > 0)
        np.testing.assert_array_equal(labels[outside], kinds[outside])


def test_some_edges_are_unlabelled_and_some_labelled(segmentation_root):
    shares = []
    for index, path in enumerate(label_files(segmentation_root)):
        scene = random_scene(image_rng(0, "segmentation", "val", index))
        labels = cv2.imread(str(path), -1)
        for item in scene.objects:
            mask = item.mask.astype(np.uint8)
            # The outermost pixels of the object: those with a side neighbour outside it.
            edge = (mask - cv2.erode(mask, cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3)))) > 0
            shares.append((labels[edge] == 0).mean())
    shares = np.array(shares)
    assert 0.25 < (shares > 0.8).mean() < 0.75
    assert (shares < 0.2).mean() > 0.15


def hue_of(pixels):
    """Circular mean of the hue, weighted by colourfulness, of (n, 3) BGR pixels; 0 to 1."""
    hsv = cv2.cvtColor(pixels[None].astype(np.float32) / 255, cv2.COLOR_BGR2HSV)[0]
    turn = np.exp(1j * np.deg2rad(hsv[:, 0])) * hsv[:, 1] * hsv[:, 2]
    return np.angle(turn.mean()) / (2 * np.pi) % 1


def test_every_class_keeps_to_its_typical_hue(segmentation_root):
    kinds = len(SEG_CLASSES) - len(CLASSES)
    seen = set()
    for path in label_files(segmentation_root):
        labels = cv2.imread(str(path), -1)
        image = cv2.imread(str(segmentation_root / f"images/validation/{path.stem}.jpg"))
        for value in np.unique(labels[labels > 0]):
            inside = cv2.erode((labels == value).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
            if inside.sum() < 200:
                continue
            index, count = value - 1, len(CLASSES)
            if index >= len(CLASSES):
                index, count = index - len(CLASSES), kinds
            away = (hue_of(image[inside]) - index / count + 0.5) % 1 - 0.5
            # Drawn within 0.4; neither light nor chroma subsampling moves the mean by 0.1.
            assert abs(away) * count < 0.5, (path.name, SEG_CLASSES[value - 1])
            seen.add(int(value))
    assert len(seen) == len(SEG_CLASSES)
