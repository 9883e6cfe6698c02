"""Gather the facts about the running environment, without importing the stack in this process."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

from mmsoftmor.env.stacks import installed_versions

MODULES = (
    "numpy",
    "torch",
    "torchvision",
    "cv2",
    "pycocotools.mask",
    "mmengine",
    "mmcv",
    "mmcv.ops",
    "mmdet.models",
    "mmseg.models",
    "mmpretrain.models",
)


@dataclass(frozen=True)
class Facts:
    """What was found.

    Attributes:
        python: Version of the interpreter.
        versions: Installed version by distribution; those not installed are absent.
        errors: Import error in one line by module; modules that import are absent.
        cuda: CUDA version torch was built for, None for a CPU build.
        gpu: Whether torch can use a GPU.
        driver: Whether the machine has an NVIDIA driver.
        ops_cuda: CUDA version mmcv's operators were built for, ``"not available"`` if none.
    """

    python: str
    versions: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    cuda: str | None = None
    gpu: bool = False
    driver: bool = False
    ops_cuda: str = "not available"


def try_imports(modules: tuple[str, ...]) -> dict[str, dict]:
    """Import modules in one child process; return what :mod:`.imports` said of each.

    A module during whose import the child died gets an error that says so; those after it are
    absent.
    """
    run = subprocess.run(
        [sys.executable, "-m", "mmsoftmor.env.imports", *modules], capture_output=True, text=True
    )
    said: dict[str, dict] = {}
    for line in run.stdout.splitlines():
        if line.startswith("@"):
            entry = json.loads(line[1:])
            said[entry["module"]] = entry
    for entry in said.values():
        if "started" in entry:
            entry["error"] = f"the interpreter ended with status {run.returncode}"
    return said


def gather() -> Facts:
    """Look at the running environment; takes some ten seconds, for the imports."""
    said = try_imports(MODULES)
    torch = said.get("torch", {})
    return Facts(
        python=".".join(str(part) for part in sys.version_info[:3]),
        versions=installed_versions(),
        errors={name: entry["error"] for name, entry in said.items() if entry["error"]},
        cuda=torch.get("cuda"),
        gpu=torch.get("gpu", False),
        driver=shutil.which("nvidia-smi") is not None,
        ops_cuda=said.get("mmcv.ops", {}).get("ops_cuda", "not available"),
    )
