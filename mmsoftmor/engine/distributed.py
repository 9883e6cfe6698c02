"""Join the processes of a job, with and without GPUs."""

from __future__ import annotations

import datetime
import logging
import os
import subprocess
import sys

import torch
from mmengine.config import Config
from torch import distributed

from mmsoftmor.engine.config import model_parts
from mmsoftmor.errors import InputError

# The variables in which each launcher tells (rank, number of processes, rank on this machine).
_VARIABLES = {
    "pytorch": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    "mpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
}
_KEPT = []  # process groups that must not be destroyed, see end_process
_SYNC_NORMS = ("SyncBN", "MMSyncBN")


def read_rank(launcher: str) -> int:
    """The rank of this process, before the processes have joined.

    Raises:
        InputError: The launcher's variables are not set: the tool was not started by it.
    """
    if launcher == "none":
        return 0
    missing = [name for name in _VARIABLES[launcher] if name not in os.environ]
    if missing:
        raise InputError(
            f"--launcher {launcher}: variable {missing[0]} is not set: start the job with "
            f"{'tools/slurm_train.sh' if launcher == 'slurm' else 'tools/dist_train.sh'}, or leave "
            "--launcher out"
        )
    return int(os.environ[_VARIABLES[launcher][0]])


def prepare_processes(config: Config, launcher: str) -> None:
    """Make ``config`` and the environment ready for the runner to join the processes.

    On a GPU the runner does it all itself. Without one, its set-up would call CUDA, so the
    processes are joined here, through gloo, and the model wrapper is told to use no device.
    Synchronised batch norm becomes plain batch norm wherever it could not work.

    Args:
        config: Changed in place: ``launcher``, and where there is no GPU ``model_wrapper_cfg``.
        launcher: ``none``, ``pytorch``, ``slurm`` or ``mpi``.

    Raises:
        InputError: More processes than GPUs on this machine, or sharding without GPUs to shard to.
    """
    config.launcher = launcher
    on_gpu = torch.cuda.is_available()
    sharded = (config.get("strategy") or {}).get("type") == "FSDPStrategy"
    if sharded and (launcher == "none" or not on_gpu):
        raise InputError(
            "strategy.type = 'FSDPStrategy' shards over GPUs: start it with tools/dist_train.sh on "
            "a machine that has some, or leave runner_type and strategy out"
        )
    if launcher == "none" or not on_gpu:
        plain_batch_norm(config.model)
    if launcher == "none":
        return
    _set_master(launcher)
    local_rank = int(os.environ[_VARIABLES[launcher][2]])
    if on_gpu:
        here = int(os.environ.get("LOCAL_WORLD_SIZE", local_rank + 1))
        gpus = torch.cuda.device_count()
        if here > gpus:
            raise InputError(f"{here} processes but {gpus} GPUs on this machine: start {gpus}")
        return
    _join_gloo(launcher, config)
    config.model_wrapper_cfg = dict(
        type="MMDistributedDataParallel",
        broadcast_buffers=False,
        find_unused_parameters=config.get("find_unused_parameters", False),
        **{**(config.get("model_wrapper_cfg") or {}), "device_ids": None},
    )


def leave_processes() -> None:
    """Part from the other processes at the end of a job."""
    if distributed.is_available() and distributed.is_initialized():
        if distributed.get_backend() == "gloo":
            _KEPT.append(distributed.group.WORLD)
        distributed.destroy_process_group()


def end_process() -> None:
    """End a process that was joined through gloo; other processes go on.

    Gloo's destructor holds the interpreter's lock while it waits for its threads, and these need
    that lock to let go of their last work: on a busy machine they may never. So it never runs.
    """
    if _KEPT:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def plain_batch_norm(node) -> None:
    """Replace synchronised by plain batch norm at every depth of a model config, in place.

    It exists on GPUs of several processes only. The names in the state dict are the same.
    """
    if isinstance(node, dict):
        if node.get("type") in _SYNC_NORMS:
            node["type"] = "BN"
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for value in node:
            plain_batch_norm(value)


def check_batch_norm(config: Config, launcher: str) -> None:
    """Refuse batch norm of a single value per channel: one image, pooled to 1 x 1.

    Args:
        config: A complete config for training, not changed.
        launcher: As for :func:`prepare_processes`, which makes synchronised batch norm plain.

    Raises:
        InputError: ``train_dataloader.batch_size`` is 1 and a pyramid pooling module of the model
            has a 1 x 1 map and plain batch norm.
    """
    if config.train_dataloader.get("batch_size") != 1:
        return
    plain = ("BN", *_SYNC_NORMS) if launcher == "none" or not torch.cuda.is_available() else ("BN",)
    for path, part in model_parts(config):
        pools = part.get("type") in ("UPerHead", "PSPHead") and 1 in part.get("pool_scales", (1,))
        if pools and (part.get("norm_cfg") or {}).get("type") in plain:
            raise InputError(
                f"train_dataloader.batch_size = 1 is too little for batch norm in {path}, which "
                "pools to 1 x 1: set 2 or more, or another norm_cfg"
            )


def _set_master(launcher: str) -> None:
    """Let every process know where the first one listens; two jobs on a machine must not clash."""
    if launcher == "slurm":
        job = int(os.environ.get("SLURM_JOB_ID", 0)) + int(os.environ.get("SLURM_STEP_ID", 0))
        os.environ.setdefault("MASTER_PORT", str(20000 + job % 20000))
        if "MASTER_ADDR" not in os.environ:
            hosts = ["scontrol", "show", "hostname", os.environ["SLURM_NODELIST"]]
            first = subprocess.run(hosts, capture_output=True, text=True, check=True).stdout
            os.environ["MASTER_ADDR"] = first.split()[0]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")


def _join_gloo(launcher: str, config: Config) -> None:
    rank, size, local_rank = (os.environ[name] for name in _VARIABLES[launcher])
    os.environ.update(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=local_rank)
    timeout = config.get("env_cfg", {}).get("dist_cfg", {}).get("timeout", 1800)
    distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout))
