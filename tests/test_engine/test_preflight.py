"""Each mistake in a config or its data is named before training starts."""

import importlib.util
import json

import cv2
import numpy as np
import pytest
from mmdet.datasets import CocoDataset
from mmengine.config import Config

from mmsoftmor.engine import coco_check, preflight
from mmsoftmor.engine.config import load_config
from mmsoftmor.errors import InputError

SQUARE = [[2, 2, 8, 2, 8, 8, 2, 8]]


def annotations():
    """A valid COCO file: two images, one object with a polygon, one crowd in RLE."""
    shared = dict(image_id=1, bbox=[2, 2, 6, 6], area=36, category_id=3)
    return dict(
        images=[dict(id=i, file_name=f"{i}.png", height=10, width=10) for i in (1, 2)],
        categories=[dict(id=3, name="cat"), dict(id=7, name="dog")],
        annotations=[
            dict(shared, id=1, iscrowd=0, segmentation=SQUARE),
            dict(shared, id=2, iscrowd=1, segmentation=dict(counts=[50, 50], size=[10, 10])),
        ],
    )


@pytest.fixture
def detection(tmp_path):
    """A detection config whose data are right, as a function of the annotation content."""
    (tmp_path / "img").mkdir()
    for i in (1, 2):
        cv2.imwrite(str(tmp_path / "img" / f"{i}.png"), np.zeros((10, 10, 3), np.uint8))

    def make(content=None, **changes):
        (tmp_path / "val.json").write_text(json.dumps(content or annotations()))
        dataset = dict(
            type="CocoDataset",
            data_root=str(tmp_path),
            ann_file="val.json",
            data_prefix=dict(img="img/"),
            metainfo=dict(classes=("cat", "dog")),
        )
        config = dict(
            default_scope="mmdet",
            model=dict(
                rpn_head=dict(num_classes=1),
                roi_head=dict(bbox_head=dict(num_classes=2), mask_head=dict(num_classes=2)),
            ),
            train_dataloader=dict(dataset=dict(type="RepeatDataset", dataset=dataset)),
            val_dataloader=dict(dataset=dict(dataset)),
            val_evaluator=dict(type="CocoMetric", ann_file=str(tmp_path / "val.json")),
        )
        (tmp_path / "user.py").touch()
        return Config({**config, **changes}, filename=tmp_path / "user.py")

    return make


def expect(config, *words, mode="train"):
    """The check fails, and its one line holds all the words."""
    with pytest.raises(InputError) as caught:
        preflight.check(config, mode)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_right_config_passes(detection):
    preflight.check(detection(), "train")


@pytest.mark.parametrize(
    "key", ["fp16", "optimizer_config", "data", "evaluation", "runner", "lr_config", "optimizer"]
)
def test_legacy_keys_are_named_with_their_successor(detection, key):
    expect(detection(**{key: dict()}), "user.py", f"{key} ->")


def test_missing_library_is_named_with_its_package(detection, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mmdet" else find(name)
    )
    expect(detection(), "'mmdet'", "not installed", "onedl-mmdetection")


def test_missing_compiled_ops_are_named(detection, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mmcv._ext" else find(name)
    )
    expect(detection(), "compiled ops", "MMCV_WITH_OPS=1")


def test_missing_data_root_is_named_with_its_key(detection):
    config = detection()
    config.val_dataloader.dataset.data_root = "/no/such/folder"
    expect(config, "val_dataloader.dataset.data_root", "/no/such/folder")


def test_missing_annotation_file_is_named(detection):
    config = detection()
    config.val_dataloader.dataset.ann_file = "typo.json"
    expect(config, "val_dataloader.dataset.ann_file", "typo.json")


def test_missing_and_empty_image_folders_are_named(detection, tmp_path):
    config = detection()
    config.val_dataloader.dataset.data_prefix.img = "empty/"
    expect(config, "data_prefix.img", "empty")
    (tmp_path / "empty").mkdir()
    expect(config, "data_prefix.img", "is empty")


def test_images_that_are_not_in_their_folder_are_named(detection):
    content = annotations()
    content["images"][0]["file_name"] = "val2017/1.png"
    expect(detection(content), "img/val2017/1.png", "data_prefix")


def test_broken_json_is_named(detection, tmp_path):
    config = detection()
    (tmp_path / "val.json").write_text('{"images": [')
    expect(config, "val.json", "cannot be read as JSON")


def test_json_of_another_kind_is_named(detection):
    expect(detection({"shapes": [1]}), "val.json", "not a COCO annotation file")


@pytest.mark.parametrize(("what", "part"), [("image", "images"), ("annotation", "annotations")])
def test_duplicate_ids_are_named(detection, what, part):
    content = annotations()
    content[part][1]["id"] = 1
    expect(detection(content), "val.json", f"{what} id 1 occurs 2 times")


