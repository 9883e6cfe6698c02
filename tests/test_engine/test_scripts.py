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


@pytest.fixture
def start(tmp_path):
    """Start a script without GPUs, from a folder that is not the checkout's."""
    processes = []

    def run(script, *arguments, **environment):
        settings = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="-1")
        for name in ("PYTHONPATH", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
            settings.pop(name, None)
        # Files, not pipes: a process whose full pipe nobody reads keeps the others waiting.
        output, errors = (tmp_path / f"{len(processes)}.{end}" for end in ("out", "err"))
        with output.open("w") as stdout, errors.open("w") as stderr:
            process = subprocess.Popen(
                ["bash", str(TOOLS / script), *map(str, arguments)],
                cwd=tmp_path,
                env={**settings, **environment},
                stdout=stdout,
                stderr=stderr,
            )
        processes.append(process)
        return process, output, errors

    yield run
    for process in processes:
        process.terminate()


def finish(job):
    """Wait for a job; returns its status, output and errors."""
    process, output, errors = job
    status = process.wait(timeout=300)
    return status, output.read_text(), errors.read_text()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_two_jobs_at_a_time_train_on_two_processes_each(
    start, config_file, detector_file, tmp_path
):
    # The second process of the detector's job never sees an object: no branch may wait for it.
    options = ("--cfg-options", "log_level=INFO", "train_cfg.max_epochs=3")
    jobs = [
        start("dist_train.sh", config_file, 2, "--work-dir", "cls", *options),
        start("dist_train.sh", detector_file, 2, "--work-dir", "det", *options),
    ]
    for job in jobs:
        status, output, errors = finish(job)
        assert status == 0, errors
        assert "batch: 2 processes x" in output
    weights = torch.load(tmp_path / "cls" / "epoch_3.pth", weights_only=False)
    assert weights["meta"]["iter"] == 6  # 16 images, 4 on each of 2 processes
    logs = list((tmp_path / "det").glob("*/vis_data/scalars.json"))
    losses = [json.loads(line)["loss"] for line in logs[0].read_text().splitlines()]
    assert len(losses) == 6 and all(loss < 100 for loss in losses)


def test_two_machines_join_at_the_given_address(start, config_file):
    shared = dict(NNODES="2", MASTER_ADDR="127.0.0.1", PORT=free_port())
    options = ("--work-dir", "w", "--cfg-options", "log_level=INFO", "train_cfg.max_epochs=1")
    jobs = [
        start("dist_train.sh", config_file, 1, *options, NODE_RANK=rank, **shared) for rank in "01"
    ]
    results = [finish(job) for job in jobs]
    assert [status for status, _, _ in results] == [0, 0], results
    assert "batch: 2 processes x" in results[0][1]


def test_mistake_is_one_line_from_the_first_process(start, config_file):
    job = start("dist_train.sh", config_file, 2, "--cfg-options", "fp16=1")
    status, _, errors = finish(job)
    assert status == 2
    assert re.findall(r"^error: .*$", errors, re.M) == [
        line for line in errors.splitlines() if "fp16 -> --amp" in line
    ]
    assert errors.count("error: ") == 1
    assert "Traceback" not in errors


def test_evaluation_of_two_processes_equals_that_of_one(start, config_file, checkpoints, tmp_path):
    from mmsoftmor.engine.config import load_config
    from mmsoftmor.engine.launch import test as evaluate

    job = start("dist_test.sh", config_file, checkpoints["full"], 2, "--work-dir", "two")
    status, _, errors = finish(job)
    assert status == 0, errors
    options = {"work_dir": str(tmp_path / "one")}
    single = evaluate(load_config(str(config_file), options), checkpoints["full"])
    assert json.loads((tmp_path / "two" / "test_metrics.json").read_text())["metrics"] == single
