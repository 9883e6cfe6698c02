"""tools/make_sample_dataset.py, run as users run it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments):
    command = [sys.executable, str(ROOT / "tools/make_sample_dataset.py"), *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


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
