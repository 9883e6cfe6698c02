"""Run the main job on the sample dataset: ``bash tools/quickstart.sh`` installs and calls this."""

import argparse

from mmengine.config import DictAction

from mmsoftmor.apis.quickstart import JOBS, run
from mmsoftmor.engine import cli


def main():
    """Run the quickstart as the command line says."""
    parser = argparse.ArgumentParser(description="Fine-tune, evaluate and draw on sample data.")
    parser.add_argument("--task", choices=sorted(JOBS), default="det", help="default: det")
    parser.add_argument("--work-dir", help="where results go; default: work_dirs/quickstart_TASK")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE")
    args = parser.parse_args()
    run(args.task, args.work_dir, args.cfg_options)


if __name__ == "__main__":
    cli.run(main)
