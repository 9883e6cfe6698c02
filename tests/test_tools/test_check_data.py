"""The command that checks a config and its data without training."""

import importlib.util
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from mmsoftmor.errors import InputError

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_data.py"
CHILD = """
_base_ = "mmsoftmor::upernet_srvit_t_ade20k.py"
data_root = {root!r}
classes = ("soil", "crop")
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that writes label values into both splits and runs the tool on them.

    Its ``again`` runs the tool on what is there.
    """
    spec = importlib.util.spec_from_file_location("check_data", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "field.py").write_text(CHILD.format(root=str(tmp_path)))

    def check(training, validation, *arguments):
        for split, values in (("training", training), ("validation", validation)):
            for kind in ("images", "annotations"):
                (tmp_path / kind / split).mkdir(parents=True, exist_ok=True)
            labels = np.array([values] * 3, np.uint8)
            cv2.imwrite(str(tmp_path / "annotations" / split / "a.png"), labels)
            image = np.zeros((*labels.shape, 3), np.uint8)
            cv2.imwrite(str(tmp_path / "images" / split / "a.jpg"), image)
        again(*arguments)

    def again(*arguments):
        tool.main([str(tmp_path / "field.py"), *arguments])

    check.again = again
    return check


def test_right_data_give_a_table_of_each_dataset(run, capsys):
    run([0, 1, 2, 255], [1, 1, 1, 2])
    out = capsys.readouterr().out
    for split in ("train", "val", "test"):
        assert f"{split}_dataloader.dataset: 1 of 1 label maps read, one channel" in out
    assert "1   75.000%  soil" in out
    assert "unlabelled: 50.000%" in out
    assert out.endswith("no mistake found\n")


def test_wrong_data_are_described_and_named(run, capsys):
    with pytest.raises(InputError, match=r"validation/a\.png: label value 3, but 2 classes"):
        run([0, 1, 2, 2], [0, 1, 2, 3])
    out = capsys.readouterr().out
    assert "3   25.000%  no class" in out
    assert "no mistake" not in out


def test_one_part_alone_can_be_checked(run, capsys):
    run([9, 9, 9, 9], [1, 2, 2, 2], "--part", "test")
    out = capsys.readouterr().out
    assert "test_dataloader" in out and "train_dataloader" not in out


MASK = np.array([[0, 1, 0, 1]] * 3, np.uint8)


@pytest.mark.parametrize(
    ("labels", "lines", "verdict"),
    [
        (MASK, ("reduce_zero_label = False",), "no mistake found"),
        (MASK * np.uint8(255), (), "for black-and-white masks set value_map"),
        (MASK * np.uint8(255), ("value_map = ((0, 1), (255, 2))",), "no mistake found"),
        (np.stack([MASK] * 3, axis=2), (), "3 channels"),
        (MASK + np.uint16(1), (), "no mistake found"),
        (MASK * np.uint16(300), (), "label value 300 does not fit 8 bits"),
        (Image.fromarray(MASK + np.uint8(1), mode="P"), (), "no mistake found"),
        (MASK * np.uint8(0), (), "every pixel of 1 label maps looked at is unlabelled"),
    ],
    ids=["0-1", "0-255", "0-255 mapped", "rgb", "16 bit", "16 bit wide", "palette", "empty"],
)
def test_verdict_on_each_form_of_mask(run, tmp_path, capsys, labels, lines, verdict):
    run([1, 1, 2, 2], [1, 1, 2, 2])
    with (tmp_path / "field.py").open("a") as config:
        config.write("\n".join(lines))
    if isinstance(labels, np.ndarray):
        labels = Image.fromarray(labels)
    elif labels.mode == "P":
        labels.putpalette([200, 10, 10, 10, 200, 10, 10, 10, 200])
    labels.save(tmp_path / "annotations" / "validation" / "a.png")
    if verdict == "no mistake found":
        run.again("--part", "test")
        assert capsys.readouterr().out.endswith("no mistake found\n")
    else:
        with pytest.raises(InputError, match=r"test_dataloader|a\.png") as caught:
            run.again("--part", "test")
        assert verdict in str(caught.value)


def test_class_folders_are_checked(run, tmp_path, capsys):
    for split in ("train", "val"):
        for folder in ("cat", "dog", "owl"):
            (tmp_path / split / folder).mkdir(parents=True)
            (tmp_path / split / folder / "x.png").touch()
    child = f'_base_ = "mmsoftmor::srvit_t_in1k.py"\ndata_root = {str(tmp_path)!r}\n'
    (tmp_path / "field.py").write_text(child)
    with pytest.raises(InputError, match=r"3 class folders but the config 1000 classes"):
        run.again()
    (tmp_path / "field.py").write_text(child + 'classes = ("cat", "dog", "owl")\n')
    run.again()
    assert capsys.readouterr().out.endswith("no mistake found\n")
