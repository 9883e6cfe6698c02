"""Several processes compute what one computes."""

import os
from unittest import mock

import pytest
import torch
from ddp import gradients
from torch import nn

from mmsoftmor.engine.distributed import prepare_processes


class ConvNet(nn.Module):
    """Convolutions, channel norm and a mean squared error."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.GELU(), nn.GroupNorm(2, 8), nn.Conv2d(8, 4, 3)
        ).double()  # what is left is no rounding

    def forward(self, images, targets):
        return (self.layers(images).mean((2, 3)) - targets).square().mean()


def test_gradients_of_two_processes_on_halves_equal_one_on_the_whole():
    kind = dict(generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    batch = torch.rand(4, 3, 12, 12, **kind), torch.rand(4, 4, **kind)
    whole, halves = gradients(ConvNet, batch, 1), gradients(ConvNet, batch, 2)
    assert whole.keys() == halves.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(halves[name], gradient, rtol=0, atol=1e-6)
        assert gradient.abs().max() > 1e-3, f"{name} says nothing"


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
