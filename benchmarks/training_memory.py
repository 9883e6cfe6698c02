"""Memory of one training step of a detection config, and an estimate for its batch.

    python benchmarks/training_memory.py maskrcnn_srvit_s_coco [--size 1024] [--objects 20]

Runs forward and backward on one and on two synthetic images, in the config's precision. The peak
grows linearly with the images, so two points give the batch's; weights, gradients and AdamW's two
moments (16 bytes a parameter) come on top. On the CPU this is an estimate for a GPU: kernels differ
in their scratch space.
"""

import argparse
from types import SimpleNamespace

import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import BitmapMasks
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import InstanceData

from mmsoftmor.analysis.memory import peak_memory
from mmsoftmor.engine import Float32BoxHook
from mmsoftmor.engine.config import load_config

GIB = 2**30
BYTES_A_PARAMETER = 16


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", nargs="?", default="maskrcnn_srvit_s_coco")
    parser.add_argument("--size", type=int, default=1024, help="side of the square image in pixels")
    parser.add_argument("--objects", type=int, default=20, help="objects in each image")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def synthetic(count: int, size: int, objects: int, device: str) -> tuple[torch.Tensor, list]:
    """Return images and samples with ``objects`` square objects each."""
    samples = []
    for _ in range(count):
        corner = torch.rand(objects, 2) * size * 0.7
        boxes = torch.cat([corner, corner + size * torch.rand(objects, 1).clamp(0.05, 0.3)], dim=1)
        masks = torch.zeros(objects, size, size, dtype=torch.uint8)
        for mask, (left, top, right, bottom) in zip(masks, boxes.int().tolist(), strict=True):
            mask[top:bottom, left:right] = 1
        sample = DetDataSample(
            metainfo=dict(
                img_shape=(size, size),
                pad_shape=(size, size),
                ori_shape=(size, size),
                batch_input_shape=(size, size),
                scale_factor=(1.0, 1.0),
            )
        )
        sample.gt_instances = InstanceData(
            bboxes=boxes,
            labels=torch.randint(80, (objects,)),
            masks=BitmapMasks(masks.numpy(), size, size),
        )
        samples.append(sample.to(device))
    return torch.randn(count, 3, size, size, device=device), samples


def step_memory(model: torch.nn.Module, count: int, args: argparse.Namespace) -> float:
    """Return the peak in GiB of one forward and backward on ``count`` images."""
    images, samples = synthetic(count, args.size, args.objects, args.device)

    def step() -> None:
        with torch.autocast(torch.device(args.device).type, torch.bfloat16, enabled=args.amp):
            losses = model.loss(images, samples)
        total = sum(sum(v) if isinstance(v, list) else v for k, v in losses.items() if "loss" in k)
        total.backward()
        model.zero_grad(set_to_none=False)

    return peak_memory(step, args.device) / GIB


def main() -> None:
    """Measure and print."""
    args = parse_args()
    config = load_config(args.config)
    args.amp = config.optim_wrapper.type == "AmpOptimWrapper"
    init_default_scope(config.default_scope)
    config.model.backbone.init_cfg = None
    model = MODELS.build(config.model).to(args.device).train()
    Float32BoxHook().before_train(SimpleNamespace(model=model))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    one, two = (step_memory(model, count, args) for count in (1, 2))
    batch = config.train_dataloader.batch_size
    state = BYTES_A_PARAMETER * sum(p.numel() for p in model.parameters()) / GIB
    activations = one + (batch - 1) * (two - one)
    precision = "bf16 autocast" if args.amp else "fp32"
    print(
        f"{args.config}, {args.size} px, {args.objects} objects, {precision}, {args.device}\n"
        f"peak of a step: {one:.2f} GiB with 1 image, {two:.2f} GiB with 2\n"
        f"at the config's batch of {batch}: {activations:.1f} GiB, with weights, gradients and "
        f"AdamW's moments {activations + state:.1f} GiB"
    )


if __name__ == "__main__":
    main()
