"""A bad image is named; a good one reads as the stock loader reads it."""

import cv2
import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile

from mmsoftmor.datasets.loading import LoadCheckedImage
from mmsoftmor.errors import InputError


@pytest.fixture
def photo(tmp_path):
    """Write a noise image in the format of the suffix and return its path."""

    def write(name="a.jpg"):
        image = np.random.default_rng(0).integers(0, 255, (64, 96, 3), np.uint8)
        cv2.imwrite(str(tmp_path / name), image)
        return tmp_path / name

    return write


def load(path, **options):
    return LoadCheckedImage(**options).transform(dict(img_path=str(path)))


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.bmp"])
@pytest.mark.parametrize("options", [{}, {"to_float32": True}, {"color_type": "grayscale"}])
def test_good_image_reads_as_with_the_stock_loader(photo, name, options):
    path = photo(name)
    ours = load(path, **options)
    stock = LoadImageFromFile(**options).transform(dict(img_path=str(path)))
    assert ours.keys() == stock.keys()
    np.testing.assert_array_equal(ours["img"], stock["img"])
    assert ours["img"].dtype == stock["img"].dtype
    assert ours["ori_shape"] == stock["ori_shape"] == (64, 96)


def test_bytes_after_the_end_marker_are_harmless(photo):
    path = photo()
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert load(path)["img_shape"] == (64, 96)


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
@pytest.mark.parametrize("part", [0.5, 0.95])
def test_truncated_image_is_named(photo, name, part):
    path = photo(name)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(InputError, match=rf"{name}.*cut short"):
        load(path)


def test_thumbnail_in_the_header_does_not_hide_a_truncation(photo):
    path = photo()
    content = path.read_bytes()
    thumbnail = b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content
    path.write_bytes((content[:2] + thumbnail + content[2:])[:-200])
    with pytest.raises(InputError, match="cut short"):
        load(path)


def test_missing_image_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.jpg: cannot be read \(No such file"):
        load(tmp_path / "absent.jpg")


@pytest.mark.parametrize("backend", ["cv2", "pillow"])
def test_file_that_is_no_image_is_named(tmp_path, backend):
    (tmp_path / "page.jpg").write_text("<html>404</html>")
    with pytest.raises(InputError, match=r"page\.jpg: cannot be decoded"):
        load(tmp_path / "page.jpg", imdecode_backend=backend)


def test_empty_file_is_named(tmp_path):
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(InputError, match=r"empty\.jpg"):
        load(tmp_path / "empty.jpg")


def test_ignore_empty_lets_the_dataset_draw_another(tmp_path):
    assert load(tmp_path / "absent.jpg", ignore_empty=True) is None


@pytest.mark.parametrize("library", ["mmdet", "mmseg", "mmpretrain"])
def test_every_library_finds_it(library):
    registry = __import__(f"{library}.registry", fromlist=["TRANSFORMS"]).TRANSFORMS
    assert registry.get("LoadCheckedImage") is LoadCheckedImage
