"""Convert a vision transformer's checkpoint to our names, or to timm's; see docs/checkpoints.md."""

import argparse
import os

from mmsoftmor.checkpoints.convert import TARGETS, convert
from mmsoftmor.checkpoints.report import grouped
from mmsoftmor.engine import cli


def main(argv=None):
    """Convert as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a file of any supported naming scheme, or an address")
    parser.add_argument("out", help="the file to write, NAME.pth or NAME.safetensors")
    parser.add_argument("--to", choices=TARGETS, default="mmpretrain", help="default: mmpretrain")
    parser.add_argument("--backbone", action="store_true", help="leave a classification head out")
    parser.add_argument("--half", action="store_true", help="store float16")
    parser.add_argument("--prefix", help="what the names have before them; default: found")
    args = parser.parse_args(argv)
    left_out = convert(
        args.checkpoint, args.out, args.to, args.backbone, args.half, prefix=args.prefix
    )
    print(f"{args.out}: {os.path.getsize(args.out) / 1e6:.2f} MB")
    if left_out:
        print(f"left out: {grouped(left_out)}")


if __name__ == "__main__":
    cli.run(main)
