"""Overfit a detection config on a few real images: the loss must fall and the mAP must rise.

    python benchmarks/overfit_coco.py data/coco/ [--images 8] [--size 224] [--steps 400]

Trains on the images of train2017 with the lowest ids that have objects, without augmentation and
without drop path, and evaluates with the config's own metric on these very images: a check that
model, losses, targets and evaluation fit each other on real data, not a result. Prints and writes
``overfit.json`` (loss terms of every step, metrics) and ``overfit.png`` (the loss curve).
"""

import argparse
import json
import os.path as osp
import time

import overfitting
from mmengine.config import Config

from mmsoftmor.engine.atomic import write_json
from mmsoftmor.engine.cli import run
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test, train
from mmsoftmor.errors import InputError


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data_root", help="folder of COCO 2017, with annotations/ and train2017/")
    parser.add_argument("--config", default="maskrcnn_srvit_s_coco")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--regions", type=int, default=64, help="sampled for the heads, an image")
    overfitting.add_arguments(
        parser, size=224, steps=400, lr=4e-4, work_dir="work_dirs/overfit_coco"
    )
    return parser.parse_args()


def write_annotations(source: str, target: str, count: int) -> list[dict]:
    """Write an annotation file of ``count`` images that have objects, by id; return the images."""
    if not osp.isfile(source):
        raise InputError(f"{source} does not exist: give the folder that holds annotations/")
    with open(source, encoding="utf-8") as file:
        content = json.load(file)
    occupied = {item["image_id"] for item in content["annotations"] if not item["iscrowd"]}
    images = [image for image in content["images"] if image["id"] in occupied]
    images = sorted(images, key=lambda image: image["id"])[:count]
    chosen = {image["id"] for image in images}
    objects = [item for item in content["annotations"] if item["image_id"] in chosen]
    write_json(target, {**content, "images": images, "annotations": objects})
    return images


def small_job(args: argparse.Namespace, annotations: str) -> Config:
    """Return the config with one small set of images for training and for testing."""
    size = (args.size, args.size)
    pipeline = [
        dict(type="LoadCheckedImage"),
        dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
        dict(type="Resize", scale=size, keep_ratio=True),
        dict(type="PackDetInputs"),
    ]
    options = {
        "data_root": args.data_root,
        "train_dataloader.dataset.ann_file": annotations,
        "train_dataloader.dataset.pipeline": pipeline,
        "train_dataloader.batch_size": args.batch,
        "train_dataloader.num_workers": 0,
        "test_dataloader.dataset.ann_file": annotations,
        "test_dataloader.dataset.data_prefix.img": "train2017/",
        "test_dataloader.dataset.pipeline.1.scale": size,
        "test_dataloader.num_workers": 0,
        "test_dataloader.persistent_workers": False,
        "test_evaluator.ann_file": annotations,
        "val_dataloader": None,
        "val_evaluator": None,
        "val_cfg": None,
        "model.data_preprocessor.batch_augments.0.size": size,
        "model.backbone.init_cfg.checkpoint": args.checkpoint,
        "model.backbone.drop_path_rate": 0.0,
        "model.backbone.with_cp": False,
        "model.train_cfg.rcnn.sampler.num": args.regions,
        **overfitting.schedule(args),
    }
    return load_config(args.config, options)


def main() -> None:
    """Train, evaluate, write both files and print what was reached."""
    args, began = parse_args(), time.monotonic()
    source = osp.join(args.data_root, "annotations/instances_train2017.json")
    annotations = osp.abspath(osp.join(args.work_dir, "few.json"))
    images = write_annotations(source, annotations, args.images)
    config = small_job(args, annotations)
    runner = train(config, work_dir=args.work_dir)
    checkpoint = osp.join(args.work_dir, f"iter_{args.steps}.pth")
    metrics = test(config, checkpoint, work_dir=args.work_dir)

    names = [image["file_name"] for image in images]
    overfitting.write_report(runner, args, names, metrics, (time.monotonic() - began) / 60)
    # Without any detection the metric has no figures.
    box, mask = (metrics.get(f"coco/{kind}_mAP", 0.0) for kind in ("bbox", "segm"))
    print(f"on these images: box mAP {box:.3f}, mask mAP {mask:.3f}")


if __name__ == "__main__":
    run(main)
