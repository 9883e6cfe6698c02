"""What an installation decides: pure functions from what is there to what is done."""

from pathlib import Path

from mmsoftmor.env.stacks import ONEDL, OPENCV, STACKS, Stack, detect
from mmsoftmor.env.versions import missing, release

GIB_PER_COMPILER = 2


class StepFailedError(Exception):
    """A step could not be done: its reason (lines), what to do, and the log if there is one."""

    def __init__(self, reason: list[str], advice: str, log: Path | None = None):
        super().__init__("; ".join(reason))
        self.reason, self.advice, self.log = reason, advice, log


def plan_torch(stack: Stack, versions: dict[str, str]) -> tuple[list[str], str]:
    """Decide about torch: what to install (perhaps nothing), and what to tell the user.

    A torch that is already there is never replaced. One that the stack works with is kept; another
    stops the installation.

    Raises:
        StepFailedError: The torch that is there cannot be used with the stack.
    """
    torch, vision = versions.get("torch"), versions.get("torchvision")
    pins = stack.pinned("torch", "torchvision")
    if torch is None:
        return [*pins, f"numpy{stack.numpy}"], f"installing {' and '.join(pins)} (some GB, minutes)"
    if torch not in stack.torch:
        newer = release(torch) >= release(stack.torch.high)
        reason = stack.torch_too_new if newer else "it is older than the libraries support"
        raise StepFailedError(
            [f"torch {torch}, which is already in this environment, cannot be used: {reason}"],
            "run again with --venv NEW_FOLDER, where the tested torch is taken; "
            f"or replace it yourself: pip install {' '.join(pins)}",
        )
    note = "" if release(torch) == release(stack.tested["torch"]) else f" (tested: {pins[0]})"
    wanted = [] if vision else [matching_torchvision(torch)]
    wanted += missing([f"numpy{stack.numpy}"])
    return wanted, f"torch {torch} is kept{note}"


def matching_torchvision(torch: str) -> str:
    """Return the requirement for the torchvision of a torch 2.x: 2.12 goes with 0.27."""
    minor = (release(torch) + (0,))[1]
    return f"torchvision>=0.{minor + 15},<0.{minor + 16}"


def plan_cuda(
    gpu: bool, torch_cuda: str | None, nvcc: str | None, forced: str | None
) -> tuple[bool, str]:
    """Decide whether mmcv's operators are compiled for CUDA, and say why.

    Args:
        gpu: Whether torch can use a GPU here.
        torch_cuda: CUDA release torch was built for (``"13.0"``), None for a CPU build.
        nvcc: Release that ``nvcc --version`` prints, None if there is no nvcc.
        forced: The variable FORCE_CUDA as the user set it.
    """
    if forced in ("0", "1"):
        return forced == "1", f"as FORCE_CUDA={forced} asks"
    if not gpu:
        return False, "for the CPU only: torch sees no GPU here"
    if nvcc is None:
        return False, f"for the CPU only: there is a GPU but no nvcc; for CUDA install {torch_cuda}"
    if torch_cuda is None or nvcc.split(".")[0] != torch_cuda.split(".")[0]:
        return False, f"for the CPU only: nvcc is of CUDA {nvcc}, torch of CUDA {torch_cuda}"
    return True, f"for CUDA {torch_cuda}: there is a GPU and nvcc {nvcc}"


def compile_jobs(cores: int, free_gib: float) -> int:
    """Return how many compilers may run at once: one a core, as far as memory allows."""
    return max(1, min(cores, int(free_gib // GIB_PER_COMPILER)))


def choose_stack(wanted: str | None, versions: dict[str, str]) -> Stack:
    """Return the stack to install: the wanted one, else the one found here, else the default.

    Raises:
        StepFailedError: The environment holds another stack than the wanted one, or both.
    """
    found = detect(versions)
    stack = STACKS[wanted] if wanted else (found[0] if found else ONEDL)
    others = [other.name for other in found if other is not stack]
    if others:
        raise StepFailedError(
            [f"this environment already holds the {others[0]} stack, under the same import names"],
            f"run again with --venv NEW_FOLDER for the {stack.name} stack",
        )
    return stack


def constraint_lines(stack: Stack, versions: dict[str, str]) -> list[str]:
    """Return pip constraints that hold what must not change while other packages are installed."""
    held = [f"{name}=={versions[name]}" for name in ("torch", "torchvision") if name in versions]
    bounds = [f"numpy{stack.numpy}", f"setuptools{stack.setuptools}"]
    bounds += [f"opencv-python{OPENCV}", f"opencv-python-headless{OPENCV}"]
    return [*held, *bounds, f"transformers{stack.transformers}"]
