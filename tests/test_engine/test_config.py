"""Three-line child configs reach every copy of a shared setting."""

from pathlib import Path

import pytest
from mmengine.config import DictAction

from mmsoftmor.engine.config import load_config
from mmsoftmor.errors import InputError

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODEL = """
recursion_depth = 4
model = dict(
    type="MaskRCNN",
    backbone=dict(type="SRViT", recursion_depth=recursion_depth),
    rpn_head=dict(type="RPNHead", num_classes=1),
    roi_head=dict(
        bbox_head=[dict(type="Shared2FCBBoxHead", num_classes=80) for _ in range(2)],
        mask_head=dict(type="FCNMaskHead", num_classes=80),
    ),
)
"""
DATA = """
data_root = "data/coco/"
classes = None
train_dataloader = dict(
    dataset=dict(
        type="MultiImageMixDataset",
        dataset=dict(
            type="ConcatDataset",
            datasets=[
                dict(type="CocoDataset", data_root=data_root, ann_file="train.json"),
                dict(type="CocoDataset", data_root="elsewhere/", ann_file="more.json"),
            ],
        ),
    )
)
val_dataloader = dict(
    dataset=dict(type="CocoDataset", data_root=data_root, ann_file="annotations/val.json")
)
test_dataloader = val_dataloader
val_evaluator = dict(type="CocoMetric", ann_file=data_root + "annotations/val.json")
test_evaluator = [val_evaluator]
"""


