"""``python -m mmsoftmor.torchrun``: torchrun, without its report on a user's mistake.

Arguments are those of ``python -m torch.distributed.run``. When a process ends with status 2 it has
already said in one line what to mend; torchrun's page on failed processes would bury that line.
"""

from __future__ import annotations

import sys

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main as torchrun

USER_MISTAKE = 2


def main(arguments: list[str] | None = None) -> int:
    """Run torchrun; return the job's exit status.

    Raises:
        ChildFailedError: A process failed for a reason other than a user's mistake.
    """
    try:
        torchrun(arguments)
    except ChildFailedError as error:
        if any(failure.exitcode == USER_MISTAKE for failure in error.failures.values()):
            return USER_MISTAKE
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
