"""The command that checks a config and its data without training."""

import importlib.util
from pathlib import Path

import cv2
import numpy as np
import pytest

from mmsoftmor.errors import InputError

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_data.py"
CHILD = """
_base_ = "mmsoftmor::upernet_srvit_t_ade20k.py"
data_root = {root!r}
classes = ("soil", "crop")
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that writes label values into both splits and runs the tool on them."""
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
        tool.main([str(tmp_path / "field.py"), *arguments])

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
