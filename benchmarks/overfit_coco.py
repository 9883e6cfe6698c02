"""Overfit a detection config on a few real images: the loss must fall and the mAP must rise.

    python benchmarks/overfit_coco.py data/coco/ [--images 8] [--size 224] [--steps 400]

Trains on the images of train2017 with the lowest ids that have objects, without augmentation and
without drop path, and evaluates with the config's own metric on these very images: a check that
model, losses, targets and evaluation fit each other on real data, not a result. Prints and writes
``overfit.json`` (loss terms of every step, metrics) and ``overfit.png`` (the loss curve).
"""

import argparse
import io
import json
import os.path as osp
import shlex
import sys
import time

from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.runner import Runner

from mmsoftmor.engine.atomic import write_bytes, write_json
from mmsoftmor.engine.cli import run
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test, train
from mmsoftmor.errors import InputError

WARM_UP = 20  # steps


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data_root", help="folder of COCO 2017, with annotations/ and train2017/")
    parser.add_argument("--config", default="maskrcnn_srvit_s_coco")
    parser.add_argument("--checkpoint", help="ImageNet weights of the backbone; default: random")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--size", type=int, default=224, help="side of the square input in pixels")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=2, help="images in a step")
    parser.add_argument("--lr", type=float, default=4e-4)
    parser.add_argument("--regions", type=int, default=64, help="sampled for the heads, an image")
    parser.add_argument("--work-dir", default="work_dirs/overfit_coco")
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


def overfitting(args: argparse.Namespace, annotations: str) -> Config:
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
        **schedule(args),
    }
    return load_config(args.config, options)


def schedule(args: argparse.Namespace) -> dict:
    """Return the options for a short run by steps at one rate for all layers, then cosine to 0."""
    steps = args.steps
    return {
        "optim_wrapper.optimizer.lr": args.lr,
        "optim_wrapper.optimizer.weight_decay": 0.0,
        "optim_wrapper.paramwise_cfg.layer_decay_rate": 1.0,
        "param_scheduler": [
            dict(type="LinearLR", start_factor=1e-2, by_epoch=False, begin=0, end=WARM_UP),
            dict(
                type="CosineAnnealingLR",
                by_epoch=False,
                begin=WARM_UP,
                end=steps,
                T_max=steps - WARM_UP,
            ),
        ],
        "train_cfg": dict(_delete_=True, type="IterBasedTrainLoop", max_iters=steps),
        "log_processor.by_epoch": False,
        "log_processor.window_size": 10,
        "default_hooks.logger.interval": 10,
        "default_hooks.checkpoint.by_epoch": False,
        "default_hooks.checkpoint.interval": max(1, steps // 4),
        "default_hooks.checkpoint.max_keep_ckpts": 1,
        "default_hooks.checkpoint.save_optimizer": False,
    }


def loss_terms(runner: Runner) -> dict[str, list[float]]:
    """Return every loss term of every step by its name."""
    scalars = runner.message_hub.log_scalars
    names = [name for name in scalars if name.startswith("train/") and "loss" in name]
    return {name.removeprefix("train/"): scalars[name].data[0].tolist() for name in sorted(names)}


def draw(terms: dict[str, list[float]], title: str, path: str) -> None:
    """Write the loss curve, the total and its terms, as a PNG file."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, values in terms.items():
        axes.plot(values, label=name, linewidth=2 if name == "loss" else 1)
    axes.set(xlabel="step", ylabel="loss", yscale="log", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    write_bytes(path, content.getvalue())


def main() -> None:
    """Train, evaluate, write both files and print what was reached."""
    args, began = parse_args(), time.monotonic()
    source = osp.join(args.data_root, "annotations/instances_train2017.json")
    annotations = osp.abspath(osp.join(args.work_dir, "few.json"))
    images = write_annotations(source, annotations, args.images)
    config = overfitting(args, annotations)
    runner = train(config, work_dir=args.work_dir)
    checkpoint = osp.join(args.work_dir, f"iter_{args.steps}.pth")
    metrics = test(config, checkpoint, work_dir=args.work_dir)

    terms = loss_terms(runner)
    report = dict(
        command=shlex.join(["python", *sys.argv]),
        images=[image["file_name"] for image in images],
        minutes=round((time.monotonic() - began) / 60, 1),
        metrics=metrics,
        losses=terms,
    )
    write_json(osp.join(args.work_dir, "overfit.json"), report)
    title = f"{args.config}, {len(images)} images, {args.size} px"
    draw(terms, title, osp.join(args.work_dir, "overfit.png"))
    print(f"loss {terms['loss'][0]:.3f} -> {terms['loss'][-1]:.3f} in {args.steps} steps")
    # Without any detection the metric has no figures.
    box, mask = (metrics.get(f"coco/{kind}_mAP", 0.0) for kind in ("bbox", "segm"))
    print(f"on these images: box mAP {box:.3f}, mask mAP {mask:.3f}; {report['minutes']} minutes")


if __name__ == "__main__":
    run(main)
