"""Strip a training checkpoint to its weights and notes, with the hash in the file's name."""

import argparse

from mmsoftmor.checkpoints.publish import WEIGHTS, publish
from mmsoftmor.engine import cli


def main(argv=None):
    """Publish as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a checkpoint of a run")
    parser.add_argument("out", nargs="?", help="target without hash; default: CHECKPOINT's name")
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default=WEIGHTS[0],
        help="of a run that kept a moving average: the average (default) or the trained weights",
    )
    args = parser.parse_args(argv)
    print(publish(args.checkpoint, args.out, args.weights))


if __name__ == "__main__":
    cli.run(main)
