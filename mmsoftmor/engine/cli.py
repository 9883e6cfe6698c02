"""What the command-line tools share: common arguments and one-line errors."""

from __future__ import annotations

import ast
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from mmengine.config import DictAction
from torch import distributed

from mmsoftmor.engine.distributed import end_process
from mmsoftmor.errors import InputError


class OptionsAction(DictAction):
    """MMEngine's action for ``KEY=VALUE``, which also takes literals and spaces.

    MMEngine's removes every space, from paths too, and knows no dicts and no quotes. Text that
    Python reads as a dict, list, tuple or string is that; all else is as MMEngine has it.
    """

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for pair in values:
            key, equals, text = pair.partition("=")
            if not equals:
                parser.error(f"{option_string}: {pair!r} is not of the form KEY=VALUE")
            options[key] = _value(text)
        setattr(namespace, self.dest, options)


def _value(text: str):
    if text.startswith(("{", "[", "(", "'", '"')):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):  # such as [a, b], whose names have no quotes
            return DictAction._parse_iterable(text)
    is_plain = " " in text and "," not in text
    return text if is_plain else DictAction._parse_iterable(text)


def parser(description: str) -> ArgumentParser:
    """A parser with the arguments that every tool of a config has."""
    result = ArgumentParser(description=description)
    result.add_argument("config", help="a config file, or the name of a shipped config")
    result.add_argument("--work-dir", help="where results go; default: work_dirs/CONFIG_NAME")
    result.add_argument(
        "--cfg-options",
        nargs="+",
        action=OptionsAction,
        metavar="KEY=VALUE",
        help="override config values: data_root=/data/coco train_dataloader.batch_size=4, also "
        "with Python literals: \"model.test_cfg={'mode': 'whole'}\"",
    )
    result.add_argument("--launcher", choices=("none", "pytorch", "slurm", "mpi"), default="none")
    # Older launchers pass one or the other spelling; the current one uses the environment.
    result.add_argument("--local_rank", "--local-rank", type=int)
    return result


def parse(arguments: ArgumentParser, argv: list[str] | None = None) -> Namespace:
    """Parse, and export the local rank where the launcher did not."""
    args = arguments.parse_args(argv)
    if args.local_rank is not None:
        os.environ.setdefault("LOCAL_RANK", str(args.local_rank))
    return args


def run(main: Callable[[], object]) -> None:
    """Run a tool; a user's mistake ends it with one line on stderr and exit status 2.

    Processes of one job that meet the same mistake before they join speak once, through the first.
    Once joined, one process may meet it alone (a corrupt image), so each speaks for itself.
    """
    try:
        main()
    except InputError as error:
        rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))
        joined = distributed.is_available() and distributed.is_initialized()
        if rank == 0 or joined:
            where = f"[rank {rank}] " if joined else ""
            print(f"error: {where}{one_line(error)}", file=sys.stderr, flush=True)
        sys.exit(2)
    end_process()


def one_line(error: InputError) -> str:
    """The message itself: a data-loading process wraps it into a traceback, as its last line."""
    last = str(error).strip().splitlines()[-1].strip()
    return last.removeprefix(f"{InputError.__module__}.{InputError.__name__}: ")
