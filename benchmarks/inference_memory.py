"""Peak inference memory of dense SR-ViT by recursion depth: it must not grow.

    python benchmarks/inference_memory.py [--arch small] [--size 512] [--batch 1] [--device cpu]

Prints, for R = 1, 2 and 4 in one run, the weights and the peak of the activations of the backbone
alone and of the backbone with its feature pyramid, which is what a detector or segmentor runs.
Exits with 1 if the activations of backbone and pyramid at R=4 exceed those at R=1 by more than 2 %,
or those of the backbone alone at R=4 exceed those at R=2 by as much.
"""

import argparse

import torch
from torch import nn

from mmsoftmor.analysis.memory import peak_memory
from mmsoftmor.models import SimpleFeaturePyramid, SRViT

DEPTHS = (1, 2, 4)
LIMIT = 1.02
MIB = 2**20


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", default="small", choices=("tiny", "small", "base"))
    parser.add_argument("--size", type=int, default=512, help="side of the square image in pixels")
    parser.add_argument("--batch", type=int, default=1, help="images at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def weight_bytes(*modules: nn.Module) -> int:
    """Return the bytes of the modules' parameters."""
    return sum(p.numel() * p.element_size() for m in modules for p in m.parameters())


@torch.no_grad()
def measure(depth: int, args: argparse.Namespace) -> tuple[float, float, float]:
    """Return the weights and the two peaks of activations, in MiB, at one recursion depth."""
    backbone = SRViT(args.arch, out_type="featmap", final_norm=False, recursion_depth=depth)
    neck = SimpleFeaturePyramid(backbone.embed_dims)
    backbone.to(args.device).eval()
    neck.to(args.device).eval()
    image = torch.randn(args.batch, 3, args.size, args.size, device=args.device)
    backbone(image[:1, :, :32, :32])  # what libraries allocate once does not count
    alone = peak_memory(lambda: backbone(image), args.device)
    together = peak_memory(lambda: neck(backbone(image)), args.device)
    return weight_bytes(backbone, neck) / MIB, alone / MIB, together / MIB


def main() -> None:
    """Measure, print the table and exit with 1 if memory grows with the depth."""
    args = parse_args()
    print(f"SR-ViT {args.arch}, {args.batch} x {args.size} px, {args.device}, fp32, in MiB")
    print(f"{'R':>10}{'weights':>12}{'backbone':>12}{'+ pyramid':>12}{'+ weights':>12}")
    table = {depth: measure(depth, args) for depth in DEPTHS}
    for depth, (weights, alone, together) in table.items():
        total = weights + together
        print(f"{depth:>10}{weights:>12.2f}{alone:>12.2f}{together:>12.2f}{total:>12.2f}")
    pyramid = table[4][2] / table[1][2]
    backbone = table[4][1] / table[2][1]
    print(f"activations of backbone and pyramid, R=4 / R=1: {pyramid:.4f}")
    print(f"activations of the backbone alone,   R=4 / R=2: {backbone:.4f}")
    print(f"activations of the backbone alone,   R=4 / R=1: {table[4][1] / table[1][1]:.4f}")
    if max(pyramid, backbone) > LIMIT:
        raise SystemExit(f"memory grows with the recursion depth: more than {LIMIT}")


if __name__ == "__main__":
    main()
