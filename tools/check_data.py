"""Check a config and its data without training: ``python tools/check_data.py CONFIG``."""

from mmsoftmor.engine import cli
from mmsoftmor.engine.config import load_config
from mmsoftmor.engine.preflight import check


def parse_args(argv=None):
    """Parse the command line."""
    parser = cli.parser("Check a config and its data, as training and testing do first.")
    parser.add_argument(
        "--part",
        choices=("train", "test"),
        help="train: training and validation data, test: test data; default: both",
    )
    return cli.parse(parser, argv)


def main(argv=None):
    """Check as the command line says, and print what label files hold."""
    args = parse_args(argv)
    config = load_config(args.config, args.cfg_options)
    for part in [args.part] if args.part else ("train", "test"):
        check(config, part, report=print)
    print("no mistake found")


if __name__ == "__main__":
    cli.run(main)
