"""Classification form: folders, balance, sizes."""

import cv2

from mmsoftmor.datasets.sample import CLS_CLASSES


def test_folders_sort_in_the_order_of_the_classes(classification_root):
    for split in ("train", "val"):
        folders = sorted(path.name for path in (classification_root / split).iterdir())
        assert folders == list(CLS_CLASSES)


def test_classes_are_balanced_to_one_image(classification_root):
    for split, total in (("train", 100), ("val", 50)):
        counts = [len(list((classification_root / split / n).glob("*.jpg"))) for n in CLS_CLASSES]
        assert sum(counts) == total
        assert max(counts) - min(counts) <= 1


def test_images_are_128_pixels_and_colour(classification_root):
    for path in classification_root.rglob("*.jpg"):
        assert cv2.imread(str(path), cv2.IMREAD_UNCHANGED).shape == (128, 128, 3)
