"""Peak memory of a computation, on the CPU too."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile


def peak_memory(run: Callable[[], object], device: str | torch.device = "cpu") -> int:
    """Measure the most memory that a computation holds at once.

    On CUDA it is the caching allocator's own count. On the CPU torch's profiler reports every
    allocation and release of its allocator, scratch space within an operator included, so the
    figure depends on the computation alone and not on what else the process or machine does.

    Args:
        run (Callable): The computation; what it returns is held until the measurement ends.
        device (str | torch.device): Where it runs. Defaults to ``'cpu'``.

    Returns:
        int: Bytes at the peak beyond those that were allocated before.
    """
    if torch.device(device).type == "cuda":
        return _peak_on_cuda(run, device)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        held = run()
    del held
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    changes = [(e["ts"], e["args"]) for e in events if e.get("name") == "[memory]"]
    changes = [change for _, change in sorted(changes, key=lambda item: item[0])]
    if not changes:
        return 0
    before = changes[0]["Total Allocated"] - changes[0]["Bytes"]
    return max(change["Total Allocated"] for change in changes) - before


def _peak_on_cuda(run: Callable[[], object], device: str | torch.device) -> int:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    held = run()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    del held
    return peak
