"""Gradients of a model from one or several processes, through MMEngine's own wrapper."""

import os
import tempfile
from collections.abc import Callable
from datetime import timedelta

import torch
from mmengine.model import MMDistributedDataParallel
from torch import distributed, multiprocessing


def gradients(build: Callable, batch: tuple, processes: int) -> dict[str, torch.Tensor]:
    """Gradients by parameter name, from ``processes`` processes on equal parts of a batch.

    Args:
        build: Makes the model; a function of a module, called in each process. The same in every
            process: it seeds what it draws. The model's ``forward`` takes a part of the batch and
            returns a loss that is a mean over it.
        batch: Tensors of equal length, each cut into ``processes`` parts.
        processes: Gloo processes; with 1 the model is called as it is, in this one.
    """
    if processes == 1:
        model = build()
        model(*batch).backward()
        return {name: parameter.grad for name, parameter in model.named_parameters()}
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_work, (build, batch, processes, folder), nprocs=processes)
        results = [torch.load(f"{folder}/{rank}.pt") for rank in range(processes)]
    for name, gradient in results[0].items():
        assert all(torch.equal(gradient, other[name]) for other in results[1:]), name
    return results[0]


def _work(rank: int, build: Callable, batch: tuple, processes: int, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=processes,
        timeout=timedelta(seconds=60),
    )
    model = MMDistributedDataParallel(build(), device_ids=None, broadcast_buffers=False)
    model(*(part.chunk(processes)[rank] for part in batch)).backward()
    grads = {name: parameter.grad for name, parameter in model.module.named_parameters()}
    torch.save(grads, f"{folder}/{rank}.pt")
    distributed.barrier()
    # Leave without destructors: the group's would wait, holding the interpreter's lock, for a
    # thread that needs that lock to let go of the backward pass just done.
    os._exit(0)
