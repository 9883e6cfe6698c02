"""Overfit a segmentation config on a few real images: the loss must fall and the mIoU must rise.

    python benchmarks/overfit_ade.py data/ade/ADEChallengeData2016/ [--size 128] [--steps 300]

Trains on the images of a split without augmentation and without drop path, and evaluates with the
config's own metric on these very images at their original size: a check that model, labels, loss
and evaluation fit each other on real data, not a result. Prints and writes ``overfit.json`` (loss
terms of every step, metrics) and ``overfit.png`` (the loss curve).
"""

import argparse
import os
import os.path as osp
import time

import overfitting
from mmengine.config import Config

from mmsoftmor.engine.cli import run
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test, train
from mmsoftmor.errors import InputError


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data_root", help="folder with images/ and annotations/")
    parser.add_argument("--config", default="upernet_srvit_s_ade20k")
    parser.add_argument("--split", default="validation", choices=("training", "validation"))
    parser.add_argument("--images", type=int, default=2, help="the first ones by name")
    overfitting.add_arguments(
        parser, size=128, steps=300, lr=4e-4, work_dir="work_dirs/overfit_ade"
    )
    return parser.parse_args()


def first_images(folder: str, count: int) -> list[str]:
    """Names of the first images of a folder, without suffix."""
    if not osp.isdir(folder):
        raise InputError(f"{folder} does not exist: give the folder that holds images/")
    names = sorted(osp.splitext(name)[0] for name in os.listdir(folder) if name.endswith(".jpg"))
    return names[:count]


def small_job(args: argparse.Namespace, names: list[str]) -> Config:
    """Return the config with one small set of images for training and for testing."""
    size = (args.size, args.size)
    listing = osp.abspath(osp.join(args.work_dir, "images.txt"))
    os.makedirs(args.work_dir, exist_ok=True)
    with open(listing, "w", encoding="utf-8") as file:
        file.write("\n".join(names))
    load, labels = dict(type="LoadCheckedImage"), dict(type="LoadCheckedLabels")
    resize, pack = dict(type="Resize", scale=size, keep_ratio=True), dict(type="PackSegInputs")
    data = {}
    for loader, pipeline in (
        ("train_dataloader", [load, labels, resize, pack]),
        ("test_dataloader", [load, resize, labels, pack]),
    ):
        data[f"{loader}.dataset.ann_file"] = listing
        data[f"{loader}.dataset.data_prefix"] = dict(
            img_path=f"images/{args.split}", seg_map_path=f"annotations/{args.split}"
        )
        data[f"{loader}.dataset.pipeline"] = pipeline
        data[f"{loader}.num_workers"] = 0
        data[f"{loader}.persistent_workers"] = False
    options = {
        "data_root": args.data_root,
        **data,
        "train_dataloader.batch_size": args.batch,
        "val_dataloader": None,
        "val_evaluator": None,
        "val_cfg": None,
        "default_hooks.checkpoint.save_best": None,
        "model.data_preprocessor.size": size,
        "model.backbone.init_cfg.checkpoint": args.checkpoint,
        "model.backbone.drop_path_rate": 0.0,
        **overfitting.schedule(args),
    }
    return load_config(args.config, options)


def main() -> None:
    """Train, evaluate, write both files and print what was reached."""
    args, began = parse_args(), time.monotonic()
    names = first_images(osp.join(args.data_root, "images", args.split), args.images)
    config = small_job(args, names)
    runner = train(config, work_dir=args.work_dir)
    checkpoint = osp.join(args.work_dir, f"iter_{args.steps}.pth")
    metrics = test(config, checkpoint, work_dir=args.work_dir)
    overfitting.write_report(runner, args, names, metrics, (time.monotonic() - began) / 60)
    print(f"on these images: mIoU {metrics['mIoU']:.2f} %, pixel accuracy {metrics['aAcc']:.2f} %")


if __name__ == "__main__":
    run(main)