@pytest.fixture
def child(tmp_path):
    """Load a child with the given lines, two files below the one that declares the settings."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "data.py").write_text(DATA)
    (tmp_path / "shipped.py").write_text('_base_ = ["model.py", "data.py"]\n')

    def load(lines="", options=None, name="child.py", base="shipped.py"):
        (tmp_path / name).write_text(f'_base_ = "{base}"\n{lines}\n')
        return load_config(str(tmp_path / name), options)

    return load


def train_datasets(config):
    return config.train_dataloader.dataset.dataset.datasets


def class_counts(config):
    heads = config.model.roi_head
    return [head.num_classes for head in [*heads.bbox_head, heads.mask_head]]


def test_untouched_child_keeps_everything(child):
    config = child()
    assert train_datasets(config)[0].data_root == "data/coco/"
    assert "metainfo" not in config.val_dataloader.dataset
    assert class_counts(config) == [80, 80, 80]
    assert config.model.backbone.recursion_depth == 4
    assert config.val_evaluator.ann_file == "data/coco/annotations/val.json"


@pytest.mark.parametrize("root", ["/data/mine/", "/data/mine"])
def test_data_root_reaches_datasets_and_evaluators(child, root):
    config = child(f'data_root = "{root}"')
    assert [dataset.data_root for dataset in train_datasets(config)] == [root, "elsewhere/"]
    assert config.test_dataloader.dataset.data_root == root
    assert config.val_evaluator.ann_file == "/data/mine/annotations/val.json"
    assert config.test_evaluator[0].ann_file == "/data/mine/annotations/val.json"


def test_classes_reach_datasets_and_heads_but_not_the_rpn(child):
    config = child('classes = ("cat", "dog", "owl")\npalette = [(1, 2, 3)] * 3')
    for dataset in [*train_datasets(config), config.val_dataloader.dataset]:
        assert dataset.metainfo.classes == ("cat", "dog", "owl")
        assert dataset.metainfo.palette == [(1, 2, 3)] * 3
    assert class_counts(config) == [3, 3, 3]
    assert config.model.rpn_head.num_classes == 1


def test_recursion_depth_reaches_the_backbone(child):
    assert child("recursion_depth = 2").model.backbone.recursion_depth == 2


def test_explicit_nested_values_win(child):
    config = child(
        'data_root = "/new/"\nrecursion_depth = 2\nclasses = ("cat", "dog")\n'
        "model = dict(backbone=dict(recursion_depth=3), roi_head=dict(mask_head=dict("
        "num_classes=7)))\n"
        'val_dataloader = dict(dataset=dict(data_root="/own/", metainfo=dict(classes=("a",))))'
    )
    assert config.model.backbone.recursion_depth == 3
    assert class_counts(config) == [2, 2, 7]
    assert config.val_dataloader.dataset.data_root == "/own/"
    assert config.val_dataloader.dataset.metainfo.classes == ("a",)
    assert config.test_dataloader.dataset.data_root == "/new/"


def test_evaluator_follows_a_dataset_that_alone_changed(child):
    config = child('val_dataloader = dict(dataset=dict(ann_file="annotations/mine.json"))')
    assert config.val_evaluator.ann_file == "data/coco/annotations/mine.json"
    assert config.test_evaluator[0].ann_file == "data/coco/annotations/val.json"


def test_evaluator_that_was_set_on_purpose_stays(child):
    config = child('val_evaluator = dict(ann_file="/other/val.json")\ndata_root = "/new/"')
    assert config.val_evaluator.ann_file == "/other/val.json"


def test_options_of_the_command_line_reach_as_far(child):
    texts = ["data_root=/opt/", "recursion_depth=1", "classes=cat,dog"]
    options = {}
    for text in texts:
        key, value = text.split("=")
        options[key] = DictAction._parse_iterable(value)
    config = child("recursion_depth = 2", options)
    assert config.val_dataloader.dataset.data_root == "/opt/"
    assert config.val_evaluator.ann_file == "/opt/annotations/val.json"
    assert config.model.backbone.recursion_depth == 1
    assert class_counts(config) == [2, 2, 2]


def test_grandchild_follows_its_own_values(child):
    child('classes = ("cat", "dog")\ndata_root = "/parent/"', name="parent.py")
    inherited = child(base="parent.py", name="heir.py")
    assert class_counts(inherited) == [2, 2, 2]
    assert inherited.val_dataloader.dataset.data_root == "/parent/"
    changed = child('classes = ("a", "b", "c")', base="parent.py", name="rebel.py")
    assert class_counts(changed) == [3, 3, 3]
    assert changed.val_dataloader.dataset.metainfo.classes == ("a", "b", "c")


def test_segmentation_and_classification_heads_follow(child, tmp_path):
    (tmp_path / "shipped.py").write_text(
        "data_preprocessor = dict(num_classes=1000)\n"
        "classes = None\n"
        "model = dict(decode_head=dict(num_classes=150), auxiliary_head=[dict(num_classes=150)],"
        " head=dict(num_classes=1000))"
    )
    config = child('classes = ("a", "b")')
    counts = [config.model.decode_head, config.model.auxiliary_head[0], config.model.head]
    assert [head.num_classes for head in [*counts, config.data_preprocessor]] == [2, 2, 2, 2]


def test_one_class_without_a_comma_is_refused(child):
    with pytest.raises(InputError, match=r"one string: write a tuple, \('cat',\)"):
        child('classes = ("cat")')


def test_class_named_twice_is_refused(child):
    with pytest.raises(InputError, match="names a class twice"):
        child('classes = ("cat", "cat")')


def test_missing_base_is_named(child):
    with pytest.raises(InputError, match=r"missing.*nowhere\.py"):
        child(base="nowhere.py")


def test_failing_import_shows_the_inner_error_first(child, tmp_path, monkeypatch):
    (tmp_path / "breaks_inside.py").write_text("import surely_not_installed_either\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"ModuleNotFoundError: No module named 'surely_not"):
        child('custom_imports = dict(imports=["breaks_inside"], allow_failed_imports=False)')


def test_unknown_shipped_name_is_refused():
    with pytest.raises(InputError, match="no shipped config"):
        load_config("no_such_config_anywhere")


@pytest.mark.parametrize("line", ["max_epochs = 24", "train_cfg = dict(max_epochs=24)"])
def test_epochs_of_a_child_stretch_the_inherited_schedule(child, line):
    config = child(line, base="mmsoftmor::maskrcnn_srvit_s_1x_coco.py")
    warmup, steps = config.param_scheduler
    assert config.train_cfg.max_epochs == config.max_epochs == 24
    assert (steps["end"], list(steps["milestones"])) == (24, [16, 22])
    assert warmup["end"] == 500


@pytest.mark.parametrize("line", ["max_iters = 8000", "train_cfg = dict(max_iters=8000)"])
def test_iterations_of_a_child_stretch_the_inherited_schedule(child, line):
    config = child(line, base="mmsoftmor::upernet_srvit_s_ade20k.py")
    warmup, decay = config.param_scheduler
    assert config.train_cfg.max_iters == config.max_iters == 8000
    assert (decay["begin"], decay["end"], warmup["end"]) == (1500, 8000, 1500)


def test_dict_in_the_place_of_another_value_is_one_line(child):
    with pytest.raises(InputError, match=r"child\.py: data_root=.*_delete_=True") as caught:
        child('data_root = dict(path="/data")')
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data_root": dict(path="/data")}, "_delete_=True"),
        ({"test_evaluator.7.type": "X"}, "Index 7 exceeds"),
    ],
)
def test_option_that_does_not_fit_is_one_line(child, options, words):
    with pytest.raises(
        InputError, match=f"option that does not fit the config: .*{words}"
    ) as caught:
        child(options=options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('classes = ("a", "b")\npalette = [(1, 2, 3)]', "1 colours but classes 2 names"),
        ('classes = ("a",)\npalette = [(1, 2)]', r"\(1, 2\) is no colour"),
        ('classes = ("a",)\npalette = [(1, 2, 256)]', "is no colour"),
        ('classes = ("a",)\npalette = ["red"]', "'red' is no colour"),
        ("palette = [(1, 2, 3)]", "classes is not"),
    ],
)
def test_palette_that_does_not_fit_the_classes_is_refused(child, lines, words):
    with pytest.raises(InputError, match=words):
        child(lines)


@pytest.mark.parametrize("name", ["upernet_srvit_nano_sample", "maskrcnn_srvit_nano_sample"])
def test_palette_of_other_classes_goes_and_one_of_its_own_stays(tmp_path, name):
    def load(lines, base, file, options=None):
        (tmp_path / file).write_text(f'_base_ = "{base}"\n{lines}\n')
        return load_config(str(tmp_path / file), options)

    shipped = f"mmsoftmor::{name}.py"
    before = load_config(name)
    assert len(before.palette) == len(before.classes) == len(val_metainfo(before).palette)
    for changed in (
        load('classes = ("a", "b")', shipped, "parent.py"),
        load('data_root = "/data/"', "parent.py", "heir.py"),
        load("", shipped, "plain.py", {"classes": ["a", "b"]}),
    ):
        assert changed.palette is None
        assert val_metainfo(changed) == dict(classes=("a", "b"))
    own = load('classes, palette = ("a", "b"), [(1, 1, 1), (2, 2, 2)]', shipped, "own.py")
    assert val_metainfo(own).palette == own.palette == [(1, 1, 1), (2, 2, 2)]
    heir = load("", "own.py", "own_heir.py")
    assert val_metainfo(heir).palette == heir.palette == [(1, 1, 1), (2, 2, 2)]
    # The same colours, written again for other names, are meant.
    names = tuple(f"new {name}" for name in before.classes)
    lines = f"palette = {before.palette!r}\nclasses = {names!r}"
    again = load(lines, shipped, "again.py")
    assert again.palette == before.palette == val_metainfo(again).palette
    with pytest.raises(InputError, match="1 colours but classes 2"):
        load('classes = ("a", "b")\npalette = [(1, 1, 1)]', shipped, "wrong.py")


def val_metainfo(config):
    return config.val_dataloader.dataset.metainfo


@pytest.mark.parametrize(
    ("count", "lines", "expected"),
    [
        (3, "", (1,)),
        (5, "", (1, 5)),
        (3, "val_evaluator = dict(topk=(1, 2))", (1, 2)),
        (3, "val_evaluator = dict(topk=(1, 4))", (1, 4)),
        (3, "val_evaluator = dict(topk=(4,))", (4,)),
    ],
)
def test_inherited_topk_is_at_most_the_number_of_classes(tmp_path, count, lines, expected):
    child = tmp_path / "child.py"
    classes = tuple("abcdefg"[:count])
    child.write_text(f'_base_ = "mmsoftmor::srvit_t_in1k.py"\nclasses = {classes!r}\n{lines}\n')
    config = load_config(str(child))
    assert config.val_evaluator.topk == expected
    assert config.test_evaluator.topk == ((1, 5) if count == 5 else (1,))
    assert config.model.head.num_classes == config.data_preprocessor.num_classes == count


@pytest.mark.parametrize(
    "key",
    [
        "train_dataloader.dataset.pipeline.2.scale",
        "train_dataloader.dataset.pipeline.3.crop_size",
        "model.data_preprocessor.size",
        "crop_size",
    ],
)
def test_option_in_the_place_of_a_tuple_is_a_tuple(key):
    value = DictAction._parse_iterable("256,160")
    assert value == [256, 160]
    outer, _, last = key.rpartition(".")
    for options in ({key: value}, {outer: {last: value}} if outer else {key: value}):
        found = load_config("upernet_srvit_s_ade20k", options)
        for part in key.split("."):
            found = found[int(part) if part.isdigit() else part]
        assert found == (256, 160)


def test_option_in_the_place_of_a_list_stays_a_list():
    options = {"model.data_preprocessor.mean": [1, 2, 3], "model.decode_head.in_index": [3, 2]}
    model = load_config("upernet_srvit_s_ade20k", options).model
    assert (model.data_preprocessor.mean, model.decode_head.in_index) == ([1, 2, 3], [3, 2])


def test_schedule_that_a_child_wrote_itself_stays(child):
    config = child(
        'max_epochs = 24\nparam_scheduler = [dict(type="MultiStepLR", end=12, milestones=[3])]',
        base="mmsoftmor::maskrcnn_srvit_s_1x_coco.py",
    )
    assert config.train_cfg.max_epochs == 24
    assert config.param_scheduler == [dict(type="MultiStepLR", end=12, milestones=[3])]


def test_shipped_schedules_are_left_as_they_are_written():
    for name, milestones in (("", [89, 96]), ("_lsj-25e", [22, 24]), ("_3x-ms", [27, 33])):
        config = load_config(f"maskrcnn_srvit_s{name}_coco")
        assert list(config.param_scheduler[1]["milestones"]) == milestones


@pytest.mark.parametrize(
    ("epochs", "warmed", "cosine"),
    [(100, 5, (5, 100, 95)), (30, 5, (5, 30, 25)), (3, 1, (1, 3, 2)), (1, 1, (5, 300, 295))],
)
def test_warm_up_keeps_its_length_unless_it_would_be_all_there_is(epochs, warmed, cosine):
    warmup, decay = load_config("srvit_s_in1k", {"max_epochs": epochs}).param_scheduler
    assert warmup["end"] == warmed
    # Behind the only epoch nothing is reached.
    assert (decay["begin"], decay["end"], decay["T_max"]) == cosine


def test_warm_up_of_a_short_segmentation_run_is_short():
    warmup, decay = load_config("upernet_srvit_s_ade20k", {"max_iters": 1000}).param_scheduler
    assert (warmup["end"], decay["begin"], decay["end"]) == (9, 9, 1000)


def test_documented_config_of_another_size_is_the_shipped_one(tmp_path):
    texts = (DOCS / "segmentation.md").read_text(encoding="utf-8").split("```")
    (text,) = [text for text in texts if text.startswith("python") and "side = 640" in text]
    child = tmp_path / "child.py"
    child.write_text(text.removeprefix("python").replace("upernet_srvit_s_", "upernet_srvit_b_"))
    config, shipped = load_config(str(child)), load_config("upernet_srvit_b_640_ade20k")
    for split in ("train", "val", "test"):
        key = f"{split}_dataloader"
        assert config[key].dataset.pipeline == shipped[key].dataset.pipeline
        assert config[key].batch_size == shipped[key].batch_size
    assert config.tta_pipeline == shipped.tta_pipeline
    assert config.model.data_preprocessor == shipped.model.data_preprocessor
    assert config.model.test_cfg == dict(mode="whole")


def test_documented_option_changes_the_test_scale():
    text = (DOCS / "segmentation.md").read_text(encoding="utf-8")
    option = "test_dataloader.dataset.pipeline.1.scale=2560,640"
    assert option in text
    key, value = option.split("=")
    config = load_config("upernet_srvit_s_ade20k", {key: DictAction._parse_iterable(value)})
    step = config.test_dataloader.dataset.pipeline[1]
    assert (step.type, step.scale) == ("Resize", (2560, 640))


def test_documented_classifier_of_own_classes_counts_them(tmp_path):
    texts = (DOCS / "imagenet.md").read_text(encoding="utf-8").split("```")
    (text,) = [text for text in texts if text.startswith("python") and "classes" in text]
    (tmp_path / "child.py").write_text(text.removeprefix("python"))
    config = load_config(str(tmp_path / "child.py"))
    assert config.model.head.num_classes == config.data_preprocessor.num_classes == 3
    assert config.test_evaluator.topk == (1,)
    for dataset in (config.train_dataloader.dataset, config.val_dataloader.dataset):
        assert dataset.data_root == "/datasets/birds/"
        assert dataset.metainfo.classes == ("duck", "goose", "swan")
