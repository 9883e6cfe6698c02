"""The shipped S config trains and evaluates on real images; mistakes in the data are refused.

Changed through options are only the data root, the sizes and counts that make the runs short, the
starting weights, and what a CPU asks for.
"""

import json
import math
import pickle

import pytest
import torch
from mmdet.registry import MODELS

from mmsoftmor.engine import preflight
from mmsoftmor.engine.launch import test as evaluate
from mmsoftmor.engine.launch import train
from mmsoftmor.errors import InputError

SIZE = (128, 128)
SMALL = {
    "model.backbone.init_cfg.checkpoint": None,
    "model.data_preprocessor.batch_augments.0.size": SIZE,
    "train_dataloader.dataset.pipeline.3.scale": SIZE,
    "train_dataloader.dataset.pipeline.4.crop_size": SIZE,
    "test_dataloader.dataset.pipeline.1.scale": SIZE,
    "test_dataloader.num_workers": 0,
    "test_dataloader.persistent_workers": False,
    # Fewer regions for each image: at this size the heads would take nearly all of the time.
    "model.train_cfg.rcnn.sampler.num": 32,
    "model.test_cfg.rpn.max_per_img": 20,
    "model.test_cfg.rcnn.max_per_img": 10,
}
TRAINING = {
    "train_dataloader.batch_size": 2,
    "train_dataloader.num_workers": 0,
    "train_dataloader.dataset.indices": 4,
    "default_hooks.checkpoint.interval": 1000,
    "default_hooks.checkpoint.save_last": False,
    "param_scheduler.0.end": 2,  # the warm-up, 250 steps in the recipe
    "train_cfg.max_epochs": 1,
    "val_dataloader": None,
    "val_evaluator": None,
    "val_cfg": None,
}


@pytest.fixture
def losses(coco_config, tmp_path):
    """Return a function that trains and returns the total loss of every step."""

    def run(options, *, full_precision=False, amp=False):
        config = coco_config(options={**SMALL, **TRAINING, **options})
        if full_precision:
            config.optim_wrapper.pop("dtype")
            config.optim_wrapper.type = "OptimWrapper"
        runner = train(config, work_dir=str(tmp_path / "work"), amp=amp)
        history, _ = runner.message_hub.get_scalar("train/loss").data
        assert len(history) == runner.max_iters
        return history.tolist()

    return run


@pytest.mark.slow
def test_loss_falls_on_real_images(losses):
    history = losses({"train_cfg.max_epochs": 4})
    assert all(math.isfinite(loss) for loss in history)
    assert sum(history[-3:]) < 0.9 * sum(history[:3])


def test_mixed_precision_switch_gives_the_loss_of_full_precision(losses):
    one = {"train_dataloader.dataset.indices": 2}
    full, mixed = losses(one, full_precision=True), losses(one, full_precision=True, amp=True)
    assert full != mixed
    assert mixed == pytest.approx(full, rel=0.02)


def test_a_batch_without_any_object_trains(losses, coco_root):
    content = json.loads((coco_root / "annotations/instances_train2017.json").read_text())
    occupied = {item["image_id"] for item in content["annotations"]}
    ids = sorted(image["id"] for image in content["images"])
    empty = [index for index, key in enumerate(ids) if key not in occupied]
    assert len(empty) == 2
    options = {"train_dataloader.dataset.filter_cfg": None}
    history = losses({**options, "train_dataloader.dataset.indices": empty})
    assert math.isfinite(history[0]) and history[0] > 0


@pytest.mark.slow
def test_all_validation_images_pass_the_stock_metric(coco_config, build, tmp_path):
    options = {"model.test_cfg.rcnn.score_thr": 0.0}  # random weights stay below the recipe's 0.05
    config = coco_config(options={**SMALL, **options})
    model = build(MODELS, config.model)
    model.init_weights()
    torch.save({"state_dict": model.state_dict()}, tmp_path / "random.pth")
    outputs = tmp_path / "predictions.pkl"
    metrics = evaluate(
        config, str(tmp_path / "random.pth"), work_dir=str(tmp_path), out=str(outputs)
    )
    predictions = pickle.loads(outputs.read_bytes())
    assert [len(item["pred_instances"]["scores"]) for item in predictions] == [10] * 25
    sizes = ("", "_50", "_75", "_s", "_m", "_l")
    wanted = {f"coco/{kind}_mAP{size}" for kind in ("bbox", "segm") for size in sizes}
    assert metrics.keys() == wanted
    assert all(0 <= value < 0.05 for value in metrics.values())


@pytest.mark.parametrize("mode", ["train", "test"])
def test_preflight_accepts_the_real_data(coco_config, mode):
    preflight.check(coco_config(), mode)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data_root": "nowhere/coco"}, r"data_root = 'nowhere/coco' is no folder"),
        ({"classes": ("pawn", "rook")}, r"'person'.*is a class of.*'pawn', 'rook'.*set classes"),
        ({"classes": "person"}, r"is one string: write a tuple, \('person',\)"),
    ],
)
def test_data_that_does_not_fit_is_refused_in_one_line(coco_config, options, message):
    with pytest.raises(InputError, match=message) as error:
        preflight.check(coco_config(options=options))
    assert "\n" not in str(error.value)


def test_annotations_in_place_of_the_data_root_are_refused_in_one_line(coco_config, coco_root):
    wrong = str(coco_root / "annotations")
    with pytest.raises(InputError, match=r"instances_train2017\.json' does not exist") as error:
        preflight.check(coco_config(options={"data_root": wrong}))
    assert "\n" not in str(error.value)
