"""A classification dataset's folders or meta file fit its classes."""

from pathlib import Path

import pytest
from mmpretrain.datasets import CUB, CustomDataset, ImageNet

from mmsoftmor.engine.folder_check import SAMPLED, check_folders, finds_images_itself
from mmsoftmor.errors import InputError


@pytest.fixture
def build(tmp_path):
    """Return a function that makes class folders with an image each, and a dataset of them."""

    def make(folders, classes=None, image="x.jpg", **options):
        (tmp_path / "train").mkdir()
        for folder in folders:
            (tmp_path / "train" / folder).mkdir()
            (tmp_path / "train" / folder / image).touch()
        options.update(data_root=str(tmp_path), data_prefix="train", lazy_init=True)
        return CustomDataset(metainfo=dict(classes=classes) if classes else None, **options)

    return make


@pytest.fixture
def build_meta(tmp_path):
    """Return a function that makes images and a meta file of the given text."""

    def make(text, images=("a.jpg", "b.jpg"), **options):
        (tmp_path / "train").mkdir()
        for image in images:
            (tmp_path / "train" / image).touch()
        (tmp_path / "meta").mkdir()
        (tmp_path / "meta" / "train.txt").write_bytes(text.encode("latin-1"))
        options = dict(metainfo=dict(classes=("cat", "dog")), lazy_init=True, **options)
        return ImageNet(data_root=str(tmp_path), split="train", **options)

    return make


def refuse(dataset, *words, number=None):
    with pytest.raises(InputError) as caught:
        check_folders(dataset, "train_dataloader.dataset", number)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_types_that_read_folders_are_recognised():
    assert finds_images_itself(CustomDataset) and finds_images_itself(ImageNet)
    assert not finds_images_itself(CUB)


@pytest.mark.parametrize("classes", [None, ("cat", "dog"), ("Katze", "Hund")])
def test_folders_that_mmpretrain_reads_pass(build, classes):
    dataset = build(["dog", "cat"], classes)
    check_folders(dataset, "x", 2)
    dataset.full_init()
    assert [dataset.get_data_info(i)["gt_label"] for i in range(2)] == [0, 1]


@pytest.mark.parametrize("classes", [None, tuple(f"class {i}" for i in range(1000))])
def test_another_number_of_folders_is_named_with_the_mend(build, classes):
    words = ("train_dataloader.dataset: ", "/train' has 3 class folders", "1000 classes")
    mend = "set classes = ('cat', 'dog', 'owl') at the top of your config, or correct data_root"
    refuse(build(["cat", "dog", "owl"], classes), *words, mend, number=1000)


def test_the_folder_that_lacks_a_class_or_the_other_way_round_is_named(build):
    refuse(build(["cat", "owl"], ("cat", "dog", "owl")), "2 class folders", "class 'dog' has no f")


def test_hidden_folder_that_mmpretrain_counts_is_named(build):
    refuse(build([".cache", "a", "b"], ("a", "b")), "3 class folders", "'.cache' has no class")


def test_many_folders_are_not_all_listed(build):
    refuse(build([f"{i:03}" for i in range(50)], ("a", "b")), "('000', '001', ...)")


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (("dog", "cat", "owl"), ("class 0 is 'dog'", "label 0 is that of folder 'cat'")),
        (("cat", "Eule", "dog"), ("class 2 is 'dog'", "label 2 is that of folder 'owl'")),
    ],
)
def test_classes_in_another_order_than_their_folders_are_refused(build, classes, words):
    refuse(build(["owl", "dog", "cat"], classes), *words, "write classes = ('cat', 'dog', 'owl')")


def test_numbers_as_names_are_ordered_as_text(build):
    refuse(build(["1", "2", "10"], ("1", "2", "10")), "class 1 is '2'", "folder '10'")


def test_split_folder_without_folders_is_named(build):
    refuse(build([], ("a", "b")), "/train' has no class folder")


def test_missing_split_folder_is_named(tmp_path):
    refuse(ImageNet(data_root=str(tmp_path), split="val", lazy_init=True), "/val' does not exist")


@pytest.mark.parametrize("with_label", [True, False])
def test_folders_without_an_image_are_named(build, with_label):
    dataset = build(["a", "b"], ("a", "b"), image="x.webp", with_label=with_label)
    refuse(dataset, "no image in", "/train'", ".jpeg", ".tif")


def test_images_without_labels_need_no_class_folders(build, tmp_path):
    dataset = build([], ("a", "b"), with_label=False)
    (tmp_path / "train" / "x.JPG").touch()
    check_folders(dataset, "x", 2)
    assert len(dataset.load_data_list()) == 1


def test_meta_file_that_mmpretrain_reads_passes(build_meta):
    dataset = build_meta("a.jpg 1\na b.jpg 0\n", ("a.jpg", "a b.jpg"))
    check_folders(dataset, "x")
    assert [sample["gt_label"] for sample in dataset.load_data_list()] == [1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.jpg 0\nb.jpg 2\n", ("line 2 has label 2", "2 classes", "0 to 1")),
        ("a.jpg 0\nb.jpg -1\n", ("line 2 is 'b.jpg -1'", "PATH LABEL")),
        ("a.jpg\n", ("line 1 is 'a.jpg'", "PATH LABEL")),
        ("a.jpg,0\n", ("line 1 is 'a.jpg,0'",)),
        ("a.jpg cat\n", ("line 1 is 'a.jpg cat'",)),
        ("a.jpg 0\n\nb.jpg 1\n", ("line 2 is ''",)),
        ("", ("has no line",)),
        ("a.jpg 0\nc.jpg 1\n", ("line 2 names image", "/train/c.jpg'", "data_prefix")),
        ("\xe9.jpg 0\n", ("no UTF-8",)),
    ],
)
def test_line_of_a_meta_file_that_cannot_be_meant_is_named(build_meta, text, words):
    refuse(build_meta(text), "meta/train.txt: ", *words)


def test_images_of_a_meta_file_are_sampled_but_labels_are_not(build_meta, monkeypatch):
    lines = [f"{i}.jpg 0" for i in range(1000)]
    dataset = build_meta("\n".join(lines), ())
    looked_for = []
    monkeypatch.setattr("os.path.isfile", lambda path: looked_for.append(path) or True)
    check_folders(dataset, "x")
    assert SAMPLED <= len(looked_for) <= SAMPLED + 1
    lines[998] = "998.jpg 5"
    Path(dataset.ann_file).write_text("\n".join(lines))
    refuse(dataset, "line 999 has label 5")
