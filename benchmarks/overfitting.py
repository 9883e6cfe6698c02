"""What the overfitting checks share: a short schedule, the loss curve and the report."""

import argparse
import io
import os.path as osp
import shlex
import sys

from matplotlib.figure import Figure
from mmengine.runner import Runner

from mmsoftmor.engine.atomic import write_bytes, write_json
from mmsoftmor.errors import InputError

WARM_UP = 20  # steps


def add_arguments(parser: argparse.ArgumentParser, **defaults) -> None:
    """Add the options that all of them have, with these defaults for the task's own."""
    parser.add_argument("--checkpoint", help="ImageNet weights of the backbone; default: random")
    parser.add_argument("--size", type=int, help="side of the square input in pixels")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int, default=2, help="images in a step")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--work-dir")
    parser.set_defaults(**defaults)


def schedule(args: argparse.Namespace) -> dict:
    """Return the options for a short run by steps at one rate for all layers, then cosine to 0."""
    steps = args.steps
    if steps <= WARM_UP:
        raise InputError(f"--steps {steps}: give more than the {WARM_UP} steps of warm-up")
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


def write_report(
    runner: Runner, args: argparse.Namespace, images: list[str], metrics: dict, minutes: float
) -> None:
    """Write ``overfit.json`` and ``overfit.png`` into the work directory, print the loss."""
    terms = loss_terms(runner)
    report = dict(
        command=shlex.join(["python", *sys.argv]),
        images=images,
        minutes=round(minutes, 1),
        metrics=metrics,
        losses=terms,
    )
    write_json(osp.join(args.work_dir, "overfit.json"), report)
    title = f"{args.config}, {len(images)} images, {args.size} px"
    draw(terms, title, osp.join(args.work_dir, "overfit.png"))
    first, last = terms["loss"][0], terms["loss"][-1]
    print(f"loss {first:.3f} -> {last:.3f} in {args.steps} steps, {report['minutes']} minutes")
