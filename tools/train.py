"""Train a model: ``python tools/train.py CONFIG``; see docs/training.md."""

from mmsoftmor.engine import cli
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import train
from mmsoftmor.engine.precision import AMP_DTYPES


def parse_args(argv=None):
    """Parse the command line."""
    parser = cli.parser("Train a model.")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="auto",
        metavar="PATH",
        help="continue from the latest checkpoint of the work directory, or from PATH",
    )
    parser.add_argument("--amp", action="store_true", help="mixed precision")
    parser.add_argument("--amp-dtype", choices=AMP_DTYPES, help="implies --amp")
    parser.add_argument(
        "--auto-scale-lr", action="store_true", help="scale the learning rate to the batch size"
    )
    return cli.parse(parser, argv)


def main(argv=None):
    """Train as the command line says."""
    args = parse_args(argv)
    train(
        load_config(args.config, args.cfg_options),
        launcher=args.launcher,
        work_dir=args.work_dir,
        resume=args.resume,
        amp=args.amp,
        amp_dtype=args.amp_dtype,
        auto_scale_lr=args.auto_scale_lr,
    )


if __name__ == "__main__":
    cli.run(main)
