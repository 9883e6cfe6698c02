"""Install the stack and this project into the running environment, step by step.

``tools/install.sh`` chooses the environment, then runs ``python -m mmsoftmor.env.install`` in the
project root. Each step looks first whether it is needed, so a second run changes nothing and needs
no network. The order matters: mmcv compiles against the torch that is there, and with operators
only if torch is there.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from mmsoftmor.env.advice import explain
from mmsoftmor.env.plan import StepFailedError, choose_stack, compile_jobs, plan_cuda, plan_torch
from mmsoftmor.env.probe import try_imports
from mmsoftmor.env.running import Job, pip_install, run_logged, say
from mmsoftmor.env.stacks import STACKS, installed_versions
from mmsoftmor.env.versions import installed, missing, release

FREE_GIB_FOR_TORCH = 9
EXTRAS = ("all", "tests")


def install_torch(job: Job) -> None:
    """Install the tested torch and torchvision, unless torch is there already."""
    wanted, note = plan_torch(job.stack, installed_versions())
    say(f"  {note}")
    if wanted:
        free = shutil.disk_usage(sys.prefix).free / 2**30
        if installed("torch") is None and free < FREE_GIB_FOR_TORCH:
            raise StepFailedError(
                [f"{free:.1f} GB are free where {sys.prefix} lies"],
                f"make {FREE_GIB_FOR_TORCH} GB free, run again",
            )
        pip_install(job, "torch", *wanted)
    for module, said in try_imports(("torch", "torchvision")).items():
        if said["error"]:
            pins = " ".join(job.stack.pinned("torch", "torchvision"))
            raise StepFailedError(
                [f"{module} does not import: {said['error']}"],
                "torch and torchvision must come from the same source and fit each other: "
                f"pip install --force-reinstall {pins}, then run again",
            )


def install_build_tools(job: Job) -> None:
    """Install what mmcv's build script needs, since it runs without build isolation."""
    wanted = missing(job.stack.build_tools)
    if wanted:
        pip_install(job, "build-tools", *wanted)


def install_libraries(job: Job) -> None:
    """Install the OpenMMLab libraries, which bring all that mmcv needs, OpenCV among it."""
    wanted = missing(job.stack.openmmlab_pins)
    if wanted:
        pip_install(job, "libraries", *wanted)


def mend_opencv(job: Job) -> None:
    """Make ``import cv2`` work where graphics libraries are missing or two OpenCVs differ."""
    error = try_imports(("cv2",))["cv2"]["error"] or ""
    both = [name for name in ("opencv-python", "opencv-python-headless") if installed(name)]
    versions = {installed(name) for name in both}
    pip = [sys.executable, "-m", "pip"]
    if both and "cannot open shared object" in error:
        say(f"  OpenCV needs a graphics library that is not here ({error}):")
        say("  taking opencv-python-headless in its place")
        version = max(versions, key=release)
        run_logged(job, "opencv-remove", [*pip, "uninstall", "-y", *both])
        pip_install(job, "opencv", "--no-deps", f"opencv-python-headless=={version}")
    elif len(versions) > 1 or (error and both):
        # Both distributions write the same folder, so they must be of one version.
        version = min(versions, key=release)
        pins = [f"{name}=={version}" for name in both]
        say(f"  installing {' and '.join(pins)} anew")
        run_logged(job, "opencv-remove", [*pip, "uninstall", "-y", *both])
        pip_install(job, "opencv", "--no-deps", *pins)
    error = try_imports(("cv2",))["cv2"]["error"]
    if error:
        raise StepFailedError([f"cv2 does not import: {error}"], "mend what it names, run again")


def _nvcc_release() -> str | None:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = f"{home}/bin/nvcc" if home else shutil.which("nvcc")
    if not nvcc or not os.path.exists(nvcc):
        return None
    printed = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", printed)
    return match[1] if match else None


def _free_gib() -> float:
    match = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(match[1]) / 2**20


