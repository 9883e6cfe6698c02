"""What the launch functions add to the runner, seen in runs of seconds."""

import json
import pickle

import pytest
import torch
from mmdet.registry import MODELS
from mmengine.config import Config

from mmsoftmor.engine.distributed import plain_batch_norm, read_rank
from mmsoftmor.engine.launch import test as evaluate
from mmsoftmor.engine.launch import train
from mmsoftmor.errors import InputError


def test_training_leaves_its_config_argument_alone(tiny):
    config = tiny(train_cfg__max_epochs=1)
    before = config.pretty_text
    train(config, amp=True, auto_scale_lr=True)
    assert config.pretty_text == before


def test_work_dir_defaults_to_the_name_of_the_config(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = tiny(train_cfg__max_epochs=1)
    config.pop("work_dir")
    train(config)
    assert (tmp_path / "work_dirs" / "tiny" / "epoch_1.pth").is_file()


@pytest.mark.parametrize("key", ["train_dataloader", "optim_wrapper"])
def test_config_without_a_training_part_is_refused(tiny, key):
    config = tiny()
    config.pop(key)
    with pytest.raises(InputError, match=f"has no {key}"):
        train(config)


def test_preflight_stands_before_training(tiny):
    config = tiny(fp16=True)
    with pytest.raises(InputError, match="fp16 -> --amp"):
        train(config)


def test_launcher_without_its_variables_is_refused(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(InputError, match=r"RANK is not set.*dist_train\.sh"):
        read_rank("pytorch")


def test_evaluation_writes_its_figures(tiny, checkpoints, tmp_path):
    metrics = evaluate(tiny(), checkpoints["full"], out=str(tmp_path / "sub" / "all.pkl"))
    written = json.loads((tmp_path / "work" / "test_metrics.json").read_text())
    assert written["metrics"] == metrics
    assert written["checkpoint"] == checkpoints["full"]
    with open(tmp_path / "sub" / "all.pkl", "rb") as file:
        predictions = pickle.load(file)
    right = [int(item["pred_label"]) == int(item["gt_label"]) for item in predictions]
    assert metrics["accuracy/top1"] == pytest.approx(100 * sum(right) / 16)
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["all.pkl"]


def test_evaluation_draws_pictures(tiny, checkpoints, tmp_path):
    config = tiny()
    config.default_hooks.visualization = dict(type="VisualizationHook")
    config.visualizer = dict(type="UniversalVisualizer", vis_backends=[])
    evaluate(config, checkpoints["full"], show_dir=str(tmp_path / "pictures"))
    assert len(list((tmp_path / "pictures").rglob("*.png"))) == 16


def test_pictures_without_a_hook_are_refused(tiny, checkpoints, tmp_path):
    with pytest.raises(InputError, match=r"default_hooks\.visualization"):
        evaluate(tiny(), checkpoints["full"], show_dir=str(tmp_path))


def test_identity_augmentation_equals_plain_evaluation(tiny, checkpoints, tmp_path):
    def scores(name, **options):
        evaluate(options.pop("config"), checkpoints["full"], out=str(tmp_path / name), **options)
        with open(tmp_path / name, "rb") as file:
            return torch.stack([item["pred_score"] for item in pickle.load(file)])

    config = tiny()
    *steps, pack = config.test_dataloader.dataset.pipeline
    config.tta_model = dict(type="AverageClsScoreTTA")
    config.tta_pipeline = [*steps, dict(type="TestTimeAug", transforms=[[pack]])]
    plain = scores("plain.pkl", config=tiny())
    torch.testing.assert_close(scores("tta.pkl", config=config, tta=True), plain)


def test_detector_with_augmentation_evaluates_boxes_alone(detector, tmp_path):
    checkpoint = str(tmp_path / "untrained.pth")
    config = detector()
    torch.save(MODELS.build(config.model).state_dict(), checkpoint)
    load, resize, pack = config.test_dataloader.dataset.pipeline
    pack = dict(pack, meta_keys=(*pack.meta_keys, "flip", "flip_direction"))
    flips = [dict(type="RandomFlip", prob=1.0), dict(type="RandomFlip", prob=0.0)]
    config.tta_model = dict(
        type="DetTTAModel",
        tta_cfg=dict(nms=dict(type="nms", iou_threshold=0.5), max_per_img=5),
    )
    config.tta_pipeline = [
        load,
        dict(
            type="TestTimeAug",
            transforms=[[resize], flips, [dict(type="LoadAnnotations", with_bbox=True)], [pack]],
        ),
    ]
    plain = evaluate(detector(), checkpoint)
    assert {name.split("_")[0] for name in plain} == {"coco/bbox", "coco/segm"}
    augmented = evaluate(config, checkpoint, tta=True)
    assert {name.split("_")[0] for name in augmented} == {"coco/bbox"}


def test_augmentation_that_the_config_lacks_is_refused(tiny, checkpoints):
    with pytest.raises(InputError, match="tta_model and tta_pipeline"):
        evaluate(tiny(), checkpoints["full"], tta=True)


def test_out_must_be_a_pickle(tiny, checkpoints):
    with pytest.raises(InputError, match=r"\.pkl"):
        evaluate(tiny(), checkpoints["full"], out="results.json")


def test_missing_checkpoint_is_named(tiny):
    with pytest.raises(InputError, match=r"'gone\.pth' does not exist"):
        evaluate(tiny(), "gone.pth")


def test_sync_batch_norm_becomes_plain_at_every_depth():
    def model(norm):
        from mmseg.registry import MODELS

        head = dict(in_channels=8, channels=4, num_classes=2, norm_cfg=dict(type=norm))
        config = Config(
            dict(
                model=dict(
                    type="mmseg.EncoderDecoder",
                    backbone=dict(
                        type="mmseg.ResNetV1c",
                        depth=18,
                        base_channels=8,
                        norm_cfg=dict(type=norm, requires_grad=True),
                    ),
                    decode_head=dict(type="mmseg.FCNHead", in_index=0, num_convs=1, **head),
                    auxiliary_head=[dict(type="mmseg.FCNHead", in_index=0, num_convs=1, **head)],
                )
            )
        )
        synced = MODELS.build(config.model)
        plain_batch_norm(config.model)
        return synced, MODELS.build(config.model)

    synced, plain = model("SyncBN")

    def has_sync(model):
        return any(isinstance(module, torch.nn.SyncBatchNorm) for module in model.modules())

    assert has_sync(synced) and not has_sync(plain)
    assert plain.state_dict().keys() == synced.state_dict().keys()
    plain.load_state_dict(synced.state_dict())
    image = torch.rand(1, 3, 32, 32)
    with torch.no_grad():
        ours, theirs = plain.eval()(image), synced.eval()(image)
    torch.testing.assert_close(ours, theirs)


def test_flexible_runner_of_a_config_is_used(tiny, tmp_path):
    config = tiny(runner_type="FlexibleRunner", train_cfg__max_epochs=1)
    config.update(strategy=dict(type="SingleDeviceStrategy"), env_cfg=dict())
    runner = train(config)
    assert type(runner).__name__ == "FlexibleRunner"
    assert runner.iter == 4 and (tmp_path / "work" / "epoch_1.pth").is_file()
    with pytest.raises(InputError, match=r"'FlexibleRunner': set optim_wrapper\.optimizer\.lr"):
        train(config, auto_scale_lr=True)