def test_missing_field_is_named(detection):
    content = annotations()
    del content["annotations"][1]["area"]
    expect(detection(content), "annotation number 1 has no 'area'")


@pytest.mark.parametrize(
    "bad", [[], [[1, 2, 3, 4]], [[1, 2, 3, 4, 5, 6, 7]], {"size": [1, 1]}, None]
)
def test_object_without_a_mask_is_named_when_masks_are_learnt(detection, bad):
    content = annotations()
    content["annotations"][0]["segmentation"] = bad
    expect(detection(content), "annotation 1 of image 1", "no usable segmentation")
    config = detection(content)
    del config.model.roi_head.mask_head
    preflight.check(config, "train")


def test_object_that_the_dataset_drops_needs_no_mask(detection):
    content = annotations()
    content["annotations"].append(
        dict(id=9, image_id=2, bbox=[0, 0, 0.5, 5], area=2, category_id=3, segmentation=[])
    )
    preflight.check(detection(content), "train")


@pytest.mark.parametrize("names", [("bird", "owl"), ("Cat", "DOG")])
def test_no_category_in_common_is_an_error_with_both_lists(detection, names):
    config = detection()
    config.val_dataloader.dataset.metainfo.classes = names
    expect(config, "val.json", "'cat', 'dog'", repr(names[0]))


def test_class_missing_in_the_json_is_a_warning(detection, monkeypatch):
    config, said = detection(), []
    config.val_dataloader.dataset.metainfo.classes = ("cat", "owl")
    monkeypatch.setattr(coco_check, "print_log", lambda text, **_: said.append(text))
    preflight.check(config, "train")
    assert any("no category for 1 of 2 classes: 'owl'" in text for text in said)


def test_mmdet_numbers_labels_in_the_order_of_the_file(detection):
    # The reason for the next test, from mmdet itself.
    dataset = detection().val_dataloader.dataset
    options = {key: value for key, value in dataset.items() if key != "type"}
    options.update(metainfo=dict(classes=("dog", "cat")), test_mode=True)
    loaded = CocoDataset(**options)
    categories = {item["id"]: item["name"] for item in annotations()["categories"]}
    assert [categories[number] for number in loaded.cat_ids] == ["cat", "dog"]


@pytest.mark.parametrize("names", [("dog", "cat"), ("owl", "dog")])
def test_categories_that_would_get_the_labels_of_others_are_an_error(detection, names):
    config = detection()
    config.val_dataloader.dataset.metainfo.classes = names
    expect(config, "val.json", "class 0", repr(names[0]), "in that order")


def test_category_without_name_is_an_error(detection):
    content = annotations()
    del content["categories"][1]["name"]
    expect(detection(content), "category number 1 has no 'name'")


def test_class_string_in_a_dataset_is_refused(detection):
    config = detection()
    config.val_dataloader.dataset.metainfo.classes = "cat"
    expect(config, "one string", "('cat',)")


def test_no_object_of_the_classes_is_an_error(detection):
    content = annotations()
    content["annotations"] = []
    expect(detection(content), "no annotation of the classes")


def test_images_to_be_tested_need_no_annotations(detection):
    content = annotations()
    del content["annotations"]
    config = detection(content)
    config.test_dataloader = config.val_dataloader
    preflight.check(config, "test")


@pytest.mark.parametrize("head", ["bbox_head", "mask_head"])
def test_head_of_another_class_count_is_named(detection, head):
    config = detection()
    config.model.roi_head[head].num_classes = 3
    expect(config, f"model.roi_head.{head}.num_classes = 3", "2 classes")


def test_class_count_of_the_dataset_type_counts_where_none_is_configured(detection):
    config = detection()
    del config.train_dataloader.dataset.dataset.metainfo
    expect(config, "model.roi_head.bbox_head.num_classes = 2", "80 classes")


def test_evaluator_of_another_file_is_an_error(detection, tmp_path):
    config = detection()
    config.val_evaluator.ann_file = str(tmp_path / "other.json")
    expect(config, "val_evaluator.ann_file", "other.json", "val.json")


def test_unknown_dataset_type_is_named(detection):
    config = detection()
    config.val_dataloader.dataset.type = "CocoDataSet"
    config.val_dataloader.dataset.pop("metainfo")
    expect(config, "'CocoDataSet'", "mmdet")