def _cuda_plan() -> tuple[bool, str]:
    torch = try_imports(("torch",))["torch"]
    forced = os.environ.get("FORCE_CUDA")
    return plan_cuda(torch["gpu"], torch["cuda"], _nvcc_release(), forced)


def _operators_problem(cuda: bool) -> str | None:
    said = try_imports(("torch", "mmcv.ops")).get("mmcv.ops", {"error": "torch does not import"})
    if said["error"]:
        return said["error"]
    if cuda and said["ops_cuda"] == "not available":
        return "its operators are compiled for the CPU only"
    return None


def _check_compiler() -> None:
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None and shutil.which("g++") is None:
        raise StepFailedError(
            ["there is no C++ compiler, and mmcv must be compiled"],
            "install one (Debian, Ubuntu: apt install build-essential), run again",
        )
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        version = ".".join(map(str, sys.version_info[:2]))
        raise StepFailedError(
            [f"Python {version} is here without its headers, and mmcv must be compiled"],
            f"install them (Debian, Ubuntu: apt install python{version}-dev), run again",
        )


def drop_kept_wheel(distribution: str) -> None:
    """Remove the wheels that pip built of a distribution and kept, whatever they were built for."""
    pattern = f"{distribution.replace('-', '_')}-*"
    command = [sys.executable, "-m", "pip", "cache", "remove", pattern]
    subprocess.run(command, capture_output=True)  # fails where nothing is kept, which is as well


def install_mmcv(job: Job) -> None:
    """Install mmcv with compiled operators that load beside the installed torch."""
    cuda, note = _cuda_plan()
    pin = job.stack.mmcv_pin
    problem = "not installed" if missing([pin]) else _operators_problem(cuda)
    if problem is None:
        return
    if problem != "not installed":
        say(f"  mmcv is here but unusable: {problem}")
    _check_compiler()
    jobs = os.environ.get("MAX_JOBS") or compile_jobs(len(os.sched_getaffinity(0)), _free_gib())
    say(f"  compiling {pin} {note}")
    say(f"  {jobs} compiler(s) at once; 9 to 14 minutes on 2 cores, more for CUDA; seconds if pip")
    say("  has kept the wheel from an earlier time")
    # Without visible devices mmcv's build script takes the CPU path even if torch sees a GPU.
    devices = {} if cuda else {"CUDA_VISIBLE_DEVICES": ""}
    # The environment need not be active, and a build without ninja compiles one file after another.
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}"
    build = {"MMCV_WITH_OPS": "1", "FORCE_CUDA": str(int(cuda)), "MAX_JOBS": str(jobs)}
    build |= {"PATH": path, **devices}
    arguments = ("-v", "--no-build-isolation", "--no-deps", "--force-reinstall", pin)
    pip_install(job, "mmcv", *arguments, **build)
    problem = _operators_problem(cuda)
    if problem is not None:
        say(f"  the wheel that pip had kept does not fit ({problem}): compiling anew")
        drop_kept_wheel(job.stack.mmcv)
        pip_install(job, "mmcv-again", *arguments, **build)
        problem = _operators_problem(cuda)
    if problem is not None:
        raise StepFailedError(
            [f"mmcv was compiled but is unusable: {problem}"],
            "make a new environment, where the tested torch is taken, run again",
            job.logs / "mmcv.log",
        )


def _project_is_current(job: Job) -> bool:
    """Whether this checkout is installed in editable form, as its setup.py says, with extras."""
    # Only in site-packages: the sources hold an egg-info, which says nothing of this environment.
    folder = sysconfig.get_paths()["purelib"]
    found = next(iter(metadata.distributions(name="mmsoftmor", path=[folder])), None)
    if found is None:
        return False
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    editable = origin.get("dir_info", {}).get("editable", False)
    if not editable or origin["url"] != job.root.as_uri():
        return False
    recorded = Path(folder, f"mmsoftmor-{found.version}.dist-info", "METADATA")
    sources = [job.root / name for name in ("setup.py", "pyproject.toml", "mmsoftmor/version.py")]
    if any(source.stat().st_mtime > recorded.stat().st_mtime for source in sources):
        return False
    wanted = [r for r in found.requires or [] if _wanted_requirement(r)]
    return not missing([*wanted, f"transformers{job.stack.transformers}"])


