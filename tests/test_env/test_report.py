import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mmsoftmor.env.__main__ import hardware, table, verdict
from mmsoftmor.env.probe import Facts
from mmsoftmor.env.stacks import ONEDL

ROOT = Path(__file__).resolve().parents[2]


def test_table_shows_installed_beside_tested_versions():
    facts = Facts(python="3.11.7", versions={**ONEDL.tested, "torch": "2.11.0"})
    rows = [line.split() for line in table(facts).splitlines()]
    assert ["torch", "torch", "2.11.0", "2.12.1", "2.5.1"] in rows
    assert ["mmseg", "onedl-mmsegmentation", "1.4.2", "1.4.2", "1.2.2"] in rows


def test_verdict_tells_tested_untested_and_broken_apart():
    tested = Facts(python="3.11.7", versions=ONEDL.tested)
    assert verdict(tested, ONEDL) == ("OK: the tested onedl stack", True)
    untested = Facts(python="3.11.7", versions={**ONEDL.tested, "torch": "2.11.0"})
    text, sound = verdict(untested, ONEDL)
    assert sound
    assert "torch 2.11.0 (tested: 2.12.1)" in text
    broken = Facts(python="3.11.7", versions={**ONEDL.tested, "numpy": "1.26.4"})
    text, sound = verdict(broken, ONEDL)
    assert not sound
    assert text.startswith("1 problem(s) with the onedl stack:\n- numpy 1.26.4")


def test_hardware_line_tells_cpu_build_cuda_build_and_no_torch_apart():
    bare = Facts(python="3.11.7", versions={})
    cpu = Facts(python="3.11.7", versions={"torch": "2.12.1"})
    cuda = replace(cpu, cuda="13.0", gpu=True, ops_cuda="13.0")
    assert hardware(bare) == "torch: not installed"
    assert hardware(cpu).startswith("torch: a CPU build, no GPU is usable")
    assert hardware(cuda) == (
        "torch: built for CUDA 13.0, a GPU is usable; mmcv operators for CUDA: 13.0"
    )


@pytest.fixture
def broken_stack(tmp_path):
    """Modules under the stack's names that fail at import as a binary mismatch does."""
    for name in ("torch", "torchvision", "mmengine", "mmcv", "mmdet", "mmseg", "mmpretrain"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('numpy.dtype size changed')\n")
    return tmp_path


def test_report_runs_where_every_library_fails_to_import(broken_stack):
    environment = {**os.environ, "PYTHONPATH": f"{broken_stack}:{ROOT}"}
    command = [sys.executable, "-m", "mmsoftmor.env"]
    run = subprocess.run(command, env=environment, cwd=broken_stack, capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert "built against another numpy than" in run.stdout
    assert run.stderr == ""


def test_unknown_stack_is_refused_with_the_known_names(capsys):
    from mmsoftmor.env.__main__ import main

    with pytest.raises(SystemExit):
        main(["--stack", "other"])
    assert "onedl" in capsys.readouterr().err
