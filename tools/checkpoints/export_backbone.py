"""Write the backbone of a training checkpoint alone, as a .safetensors file."""

import argparse

from mmsoftmor.checkpoints import export_backbone
from mmsoftmor.engine import cli


def main():
    """Export as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a whole model's checkpoint")
    parser.add_argument("out", help="the file to write, NAME.safetensors")
    parser.add_argument("--half", action="store_true", help="store float16")
    args = parser.parse_args()
    size = export_backbone(args.checkpoint, args.out, args.half)
    print(f"{args.out}: {size / 2**20:.2f} MB")


if __name__ == "__main__":
    cli.run(main)
