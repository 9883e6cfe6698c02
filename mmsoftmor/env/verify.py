"""The check at the end of an installation: everything together in one process.

Run as ``python -m mmsoftmor.env.verify``; a failure ends with its traceback and status 1.
"""

import importlib
import sys
from importlib import metadata

MODULES = ("mmcv.ops", "mmdet.models", "mmseg.models", "mmpretrain.models", "mmsoftmor.models")


def check_mask_coding() -> None:
    """Encode a mask as COCO RLE and decode it again, which crosses numpy's binary interface."""
    import numpy
    from pycocotools import mask

    original = numpy.zeros((7, 9), dtype=numpy.uint8)
    original[2:5, 3:8] = 1
    encoded = mask.encode(numpy.asfortranarray(original))
    if mask.area(encoded) != original.sum() or (mask.decode(encoded) != original).any():
        raise RuntimeError("pycocotools returned another mask than it was given")


def check_operators() -> str:
    """Run mmcv's nms on the CPU, and on the GPU if operators and machine allow; say where."""
    import torch
    from mmcv.ops import get_compiling_cuda_version, nms

    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
    scores = torch.tensor([0.5, 0.9, 0.1])
    on_gpu = torch.cuda.is_available() and get_compiling_cuda_version() != "not available"
    for device in ["cpu"] + ["cuda"] * on_gpu:
        _, kept = nms(boxes.to(device), scores.to(device), iou_threshold=0.5)
        if kept.tolist() != [1, 2]:
            raise RuntimeError(f"mmcv's nms on {device} kept boxes {kept.tolist()} instead of 1, 2")
    return "CPU and GPU" if on_gpu else "CPU"


def versions(stack_distributions: list[str]) -> str:
    """Return ``name version`` of each distribution, separated by commas."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in stack_distributions)


def main() -> int:
    """Import, check, print one line of versions and one of what ran."""
    from mmsoftmor.env.diagnose import choose_stack
    from mmsoftmor.env.stacks import installed_versions

    for module in MODULES:
        importlib.import_module(module)
    check_mask_coding()
    where = check_operators()
    names = [*choose_stack(installed_versions()).distributions.values(), "mmsoftmor"]
    print(f"verified: {versions(names)}")
    print(f"verified: {', '.join(MODULES)} import together; mask coding and nms ({where}) run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
