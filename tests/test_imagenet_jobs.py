"""The ImageNet configs run end to end on a dozen images, in one process and in two."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import multiprocessing

from mmsoftmor.datasets.sample import make_classification
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.distributed import end_process
from mmsoftmor.engine.launch import test as evaluate
from mmsoftmor.engine.launch import train

TINY = dict(_delete_=True, embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Twelve images for training and twelve for validation, a folder for each of twelve classes."""
    root = tmp_path_factory.mktemp("folders") / "imagenet"
    make_classification(root, num_train=12, num_val=12, progress=False)
    return root


@pytest.fixture(scope="module")
def meta_files(folders, tmp_path_factory):
    """The same images without folders, their labels in OpenMMLab's meta files."""
    root = tmp_path_factory.mktemp("meta_files")
    (root / "meta").mkdir()
    for split in ("train", "val"):
        (root / split).mkdir()
        lines = []
        for label, name in enumerate(class_names(folders)):
            for image in sorted((folders / split / name).iterdir()):
                shutil.copy(image, root / split / f"{label}_{image.name}")
                lines.append(f"{label}_{image.name} {label}\n")
        (root / "meta" / f"{split}.txt").write_text("".join(lines))
    return root


def class_names(folders):
    return sorted(path.name for path in (folders / "train").iterdir())


def shrunk(name, data_root, classes, work_dir, side=32, epochs=1, **options):
    """A shipped config on twelve classes at ``side`` pixels, one epoch of batches of four."""
    loaders = {
        f"{split}_dataloader.{key}": value
        for split in ("train", "val", "test")
        for key, value in (("batch_size", 4), ("num_workers", 0), ("persistent_workers", False))
    }
    crops = {
        f"{split}_dataloader.dataset.pipeline.{key}": value
        for split in ("val", "test")
        for key, value in (("1.scale", side + 4), ("2.crop_size", side))
    }
    return load_config(
        name,
        {
            **loaders,
            **crops,
            "train_dataloader.dataset.pipeline.1.scale": side,
            "model.backbone.arch": TINY,
            "model.backbone.img_size": side,
            "model.head.in_channels": 32,
            "data_root": str(data_root),
            "classes": tuple(classes),
            "train_cfg.max_epochs": epochs,
            "train_cfg.val_interval": epochs,
            "work_dir": str(work_dir),
            "log_level": "WARNING",
            **options,
        },
    )


FIGURES = [f"accuracy/top{k}{of}" for k in (1, 5) for of in ("", "_origin")]


@pytest.mark.parametrize("layout", ["folders", "meta_files"])
def test_job_runs_on_either_layout_without_a_word_about_it(layout, folders, request, tmp_path):
    root = request.getfixturevalue(layout)
    config = shrunk("srvit_t_in1k", root, class_names(folders), tmp_path)
    runner = train(config)
    dataset = runner.train_dataloader.dataset
    assert dataset.ann_file == (str(root / "meta/train.txt") if layout == "meta_files" else "")
    assert sorted(dataset[i]["data_samples"].gt_label.item() for i in range(12)) == [*range(12)]
    assert runner.iter == 3
    for figure in FIGURES:
        assert 0 <= runner.message_hub.get_scalar(f"val/{figure}").current() <= 100


# Rates of the last iterations: the end of the warm-up, then a cosine of three steps or a constant.
LAST_RATES = {
    "srvit_t_in1k": [1e-3, 1e-3, 1e-5 + 0.75 * 9.9e-4, 1e-5 + 0.25 * 9.9e-4],
    "srvit_t_384_in1k": [5e-6] * 4,
}


@pytest.mark.parametrize("name", LAST_RATES)
def test_job_runs_through_the_shipped_schedule(name, folders, tmp_path):
    config = shrunk(name, folders, class_names(folders), tmp_path, epochs=6, load_from=None)
    runner = train(config)
    assert runner.iter == 18
    history, _ = runner.message_hub.get_scalar("train/lr").data
    assert history[0] == pytest.approx(1e-6)
    assert history[-4:] == pytest.approx(LAST_RATES[name])
    assert (tmp_path / "epoch_6.pth").is_file()


def test_fine_tuning_at_a_higher_resolution_starts_from_the_averaged_weights(folders, tmp_path):
    names = class_names(folders)
    train(shrunk("srvit_s_in1k", folders, names, tmp_path / "low"))
    path = str(tmp_path / "low" / "epoch_1.pth")
    low = torch.load(path, weights_only=False)
    config = shrunk(
        "srvit_s_384_in1k",
        folders,
        names,
        tmp_path / "high",
        side=48,
        load_from=path,
        **{"optim_wrapper.optimizer.lr": 0.0},
    )
    high = torch.load(_last_of(train(config)), weights_only=False)["state_dict"]
    assert high["backbone.pos_embed"].shape == (1, 10, 32)
    name = "backbone.layers.3.attn.qkv.weight"
    torch.testing.assert_close(high[name], low["state_dict"][name])
    assert not torch.equal(low["state_dict"][name], low["ema_state_dict"][f"module.{name}"])
    assert set(evaluate(config, path, work_dir=str(tmp_path / "test"))) >= {"accuracy/top5"}


def _last_of(runner):
    return Path(runner.work_dir) / "epoch_1.pth"


@HOOKS.register_module()
class RecordDepths(Hook):
    """Writes down each iteration's depth and a sum of the weights at the end."""

    priority = "LOWEST"

    def before_train(self, runner):
        self.depths = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.depths.append(runner.model.module.backbone.active_depth)

    def after_train(self, runner):
        model = runner.model.module
        record = dict(
            rank=runner.rank,
            depths=self.depths,
            final=model.backbone.active_depth,
            weights=sum(p.double().sum().item() for p in model.parameters()),
        )
        Path(runner.work_dir, f"{runner.rank}.json").write_text(json.dumps(record))


def _work(rank, options, port):
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=port,
        CUDA_VISIBLE_DEVICES="-1",
    )
    config = shrunk(**options)
    config.custom_hooks += [dict(type="ProgressiveDepthHook"), dict(type="RecordDepths")]
    train(config, launcher="pytorch")
    end_process()


def test_two_processes_draw_the_same_depths_and_keep_the_same_weights(folders, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = dict(
        name="srvit_t_in1k", data_root=folders, classes=class_names(folders), work_dir=tmp_path
    )
    options["train_dataloader.batch_size"] = 2  # three iterations: six images in each process
    multiprocessing.spawn(_work, (options, port), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert len(first["depths"]) == 3
    assert len(set(first["depths"])) > 1, "another seed would show more"
    assert first["depths"] == second["depths"]
    assert first["final"] == second["final"] == 4
    assert first["weights"] == second["weights"]
