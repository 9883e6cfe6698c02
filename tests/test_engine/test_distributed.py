"""How the processes of a job are joined where there is no GPU."""

import os
from unittest import mock

import pytest
import torch

from mmsoftmor.engine.distributed import prepare_processes
from mmsoftmor.errors import InputError


@pytest.fixture
def joined(monkeypatch):
    """Records instead of joining; the environment is put back afterwards."""
    backends = []
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda backend, **_: backends.append(backend)
    )
    with mock.patch.dict(os.environ):
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            os.environ.pop(name, None)
        yield backends


def test_own_wrapper_settings_are_kept_without_a_gpu(tiny, joined):
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    config = tiny(model_wrapper_cfg=dict(static_graph=True))
    prepare_processes(config, "pytorch")
    assert config.model_wrapper_cfg == dict(
        type="MMDistributedDataParallel",
        broadcast_buffers=False,
        find_unused_parameters=False,
        static_graph=True,
        device_ids=None,
    )


SLURM = dict(SLURM_PROCID="3", SLURM_NTASKS="4", SLURM_LOCALID="1", SLURM_JOB_ID="7")
MPI = dict(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_LOCAL_RANK="1")


@pytest.mark.parametrize(
    ("launcher", "variables", "port"), [("slurm", SLURM, "20007"), ("mpi", MPI, "29500")]
)
def test_each_launcher_is_understood(tiny, joined, launcher, variables, port):
    os.environ.update(variables, MASTER_ADDR="10.0.0.1")
    prepare_processes(tiny(), launcher)
    assert joined == ["gloo"]
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    assert [os.environ[name] for name in names] == ["3", "4", "1", "10.0.0.1", port]


def test_slurm_asks_for_the_first_host_of_its_list(tiny, joined, tmp_path):
    (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$3" = "n[1-2]" ] && printf "n1\\nn2\\n"\n')
    (tmp_path / "scontrol").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    os.environ.update(SLURM, SLURM_NODELIST="n[1-2]", PATH=path)
    prepare_processes(tiny(), "slurm")
    assert os.environ["MASTER_ADDR"] == "n1"


def test_sharding_without_gpus_is_refused(tiny, joined):
    config = tiny(strategy=dict(type="FSDPStrategy"))
    for launcher in ("none", "pytorch"):
        with pytest.raises(InputError, match="shards over GPUs"):
            prepare_processes(config, launcher)
    assert joined == []
