"""Mistakes in label maps are named, with file and value, before training starts."""

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

import mmsoftmor.datasets.segmentation  # noqa: F401
from mmsoftmor.engine import preflight
from mmsoftmor.errors import InputError


@pytest.fixture
def layout(tmp_path):
    """Return a function that writes label maps with their images and makes a config on them."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    (tmp_path / "user.py").touch()

    def make(*maps, classes=("a", "b", "c"), size=None, **dataset):
        for index, values in enumerate(maps):
            cv2.imwrite(str(tmp_path / "labels" / f"{index}.png"), np.array(values))
            height, width = size or np.shape(values)[:2]
            image = np.zeros((height, width, 3), np.uint8)
            cv2.imwrite(str(tmp_path / "images" / f"{index}.jpg"), image)
        dataset = dict(
            type="ADELayoutDataset",
            data_root=str(tmp_path),
            data_prefix=dict(img_path="images", seg_map_path="labels"),
            metainfo=dict(classes=classes),
            **dataset,
        )
        config = dict(
            default_scope="mmseg",
            model=dict(decode_head=dict(num_classes=len(classes))),
            train_dataloader=dict(dataset=dataset),
            test_dataloader=dict(dataset=dict(dataset)),
            test_evaluator=dict(type="IoUMetric"),
        )
        return Config(config, filename=tmp_path / "user.py")

    return make


GOOD = np.array([[0, 1, 2, 3]] * 4, np.uint8)


def expect(config, *words, mode="train"):
    with pytest.raises(InputError) as caught:
        preflight.check(config, mode)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.fixture
def said(monkeypatch):
    """What the check says without refusing."""
    lines = []
    monkeypatch.setattr(
        "mmsoftmor.engine.label_check.print_log", lambda message, **_: lines.append(message)
    )
    return lines


def test_right_labels_pass_in_silence(layout, said):
    config = layout(GOOD)
    preflight.check(config, "train")
    preflight.check(config, "test")
    assert said == []


def test_value_beyond_the_classes_is_named_with_its_file(layout):
    expect(layout(GOOD, GOOD + np.uint8(1)), "labels/1.png", "label value 4", "1 to 3")


def test_150_with_150_classes_counted_from_zero_is_named(layout):
    classes = tuple(f"class {i}" for i in range(150))
    labels = np.array([[3, 150]] * 4, np.uint8)
    config = layout(labels, classes=classes, reduce_zero_label=False)
    expect(config, "labels/0.png", "label value 150", "reduce_zero_label = True")


@pytest.mark.parametrize(
    ("reduce", "pairs"), [(True, "((0, 1), (255, 2))"), (False, "((0, 0), (255, 1))")]
)
def test_black_and_white_masks_are_recognised_and_their_mend_works(layout, reduce, pairs):
    masks = [np.array([[0, 255]] * 4, np.uint8)] * 2
    options = dict(classes=("back", "front"), reduce_zero_label=reduce)
    expect(layout(*masks, **options), "labels/0.png", "only 0 and 255", f"value_map = {pairs}")
    preflight.check(layout(*masks, **options, value_map=eval(pairs)), "train")


def test_background_and_ignore_in_one_file_are_no_mask(layout):
    only = np.array([[0, 255]] * 4, np.uint8)
    preflight.check(layout(only, np.array([[0, 2]] * 4, np.uint8), reduce_zero_label=False))


def test_three_channels_are_recognised(layout):
    expect(layout(np.zeros((4, 4, 3), np.uint8)), "labels/0.png", "3 channels", "numbers")


def test_palette_files_pass_and_it_is_said_what_is_read(layout, tmp_path, said):
    config = layout(GOOD)
    image = Image.fromarray(GOOD, mode="P")
    image.putpalette([200, 100, 50] * 256)
    image.save(tmp_path / "labels" / "0.png")
    preflight.check(config, "train")
    assert len(said) == 1 and "indices are read, not colours" in said[0]


def test_16_bit_values_are_named_uncut(layout):
    expect(layout(np.array([[1, 257]] * 4, np.uint16)), "labels/0.png", "label value 257")


def test_image_without_label_map_is_named(layout, tmp_path):
    config = layout(GOOD, GOOD)
    (tmp_path / "labels" / "1.png").unlink()
    expect(config, "labels/1.png", "images/1.jpg", "does not exist")


@pytest.mark.parametrize("suffix", [".tif", ".JPG"])
def test_folder_without_images_of_that_suffix_is_named_with_those_it_has(layout, suffix):
    config = layout(GOOD, GOOD, img_suffix=suffix)
    expect(config, "train_dataloader.dataset", f"no {suffix} image", "2 .jpg", "img_suffix")


def test_label_maps_without_image_are_mentioned(layout, tmp_path, said):
    config = layout(GOOD, GOOD, GOOD)
    (tmp_path / "images" / "1.jpg").rename(tmp_path / "images" / "1.png")
    preflight.check(config, "train")
    assert len(said) == 1 and "1 label maps have no .jpg image" in said[0]
    assert "labels/1.png" in said[0]


def test_predictions_that_would_replace_each_other_are_refused(layout, tmp_path):
    config = layout(GOOD)
    for kind, suffix in (("images", "jpg"), ("labels", "png")):
        (tmp_path / kind / "more").mkdir()
        content = (tmp_path / kind / f"0.{suffix}").read_bytes()
        (tmp_path / kind / "more" / f"0.{suffix}").write_bytes(content)
    preflight.check(config, "test")
    config.test_evaluator = dict(type="IoUMetric", output_dir="out")
    expect(config, "test_evaluator.output_dir", "2 images are called '0'", mode="test")


def test_single_class_is_refused(layout):
    """Of one class a softmax learns nothing, and mmseg then evaluates to an IoU of 0."""
    expect(layout(np.ones((4, 4), np.uint8), classes=("field",)), "one class", "background")


def test_everything_mapped_from_255_is_a_class(layout):
    only = np.full((4, 4), 255, np.uint8)
    preflight.check(layout(only, classes=("a", "b"), value_map=((255, 1),)), "train")


def test_table_gives_form_values_classes_and_the_unlabelled_share(layout):
    tables = []
    preflight.check(layout(GOOD, GOOD), "train", tables.append)
    (table,) = tables
    assert "train_dataloader.dataset: 2 of 2 label maps read, one channel" in table
    assert "2 x uint8, mode L" in table
    rows = [line.split(maxsplit=2) for line in table.splitlines()[2:-1]]
    names = ("unlabelled", "a", "b", "c")
    assert rows == [[str(value), "25.000%", name] for value, name in enumerate(names)]
    assert table.endswith("unlabelled: 25.000%")


def test_table_comes_before_the_verdict(layout):
    tables = []
    with pytest.raises(InputError, match="label value 4"):
        preflight.check(layout(GOOD + np.uint8(1)), "train", tables.append)
    assert "4   25.000%  no class" in tables[0]


def test_label_map_of_another_size_is_named(layout):
    expect(layout(GOOD, size=(4, 5)), "labels/0.png", "4 x 4", "4 x 5")


def test_photograph_that_is_stored_turned_has_the_size_of_its_label_map(layout, tmp_path):
    config = layout(GOOD[:2], size=(2, 4))
    turned = Image.fromarray(np.zeros((4, 2, 3), np.uint8))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "images" / "0.jpg", exif=exif)
    preflight.check(config, "train")


@pytest.mark.parametrize("value", [0, 255])
def test_labels_that_teach_nothing_are_refused(layout, value):
    expect(layout(np.full((4, 4), value, np.uint8)), "every pixel", "labels/0.png")


def test_almost_unlabelled_maps_are_mentioned(layout, said):
    labels = np.zeros((10, 10), np.uint8)
    labels[0, 0] = 3
    preflight.check(layout(labels), "train")
    assert len(said) == 1 and "99% of the pixels" in said[0]


def test_zero_that_looks_like_a_class_is_mentioned(layout, said):
    preflight.check(layout(np.array([[0, 1, 2, 1]] * 4, np.uint8)), "train")
    assert len(said) == 1 and "reduce_zero_label = False" in said[0]


def test_figures_without_labels_are_refused_and_bare_predictions_pass(layout):
    config = layout(GOOD)
    del config.test_dataloader.dataset.data_prefix["seg_map_path"]
    expect(config, "nothing to compare", "format_only", mode="test")
    config.test_evaluator = dict(type="IoUMetric", format_only=True, output_dir="out")
    preflight.check(config, "test")
