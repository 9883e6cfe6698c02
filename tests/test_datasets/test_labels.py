"""Label files: what is read, what the values mean, and what is refused."""

import cv2
import numpy as np
import pytest
from PIL import Image

from mmsoftmor.datasets.labels import LabelCoding, read_label_map
from mmsoftmor.errors import InputError

VALUES = np.array([[0, 1, 2], [3, 254, 255]], np.uint8)


def test_values_of_a_grey_file_are_read_as_they_are(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), VALUES)
    values, mode = read_label_map(str(tmp_path / "a.png"))
    assert mode == "L"
    np.testing.assert_array_equal(values, VALUES)


def test_palette_file_gives_its_indices(tmp_path):
    image = Image.fromarray(VALUES, mode="P")
    image.putpalette([value % 256 for value in range(7, 7 + 768)])
    image.save(tmp_path / "a.png")
    values, mode = read_label_map(str(tmp_path / "a.png"))
    assert mode == "P"
    np.testing.assert_array_equal(values, VALUES)


def test_one_bit_file_gives_zero_and_one(tmp_path):
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "a.png")
    values, _ = read_label_map(str(tmp_path / "a.png"))
    assert values.tolist() == [[1, 0]]


def test_16_bit_values_are_not_cut(tmp_path):
    """Cut to 8 bits, 257 would be class 1."""
    cv2.imwrite(str(tmp_path / "a.png"), np.array([[1, 257]], np.uint16))
    values, _ = read_label_map(str(tmp_path / "a.png"))
    assert values.tolist() == [[1, 257]]
    with pytest.raises(InputError, match=r"a\.png: label value 257 does not fit 8 bits"):
        LabelCoding(num_classes=2).encode(values, str(tmp_path / "a.png"))


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_refused(tmp_path, channels):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((4, 5, channels), np.uint8))
    with pytest.raises(InputError, match=rf"a\.png: has {channels} channels"):
        read_label_map(str(tmp_path / "a.png"))


def test_missing_and_undecodable_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.png.*restore"):
        read_label_map(str(tmp_path / "gone.png"))
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(InputError, match=r"text\.png: is no image"):
        read_label_map(str(tmp_path / "text.png"))


@pytest.mark.parametrize("value", [-1, 65536, 2_000_000_000])
def test_32_bit_values_that_no_table_could_hold_are_refused(tmp_path, value):
    Image.fromarray(np.array([[1, value]], np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match=rf"a\.tif: label values .*{value}.*0 to 255"):
        read_label_map(str(tmp_path / "a.tif"))


def test_jpeg_is_refused_because_it_changes_values(tmp_path):
    cv2.imwrite(str(tmp_path / "a.jpg"), np.ones((4, 5), np.uint8))
    with pytest.raises(InputError, match=r"a\.jpg: JPEG changes"):
        read_label_map(str(tmp_path / "a.jpg"))


@pytest.mark.parametrize(
    "value_map", [(0, 1), {0: 1}, ((300, 1),), ((3, -1),), ((3, 999),), ((1, 2, 3),), (("0", 1),)]
)
def test_value_map_that_is_no_pairs_of_8_bits_is_refused(value_map):
    with pytest.raises(InputError, match=r"value_map = .* is no pair"):
        LabelCoding(num_classes=2, value_map=value_map)


@pytest.mark.parametrize(("reduce", "most"), [(True, 254), (False, 255)])
def test_more_classes_than_8_bits_hold_are_refused(reduce, most):
    coding = LabelCoding(most, reduce_zero_label=reduce)
    assert len(set(coding.table) - {255}) == most
    with pytest.raises(InputError, match=f"{most} at most"):
        LabelCoding(most + 1, reduce_zero_label=reduce)


def test_zero_is_reduced_exactly_once():
    """Against the published meaning: 0 and 255 unlabelled, k is class k - 1."""
    coding = LabelCoding(num_classes=150, reduce_zero_label=True)
    raw = np.array([[0, 1, 2, 150, 255]], np.uint8)
    assert coding.encode(raw, "x").tolist() == [[255, 0, 1, 149, 255]]


def test_unreduced_values_stay():
    raw = np.array([[0, 1, 149, 255]], np.uint8)
    assert LabelCoding(num_classes=150).encode(raw, "x").tolist() == raw.tolist()


@pytest.mark.parametrize(
    ("reduce", "value", "hint"),
    [
        (True, 151, "1 to 150, 0 and 255"),
        (False, 150, "reduce_zero_label = True"),
        (False, 200, "value_map"),
    ],
)
def test_value_beyond_the_classes_is_named_with_its_file(reduce, value, hint):
    coding = LabelCoding(num_classes=150, reduce_zero_label=reduce)
    with pytest.raises(InputError, match=rf"folder/a\.png: label value {value}, but.*{hint}"):
        coding.encode(np.array([[1, value]], np.uint8), "folder/a.png")


@pytest.mark.parametrize(
    ("reduce", "pairs", "expected"),
    [
        (False, ((0, 0), (255, 1)), [0, 1]),
        (True, ((0, 1), (255, 2)), [0, 1]),
        (True, ((255, 1),), [255, 0]),
    ],
)
def test_black_and_white_masks_become_classes(reduce, pairs, expected):
    coding = LabelCoding(num_classes=2, reduce_zero_label=reduce, value_map=pairs)
    assert coding.encode(np.array([[0, 255]], np.uint8), "x").tolist() == [expected]
