"""Say what is in a checkpoint file and which model it fits; see docs/checkpoints.md."""

import argparse
import sys
from contextlib import redirect_stdout

with redirect_stdout(sys.stderr):  # libraries print when they are imported: --json is to be JSON
    from mmsoftmor.checkpoints.inspect import as_json, compare_with_config, inspect_checkpoint
    from mmsoftmor.engine import cli


def main(argv=None):
    """Inspect as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a file, or an address")
    parser.add_argument("--prefix", help="what the names have before them; default: found")
    parser.add_argument("--config", help="report instead what loading into this config would do")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    with redirect_stdout(sys.stderr):
        if args.config:
            result = compare_with_config(args.checkpoint, args.config)
        else:
            result = inspect_checkpoint(args.checkpoint, args.prefix)
    print(as_json(result) if args.json else result)


if __name__ == "__main__":
    cli.run(main)
