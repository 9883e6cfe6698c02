"""The quickstart from sample data to picture, and what a second run leaves alone."""

from dataclasses import replace
from functools import partial

import cv2
import pytest

from mmsoftmor.analysis.pictures import GAP, ROW_HEIGHT
from mmsoftmor.apis import quickstart
from mmsoftmor.apis.configs import configs_dir
from mmsoftmor.datasets.sample import make_classification, make_detection, make_segmentation
from mmsoftmor.errors import InputError


def width_of_pairs(folder):
    """Width of a row of two images of the folder, each beside its prediction."""
    sizes = [cv2.imread(str(path)).shape[:2] for path in sorted(folder.glob("*.jpg"))[:2]]
    widths = [round(2 * width * ROW_HEIGHT / height) for height, width in sizes]
    return sum(widths) + 3 * GAP


@pytest.fixture
def shrink(monkeypatch, tmp_path):
    """Return a function that gives a job few images, and its options without pretraining."""

    def change(task, make_data, draw, count, held_out, shown, **options):
        job = replace(
            quickstart.JOBS[task],
            make_data=partial(make_data, num_train=count, num_val=held_out, progress=False),
            draw=partial(draw, images=shown),
        )
        monkeypatch.setitem(quickstart.JOBS, task, job)
        data_root = str(tmp_path / "data")
        return {**options, "data_root": data_root, "model.backbone.init_cfg": None}

    return change


def test_quickstart_leaves_metrics_weights_and_picture_and_is_not_done_twice(
    shrink, tmp_path, capsys
):
    options = {
        "train_cfg.max_epochs": 1,
        "train_dataloader.batch_size": 2,
        "model.neck.out_channels": 64,
    }
    draw = quickstart._draw_detections
    options = shrink("det", make_detection, draw, count=8, held_out=2, shown=2, **options)
    first = quickstart.run("det", str(tmp_path / "work"), dict(options))
    assert 0 <= first["coco/bbox_mAP"] <= 1 and 0 <= first["coco/segm_mAP"] <= 1
    picture = cv2.imread(str(tmp_path / "work" / "predictions.png"))
    assert picture.shape[0] == ROW_HEIGHT + 2 * GAP
    assert picture.shape[1] == width_of_pairs(tmp_path / "data" / "val2017")
    weights = tmp_path / "work" / "epoch_1.pth"
    written = weights.stat().st_mtime_ns
    assert "dist_train.sh configs/maskrcnn_srvit_s_coco.py" in capsys.readouterr().out

    second = quickstart.run("det", str(tmp_path / "work"), dict(options))
    assert weights.stat().st_mtime_ns == written
    assert second == first
    assert "already fine-tuned" in capsys.readouterr().out


@pytest.mark.parametrize("task", quickstart.JOBS)
def test_command_for_real_data_names_a_shipped_config(task):
    script, config, processes = quickstart.JOBS[task].real.removeprefix("bash ").split()
    root = configs_dir().parent
    assert (root / script).is_file() and (root / config).is_file() and int(processes) == 8


def test_segmentation_job_leaves_figures_weights_and_picture(shrink, tmp_path, capsys):
    options = {"train_cfg.max_iters": 2, "train_dataloader.batch_size": 2}
    draw = quickstart._draw_segmentations
    options = shrink("seg", make_segmentation, draw, count=8, held_out=2, shown=2, **options)
    figures = quickstart.run("seg", str(tmp_path / "work"), options)
    assert set(figures) == {"mIoU", "mAcc", "aAcc"}
    assert all(0 <= value <= 100 for value in figures.values())
    assert (tmp_path / "work" / "iter_2.pth").is_file()
    picture = cv2.imread(str(tmp_path / "work" / "predictions.png"))
    assert picture.shape[0] == ROW_HEIGHT + 2 * GAP
    assert picture.shape[1] == width_of_pairs(tmp_path / "data" / "images" / "validation")
    assert "dist_train.sh configs/upernet_srvit_s_ade20k.py" in capsys.readouterr().out


def test_classification_job_leaves_figures_weights_and_picture(shrink, tmp_path):
    options = {"train_cfg.max_epochs": 1, "train_dataloader.batch_size": 16}
    draw, shown = quickstart._draw_classes, range(2)
    options = shrink("cls", make_classification, draw, 48, held_out=48, shown=shown, **options)
    figures = quickstart.run("cls", str(tmp_path / "work"), options)
    assert 0 <= figures["accuracy/top1"] <= 100
    assert (tmp_path / "work" / "epoch_1.pth").is_file()
    assert cv2.imread(str(tmp_path / "work" / "predictions.png")).shape[0] > 256


def test_results_of_other_options_are_not_taken_for_these(tmp_path):
    quickstart._check_options(str(tmp_path), {"recursion_depth": 4})
    quickstart._check_options(str(tmp_path), {"recursion_depth": 4})
    with pytest.raises(InputError, match="other --cfg-options"):
        quickstart._check_options(str(tmp_path), {"recursion_depth": 1})
