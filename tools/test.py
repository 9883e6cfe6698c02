"""Evaluate a checkpoint: ``python tools/test.py CONFIG CHECKPOINT``; see docs/training.md."""

from mmsoftmor.engine import cli
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.launch import test


def parse_args(argv=None):
    """Parse the command line."""
    parser = cli.parser("Evaluate a checkpoint on the test set of a config.")
    parser.add_argument("checkpoint", help="weights of the whole model")
    parser.add_argument("--out", metavar="FILE.pkl", help="write the predictions of every image")
    parser.add_argument("--show-dir", metavar="DIR", help="draw the predictions")
    parser.add_argument("--tta", action="store_true", help="test-time augmentation")
    return cli.parse(parser, argv)


def main(argv=None):
    """Evaluate as the command line says."""
    args = parse_args(argv)
    test(
        load_config(args.config, args.cfg_options),
        args.checkpoint,
        launcher=args.launcher,
        work_dir=args.work_dir,
        out=args.out,
        show_dir=args.show_dir,
        tta=args.tta,
    )


if __name__ == "__main__":
    cli.run(main)