def _wanted_requirement(requirement: str) -> bool:
    extra = re.search(r"extra\s*==\s*['\"](\w+)['\"]", requirement)
    return extra is None or extra[1] in EXTRAS


def install_project(job: Job) -> None:
    """Install this checkout in editable form with what its tests need."""
    if not _project_is_current(job):
        target = f"{job.root}[{','.join(EXTRAS)}]"
        pip_install(job, "project", "--no-build-isolation", "-e", target)


def verify(job: Job) -> None:
    """Import everything in one process, away from the sources, and run a mask and an operator."""
    log = job.logs / "verify.log"
    command = [sys.executable, "-m", "mmsoftmor.env.verify"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=job.logs)
    log.write_text(run.stdout + run.stderr)
    if run.returncode != 0:
        raise StepFailedError(
            explain(run.stderr)[0],
            f"run {sys.executable} -m mmsoftmor.env and do what it says",
            log,
        )
    for line in run.stdout.splitlines():
        if line.startswith("verified:"):
            say(f"  {line}")


STEPS: tuple[tuple[str, Callable[[Job], None]], ...] = (
    ("torch and torchvision", install_torch),
    ("build tools", install_build_tools),
    ("mmengine, mmdet, mmseg, mmpretrain", install_libraries),
    ("OpenCV", mend_opencv),
    ("mmcv with compiled operators", install_mmcv),
    ("mmsoftmor, in editable form, with its extras", install_project),
    ("verification", verify),
)


def all_in_place(job: Job) -> bool:
    """Whether every requirement is met and the verification passes: the quick second run."""
    wanted = [*job.stack.build_tools, *job.stack.openmmlab_pins, job.stack.mmcv_pin]
    if missing(wanted) or not _project_is_current(job):
        return False
    try:
        verify(job)
    except StepFailedError as failure:
        say(f"  something needs mending: {failure}")
        return False
    # A GPU or nvcc may have come since; where there is no driver, the look at torch is spared.
    may_be_cuda = shutil.which("nvidia-smi") or os.environ.get("FORCE_CUDA") == "1"
    return not may_be_cuda or _operators_problem(_cuda_plan()[0]) is None


def report_failure(step: str, failure: StepFailedError) -> None:
    """Print one block: the step, the reason, the log, what to do."""
    say(f"\ninstallation stopped at: {step}")
    for line in failure.reason:
        say(f"  why:  {line}")
    if failure.log is not None:
        say(f"  log:  {failure.log}")
    say(f"  do:   {failure.advice}")


def run_steps(job: Job) -> int:
    """Go through all steps; return 0, or 1 after reporting the one that failed."""
    for number, (title, step) in enumerate(STEPS, 1):
        say(f"[{number}/{len(STEPS)}] {title}")
        try:
            step(job)
        except StepFailedError as failure:
            report_failure(title, failure)
            return 1
    return 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        advice = "run again with --venv NEW_FOLDER, or in an environment of your own"
        raise StepFailedError([f"{folder} cannot be made: {error.strerror}"], advice) from error


def main(arguments: list[str] | None = None) -> int:
    """Install; return 0 once everything is verified, 1 after a failed step, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="tools/install.sh", description="Install everything.")
    parser.add_argument("--stack", choices=sorted(STACKS), help="default: the one found, or onedl")
    wanted = parser.parse_args(arguments).stack
    logs = Path(sys.prefix, "mmsoftmor-install-logs")
    try:
        stack = choose_stack(wanted, installed_versions())
        _make_folder(logs)
        job = Job(stack, Path(__file__).resolve().parents[2], logs)
        say(f"{stack.name} stack, into {sys.prefix} (Python {sys.version.split()[0]})")
        return 0 if all_in_place(job) else run_steps(job)
    except StepFailedError as failure:
        report_failure("the start", failure)
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted; run the same command again to go on")
        return 130


if __name__ == "__main__":
    sys.exit(main())
