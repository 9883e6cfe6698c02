"""Evaluating and predicting with a segmentor, with and without labels and augmentation."""

import pickle

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope

from mmsoftmor.datasets.sample import make_segmentation
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test as evaluate
from mmsoftmor.engine.launch import train

CONFIG = "upernet_srvit_nano_sample"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seg") / "data"
    make_segmentation(folder, num_train=1, num_val=2, progress=False)
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A checkpoint of the sample config's model with random weights."""
    from mmseg.registry import MODELS
    from mmseg.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    torch.manual_seed(0)
    model = load_config(CONFIG).model
    with DefaultScope.overwrite_default_scope("mmseg"):
        state = MODELS.build(model).state_dict()
    path = tmp_path_factory.mktemp("weights") / "random.pth"
    torch.save(dict(state_dict=state, meta={}), path)
    return str(path)


@pytest.fixture
def config(root, tmp_path):
    """Load the sample config on two images, loading in the main process."""

    def load(**options):
        return load_config(
            CONFIG,
            {
                "data_root": str(root),
                "work_dir": str(tmp_path / "work"),
                "test_dataloader.num_workers": 0,
                "test_dataloader.persistent_workers": False,
                "log_level": "WARNING",
                **options,
            },
        )

    return load


def unlabelled(config, folder):
    """The same data as a test set whose labels nobody has."""
    for key in ("test_dataloader", "val_dataloader"):
        del config[key].dataset.data_prefix["seg_map_path"]
    config.test_evaluator = dict(type="IoUMetric", format_only=True, output_dir=str(folder))
    return config


def label_maps(path):
    with open(path, "rb") as file:
        return [item["pred_sem_seg"]["data"] for item in pickle.load(file)]


def test_evaluation_gives_the_three_figures_and_pictures(config, weights, tmp_path):
    figures = evaluate(config(), weights, show_dir=str(tmp_path / "pictures"))
    assert set(figures) == {"mIoU", "mAcc", "aAcc"}
    assert len(list((tmp_path / "pictures").rglob("*.png"))) == 2


def test_views_are_merged_with_labels_at_hand(config, weights, tmp_path):
    out = tmp_path / "all.pkl"
    figures = evaluate(config(), weights, tta=True, out=str(out))
    assert set(figures) == {"mIoU", "mAcc", "aAcc"}
    assert len(label_maps(out)) == 2


def test_one_plain_view_gives_the_figures_of_no_augmentation(config, weights, tmp_path):
    plain = evaluate(config(), weights, out=str(tmp_path / "plain.pkl"))
    once = config()
    once.tta_pipeline[1].transforms[0] = once.tta_pipeline[1].transforms[0][1:2]  # 256 x 256
    once.tta_pipeline[1].transforms[1] = once.tta_pipeline[1].transforms[1][:1]  # not flipped
    assert evaluate(once, weights, tta=True, out=str(tmp_path / "tta.pkl")) == plain
    pairs = zip(label_maps(tmp_path / "tta.pkl"), label_maps(tmp_path / "plain.pkl"), strict=True)
    for augmented, alone in pairs:
        torch.testing.assert_close(augmented, alone)


@pytest.mark.parametrize("tta", [False, True])
def test_images_without_labels_are_predicted_and_saved(config, weights, root, tmp_path, tta):
    folder, out = tmp_path / "maps", tmp_path / "all.pkl"
    config = unlabelled(config(), folder)
    assert evaluate(config, weights, tta=tta, out=str(out)) == {}
    predicted = label_maps(out)
    images = sorted((root / "images" / "validation").iterdir())
    for image, labels in zip(images, predicted, strict=True):
        saved = cv2.imread(str(folder / f"{image.stem}.png"), cv2.IMREAD_UNCHANGED)
        assert saved.shape == cv2.imread(str(image)).shape[:2]
        np.testing.assert_array_equal(saved, labels[0] + 1, "written as ADE20K's labels are")


def test_sync_batch_norm_trains_and_predicts_on_one_process_without_being_told(
    config, root, tmp_path
):
    from mmseg.apis import inference_model, init_model

    options = {
        "model.decode_head.norm_cfg.type": "SyncBN",
        "model.auxiliary_head.norm_cfg.type": "SyncBN",
        "model.backbone.init_cfg": None,
        "train_dataloader.num_workers": 0,
        "train_dataloader.batch_size": 2,
        "train_cfg.max_iters": 1,
        "val_dataloader": None,
        "val_evaluator": None,
        "val_cfg": None,
        "default_hooks.checkpoint.save_best": None,
    }
    train(config(**options))
    model = init_model(config(**options), str(tmp_path / "work" / "iter_1.pth"), device="cpu")
    assert any(isinstance(module, torch.nn.SyncBatchNorm) for module in model.modules())
    path = sorted((root / "images" / "validation").iterdir())[0]
    sample = inference_model(model, str(path))
    assert sample.pred_sem_seg.data.shape == (1, *cv2.imread(str(path)).shape[:2])
