"""Run the commands of an installation: a log for each, signs of life, one kind of failure."""

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mmsoftmor.env.advice import explain
from mmsoftmor.env.plan import StepFailedError, constraint_lines
from mmsoftmor.env.stacks import Stack, installed_versions

HEARTBEAT_SECONDS = 20


@dataclass(frozen=True)
class Job:
    """What is installed where: the stack, the project's root folder, the folder for logs."""

    stack: Stack
    root: Path
    logs: Path


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def _progress(log: Path) -> str:
    """Return ninja's last ``[12/95]`` in a log, if it has one."""
    counts = re.findall(r"^\s*(\[\d+/\d+\])", log.read_text(errors="replace"), re.MULTILINE)
    return f" {counts[-1]}" if counts else ""


def run_logged(job: Job, name: str, command: list[str], **environment: str) -> None:
    """Run a command with its output in ``logs/name.log`` and a line every 20 seconds.

    Raises:
        StepFailedError: The command ended with a status other than 0.
    """
    log, start = job.logs / f"{name}.log", time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}
        )
        try:
            while True:
                try:
                    status = process.wait(timeout=HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    elapsed = int(time.monotonic() - start)
                    clock = f"{elapsed // 60}:{elapsed % 60:02d}"
                    say(f"    {name}: still at work, {clock}{_progress(log)}")
        except KeyboardInterrupt:
            process.wait()  # the terminal has sent it the interrupt too
            raise
    if status != 0:
        reason, advice = explain(log.read_text(errors="replace"))
        raise StepFailedError(reason or [f"it ended with status {status}"], advice, log)


def pip_install(job: Job, name: str, *arguments: str, **environment: str) -> None:
    """Run ``pip install`` such that it leaves torch, numpy and OpenCV within the tested bounds."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(constraint_lines(job.stack, installed_versions())))
        constraints.flush()
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        run_logged(job, name, [*pip, "-c", constraints.name, *arguments], **environment)
