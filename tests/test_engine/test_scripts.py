"""The shell scripts start real jobs of two gloo processes on this machine."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
import torch

TOOLS = Path(__file__).resolve().parents[2] / "tools"
pytestmark = pytest.mark.slow


def start(script, *arguments, cwd, **environment):
    """Start a script without GPUs, from a folder that is not the checkout's."""
    settings = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="-1", **environment)
    for name in ("PYTHONPATH", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        settings.pop(name, None)
    settings.update(environment)
    # Files, not pipes: a process whose full pipe nobody reads would keep the others waiting.
    name = f"{len(list(Path(cwd).glob('*.out')))}"
    with (
        open(Path(cwd, f"{name}.out"), "w") as output,
        open(Path(cwd, f"{name}.err"), "w") as error,
    ):
        process = subprocess.Popen(
            ["bash", str(TOOLS / script), *map(str, arguments)],
            cwd=cwd,
            env=settings,
            stdout=output,
            stderr=error,
        )
    return process, Path(output.name), Path(error.name)


def finish(job):
    """Wait for a job; returns its status, output and errors."""
    process, output, errors = job
    status = process.wait(timeout=300)
    return status, output.read_text(), errors.read_text()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_two_jobs_at_a_time_train_on_two_processes_each(config_file, detector_file, tmp_path):
    # The second process of the detector's job never sees an object: no branch may wait for it.
    jobs = [
        start("dist_train.sh", config_file, 2, "--work-dir", "cls", cwd=tmp_path),
        start(
            *("dist_train.sh", detector_file, 2, "--work-dir", "det"),
            *("--cfg-options", "train_cfg.max_epochs=3"),
            cwd=tmp_path,
        ),
    ]
    for job in jobs:
        status, output, errors = finish(job)
        assert status == 0, errors
        assert "batch: 2 processes x" in output
    weights = torch.load(tmp_path / "cls" / "epoch_4.pth", weights_only=False)
    assert weights["meta"]["iter"] == 8  # 16 images, 4 on each of 2 processes
    logs = list((tmp_path / "det").glob("*/vis_data/scalars.json"))
    losses = [json.loads(line)["loss"] for line in logs[0].read_text().splitlines()]
    assert len(losses) == 6 and all(loss < 100 for loss in losses)


def test_two_machines_join_at_the_given_address(config_file, tmp_path):
    shared = dict(NNODES="2", MASTER_ADDR="127.0.0.1", PORT=free_port())
    options = ("--work-dir", "w", "--cfg-options", "train_cfg.max_epochs=1")
    jobs = [
        start("dist_train.sh", config_file, 1, *options, cwd=tmp_path, NODE_RANK=rank, **shared)
        for rank in "01"
    ]
    results = [finish(job) for job in jobs]
    assert [status for status, _, _ in results] == [0, 0], results
    assert "batch: 2 processes x" in results[0][1]


def test_mistake_is_one_line_from_the_first_process(config_file, tmp_path):
    job = start("dist_train.sh", config_file, 2, "--cfg-options", "fp16=1", cwd=tmp_path)
    status, _, errors = finish(job)
    assert status == 2
    assert re.findall(r"^error: .*$", errors, re.M) == [
        line for line in errors.splitlines() if "fp16 -> --amp" in line
    ]
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors


def test_evaluation_of_two_processes_equals_that_of_one(config_file, checkpoints, tmp_path):
    from mmsoftmor.engine.config import load_config
    from mmsoftmor.engine.launch import test as evaluate

    job = start(
        *("dist_test.sh", config_file, checkpoints["full"], 2, "--work-dir", "two"), cwd=tmp_path
    )
    status, _, errors = finish(job)
    assert status == 0, errors
    options = {"work_dir": str(tmp_path / "one")}
    single = evaluate(load_config(str(config_file), options), checkpoints["full"])
    assert json.loads((tmp_path / "two" / "test_metrics.json").read_text())["metrics"] == single
