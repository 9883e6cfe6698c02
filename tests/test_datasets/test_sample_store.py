"""Finished, unfinished and foreign folders, for all three forms."""

import hashlib
import json
import os

import pytest

from mmsoftmor.datasets.sample import make_classification, make_detection, make_segmentation, store
from mmsoftmor.errors import InputError

FORMS = {
    "detection": make_detection,
    "segmentation": make_segmentation,
    "classification": make_classification,
}


def digests(root):
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def times(root):
    return {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}


def make(form, root, num_train=10, num_val=3, seed=0):
    return FORMS[form](root, num_train=num_train, num_val=num_val, seed=seed, progress=False)


@pytest.mark.parametrize("form", FORMS)
def test_same_seed_gives_the_same_bytes_and_another_seed_others(form, tmp_path):
    for name, seed in [("a", 4), ("b", 4), ("c", 5)]:
        make(form, tmp_path / name, seed=seed)
    first = digests(tmp_path / "a")
    assert first == digests(tmp_path / "b")
    images = {name: digest for name, digest in first.items() if name.endswith(".jpg")}
    assert len(images) == 13 == len(set(images.values()))
    assert not set(images.values()) & set(digests(tmp_path / "c").values())


@pytest.mark.parametrize("form", FORMS)
def test_images_do_not_depend_on_how_many_there_are(form, tmp_path):
    make(form, tmp_path / "few", num_train=4, num_val=2)
    make(form, tmp_path / "many", num_train=11, num_val=5)
    few, many = digests(tmp_path / "few"), digests(tmp_path / "many")
    pictures = [name for name in few if name.endswith((".jpg", ".png"))]
    assert len(pictures) >= 6
    assert [few[name] for name in pictures] == [many[name] for name in pictures]


def test_annotations_of_an_image_do_not_depend_on_how_many_there_are(tmp_path):
    make("detection", tmp_path / "few", num_train=4, num_val=2)
    make("detection", tmp_path / "many", num_train=11, num_val=5)
    for split in ("train", "val"):
        few, many = (
            json.loads((tmp_path / name / f"annotations/instances_{split}2017.json").read_text())
            for name in ("few", "many")
        )
        assert few["annotations"]
        assert few["images"] == many["images"][: len(few["images"])]
        assert few["annotations"] == many["annotations"][: len(few["annotations"])]


@pytest.mark.parametrize("form", FORMS)
def test_finished_dataset_is_left_alone(form, tmp_path):
    stamp = make(form, tmp_path / "a")
    before = times(tmp_path / "a")
    assert make(form, tmp_path / "a") == stamp
    assert times(tmp_path / "a") == before
    assert json.loads((tmp_path / "a" / "sample.json").read_text()) == stamp


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("after", [1, 7, 11])
def test_interrupted_dataset_is_completed_to_the_same_bytes(form, after, tmp_path, monkeypatch):
    real, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) > after:
            raise KeyboardInterrupt
        real(source, target)

    make(form, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(store.os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make(form, tmp_path / "cut")
    assert not (tmp_path / "cut" / "sample.json").exists()
    # Of an image and its label map, the image is made again unless the label stands.
    suffix = ".png" if form == "segmentation" else ".jpg"
    kept = {p: t for p, t in times(tmp_path / "cut").items() if p.suffix == suffix}
    make(form, tmp_path / "cut")
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")
    now = times(tmp_path / "cut")
    assert {p: now[p] for p in kept} == kept


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"num_train": 11}, {"num_val": 4}],
    ids=lambda change: next(iter(change)),
)
def test_other_parameters_than_the_finished_ones_are_refused(change, tmp_path):
    root = tmp_path / "a"
    make("classification", root)
    key, value = next(iter(change.items()))
    with pytest.raises(InputError, match=rf"{root} .*{key}=\d+, not {value}.*delete it") as caught:
        make("classification", root, **change)
    assert "\n" not in str(caught.value)


def test_other_form_in_the_same_folder_is_refused(tmp_path):
    make("classification", tmp_path / "a")
    with pytest.raises(InputError, match="form=classification, not detection"):
        make("detection", tmp_path / "a")


def test_unfinished_dataset_with_other_parameters_is_refused(tmp_path):
    root = tmp_path / "a"
    make("classification", root)
    os.replace(root / "sample.json", root / "sample.unfinished.json")
    with pytest.raises(InputError, match="seed=0, not 3"):
        make("classification", root, seed=3)


def test_foreign_folder_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(InputError, match=rf"{tmp_path} holds other files"):
        make("detection", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="is a file"):
        make("detection", tmp_path / "x")


@pytest.mark.parametrize("content", ["{", "[]"])
def test_damaged_stamp_is_named(content, tmp_path):
    (tmp_path / "sample.json").write_text(content)
    with pytest.raises(InputError, match=r"sample\.json is damaged: delete the folder"):
        make("detection", tmp_path)


@pytest.mark.parametrize(
    ("numbers", "named"),
    [({"num_train": 0}, "num_train=0"), ({"num_val": -1}, "num_val=-1"), ({"seed": -2}, "seed=-2")],
)
def test_numbers_out_of_range_are_named_and_nothing_is_written(numbers, named, tmp_path):
    with pytest.raises(InputError, match=named):
        make("detection", tmp_path / "a", **numbers)
    assert not (tmp_path / "a").exists()


def test_an_empty_folder_is_used(tmp_path):
    assert make("classification", tmp_path)["instances"] == {"train": 10, "val": 3}