def test_segmentation_folders_must_exist_and_hold_something(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").touch()
    dataset = dict(
        type="ADE20KDataset",
        data_root=str(tmp_path),
        data_prefix=dict(img_path="images", seg_map_path="labels"),
    )
    config = Config(
        dict(
            default_scope="mmseg",
            model=dict(decode_head=dict(num_classes=150)),
            test_dataloader=dict(dataset=dataset),
        )
    )
    expect(config, "data_prefix.seg_map_path", "labels", mode="test")
    (tmp_path / "labels").mkdir()
    expect(config, "data_prefix.seg_map_path", "is empty", mode="test")
    (tmp_path / "labels" / "a.png").touch()
    preflight.check(config, "test")
    config.model.decode_head.num_classes = 151
    expect(config, "model.decode_head.num_classes = 151", "150 classes", mode="test")


def test_classification_root_must_exist(tmp_path):
    dataset = dict(type="ImageNet", data_root=str(tmp_path / "imagenet"), split="train")
    config = Config(
        dict(
            default_scope="mmpretrain",
            model=dict(head=dict(num_classes=1000)),
            test_dataloader=dict(dataset=dataset),
        )
    )
    expect(config, "data_root", "imagenet", mode="test")
    (tmp_path / "imagenet").mkdir()
    expect(config, "test_dataloader.dataset", "imagenet/train' does not exist", mode="test")
    (tmp_path / "imagenet" / "train").mkdir()
    expect(config, "imagenet/train' has no class folder", mode="test")


@pytest.fixture
def classification(tmp_path):
    """Return a function that loads a child of an ImageNet config whose data have three classes."""
    for split in ("train", "val"):
        for folder in ("cat", "dog", "owl"):
            (tmp_path / split / folder).mkdir(parents=True)
            (tmp_path / split / folder / "x.JPEG").touch()

    def load(lines="", base="srvit_t_in1k", **options):
        (tmp_path / "child.py").write_text(f'_base_ = "mmsoftmor::{base}.py"\n{lines}\n')
        return load_config(str(tmp_path / "child.py"), {"data_root": str(tmp_path), **options})

    return load


@pytest.mark.parametrize("base", ["srvit_t_in1k", "srvit_nano_sample"])
def test_classification_in_folders_needs_their_classes(classification, base):
    number = {"srvit_t_in1k": 1000, "srvit_nano_sample": 48}[base]
    for mode, folder in (("train", "/train'"), ("test", "/val'")):
        words = (folder, "3 class folders", f"{number} classes", "classes = ('cat', 'dog', 'owl')")
        expect(classification(base=base), *words, mode=mode)
        preflight.check(classification('classes = ("cat", "dog", "owl")', base), mode)
        preflight.check(classification('classes = ("Katze", "Hund", "Eule")', base), mode)


def test_classes_in_another_order_than_their_folders_are_refused(classification):
    config = classification('classes = ("dog", "cat", "owl")')
    expect(config, "train_dataloader.dataset", "class 0 is 'dog'", "folder 'cat'")


def test_validation_folders_are_checked_too(classification, tmp_path):
    for folder in ("cat", "dog"):
        (tmp_path / "val" / folder / "x.JPEG").rename(tmp_path / "val" / folder / "x.txt")
    config = classification('classes = ("cat", "dog", "owl")')
    preflight.check(config)
    (tmp_path / "val" / "owl" / "x.JPEG").unlink()
    expect(config, "val_dataloader.dataset: no image in", "/val'")


@pytest.mark.parametrize("base", ["srvit_t_in1k", "srvit_nano_sample"])
def test_label_that_validation_takes_for_another_folder_is_refused(classification, tmp_path, base):
    (tmp_path / "val" / "cat").rename(tmp_path / "val" / "emu")
    config = classification('classes = ("Katze", "Hund", "Eule")', base)
    expect(config, "label 0 is folder 'cat' in train_dataloader.dataset but 'dog' in val_data")


def test_meta_file_is_checked_where_it_is_read(classification, tmp_path):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "val.txt").write_text("owl/x.JPEG 2\ncat/x.JPEG 3\n")
    config = classification('classes = ("cat", "dog", "owl")')
    expect(config, "meta/val.txt: line 2 has label 3", "3 classes")


@pytest.mark.parametrize(("topk", "largest"), [((1, 5), 5), (4, 4), ([4, 2], 4)])
def test_topk_of_more_than_all_classes_is_refused(classification, topk, largest):
    config = classification('classes = ("cat", "dog", "owl")')
    config.val_evaluator.topk = topk
    words = ("val_evaluator.topk", "tells 3 classes apart", f"leave {largest} out")
    expect(config, *words)
    preflight.check(config, "test")
    config.val_evaluator.topk = (1, 3)
    preflight.check(config)


def test_option_that_the_backbone_does_not_have_is_named_with_the_closest():
    config = load_config("maskrcnn_srvit_nano_sample", {"model.backbone.recursiondepth": 2})
    with pytest.raises(InputError, match=r"backbone\.recursiondepth .* mean recursion_depth\?"):
        preflight.check(config)
