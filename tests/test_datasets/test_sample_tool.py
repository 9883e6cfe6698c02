"""tools/make_sample_dataset.py, run as users run it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}


def command(*arguments):
    return [sys.executable, str(ROOT / "tools/make_sample_dataset.py"), *map(str, arguments)]


def run(*arguments):
    how = {"capture_output": True, "text": True, "env": ENVIRONMENT, "check": False}
    return subprocess.run(command(*arguments), **how)


@pytest.mark.parametrize("form", ["det", "seg", "cls"])
def test_tool_says_where_it_wrote_and_how_much(form, tmp_path):
    done = run(form, "--root", tmp_path / "x", "--num-train", 8, "--num-val", 2)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 'x'}: train 8 images, " in done.stdout
    assert "val 2 images, " in done.stdout
    assert (tmp_path / "x/sample.json").is_file()


def test_mistake_is_one_line_on_stderr_and_exit_status_2(tmp_path):
    (tmp_path / "mine.txt").write_text("")
    done = run("det", "--root", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and str(tmp_path) in done.stderr


def test_interrupt_ends_in_one_line_and_the_same_command_goes_on(tmp_path):
    arguments = ("cls", "--root", tmp_path / "x", "--num-train", 800, "--num-val", 2)
    # A shell that starts the tests in the background has their children ignore the signal.
    process = subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    first = tmp_path / "x/train/blue-crescent/00000000.jpg"
    deadline = time.monotonic() + 60
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert "Interrupted" in errors and "Traceback" not in errors
    made = first.stat().st_mtime_ns
    assert run(*arguments).returncode == 0
    assert first.stat().st_mtime_ns == made
    assert len(list((tmp_path / "x").rglob("*.jpg"))) == 802
