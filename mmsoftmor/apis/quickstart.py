"""Each task's job on the sample dataset, from nothing to a table and a picture."""

import os
import os.path as osp
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmengine import load
from mmengine.config import Config

from mmsoftmor.datasets.sample import make_classification, make_detection, make_segmentation
from mmsoftmor.engine.atomic import write_json
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test, train
from mmsoftmor.errors import InputError

PICTURE_IMAGES = 6
CLASSIFIED_IMAGES = range(0, 1920, 120)  # the test images are sorted by class


@dataclass(frozen=True)
class Job:
    """One task of the quickstart.

    Attributes:
        config (str): Name of the shipped config.
        make_data (Callable): Writes the sample data into the config's ``data_root``.
        draw (Callable): Draws predictions beside ground truth: (config, checkpoint, path).
        figures (dict[str, str]): Title of each metric that is printed at the end.
        real (str): The command for the real dataset.
        caption (str): What the picture shows.
    """

    config: str
    make_data: Callable
    draw: Callable
    figures: dict[str, str]
    real: str
    caption: str = "ground truth left, prediction right"


def _draw_detections(
    config: Config, checkpoint: str, path: str, images: int = PICTURE_IMAGES
) -> None:
    from mmdet.apis import init_detector

    from mmsoftmor.analysis.pictures import draw_predictions

    model = init_detector(config, checkpoint, palette="none", device=_device())
    draw_predictions(model, config, range(images), path, pred_score_thr=0.4)


def _draw_segmentations(
    config: Config, checkpoint: str, path: str, images: int = PICTURE_IMAGES
) -> None:
    from mmseg.apis import init_model

    from mmsoftmor.analysis.pictures import draw_predictions

    model = init_model(config, checkpoint, device=_device())
    draw_predictions(model, config, range(images), path)


def _draw_classes(
    config: Config, checkpoint: str, path: str, images: Sequence[int] = CLASSIFIED_IMAGES
) -> None:
    from mmpretrain.apis import get_model

    from mmsoftmor.analysis.pictures import draw_classes

    model = get_model(config, pretrained=checkpoint, device=_device())
    draw_classes(model, config, images, path)


def _device() -> str:
    from mmengine.device import get_device

    return get_device()


JOBS = {
    "det": Job(
        config="maskrcnn_srvit_nano_sample",
        make_data=make_detection,
        draw=_draw_detections,
        figures={"coco/bbox_mAP": "box mAP", "coco/segm_mAP": "mask mAP"},
        real="bash tools/dist_train.sh configs/maskrcnn_srvit_s_coco.py 8",
    ),
    "seg": Job(
        config="upernet_srvit_nano_sample",
        make_data=make_segmentation,
        draw=_draw_segmentations,
        figures={"mIoU": "mIoU %", "mAcc": "mAcc %", "aAcc": "aAcc %"},
        real="bash tools/dist_train.sh configs/upernet_srvit_s_ade20k.py 8",
    ),
    "cls": Job(
        config="srvit_nano_sample",
        make_data=make_classification,
        draw=_draw_classes,
        figures={"accuracy/top1": "top-1 %"},
        real="bash tools/dist_train.sh configs/srvit_s_in1k.py 8",
        caption="true and predicted class",
    ),
}


def run(task: str = "det", work_dir: str | None = None, options: dict | None = None) -> dict:
    """Make sample data, fine-tune, evaluate and draw; what is done already is not done again.

    Args:
        task (str): A key of :data:`JOBS`. Defaults to ``'det'``.
        work_dir (str, optional): Folder of the results. Defaults to None:
            ``work_dirs/quickstart_TASK``.
        options (dict, optional): Config values to override. Defaults to None.

    Returns:
        dict: The metrics by name.

    Raises:
        InputError: The sample folder holds something else, or an option is wrong.
    """
    job, began = JOBS[task], time.monotonic()
    config = load_config(job.config, options)
    config.work_dir = work_dir = work_dir or osp.join("work_dirs", f"quickstart_{task}")

    _check_options(work_dir, options)

    _say(f"1/4 sample data in {config.data_root}")
    job.make_data(config.data_root)

    unit, length = _length(config)
    checkpoint = osp.join(work_dir, f"{unit}_{length}.pth")
    if osp.exists(checkpoint):
        _say(f"2/4 already fine-tuned: {checkpoint}")
    else:
        _say(f"2/4 fine-tuning {job.config}: {length} {unit}s")
        train(config, work_dir=work_dir, resume="auto")

    _say("3/4 evaluating on the held-out images")
    metrics = test(config, checkpoint, work_dir=work_dir)

    picture = osp.join(work_dir, "predictions.png")
    _say(f"4/4 drawing {picture}")
    job.draw(config, checkpoint, picture)

    # COCO's metric gives no figures where nothing at all was detected: that is an mAP of 0.
    figures = ", ".join(
        f"{title} {metrics.get(name, 0):.3f}" for name, title in job.figures.items()
    )
    _say(f"done in {(time.monotonic() - began) / 60:.1f} minutes: {figures}")
    print(
        f"  results: {osp.join(work_dir, 'test_metrics.json')}\n"
        f"  picture: {picture} ({job.caption})\n"
        f"  weights: {checkpoint}\n"
        f"  on real data: {_activation()}{job.real}"
    )
    return metrics


def _check_options(work_dir: str, options: dict | None) -> None:
    """Refuse to take the results of other options for these."""
    path, given = (
        osp.join(work_dir, "quickstart_options.json"),
        repr(sorted((options or {}).items())),
    )
    if not osp.exists(path):
        os.makedirs(work_dir, exist_ok=True)
        write_json(path, {"cfg_options": given})
    elif load(path)["cfg_options"] != given:
        raise InputError(
            f"{work_dir} holds a run with other --cfg-options: remove it or name another --work-dir"
        )


def _activation() -> str:
    """The command that a shell needs first: the environment is ours if none was active."""
    if "VIRTUAL_ENV" in os.environ or "CONDA_PREFIX" in os.environ:
        return ""
    return f"source {osp.join(sys.prefix, 'bin', 'activate')} && "


def _length(config: Config) -> tuple[str, int]:
    """What the training counts, as in the names of its checkpoints, and up to where."""
    epochs = config.train_cfg.get("max_epochs")
    return ("epoch", epochs) if epochs else ("iter", config.train_cfg.max_iters)


def _say(message: str) -> None:
    print(f"\n[quickstart] {message}", flush=True)
