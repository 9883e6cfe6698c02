import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from mmsoftmor.env import install, plan, running
from mmsoftmor.env.install import run_steps
from mmsoftmor.env.plan import (
    StepFailedError,
    choose_stack,
    compile_jobs,
    constraint_lines,
    matching_torchvision,
    plan_cuda,
    plan_torch,
)
from mmsoftmor.env.probe import try_imports
from mmsoftmor.env.running import Job, run_logged
from mmsoftmor.env.stacks import ONEDL, OPENMMLAB

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def job(tmp_path):
    return Job(ONEDL, ROOT, tmp_path)


def test_bare_environment_takes_the_tested_torch():
    wanted, note = plan_torch(OPENMMLAB, {})
    assert wanted == ["torch==2.5.1", "torchvision==0.20.1", "numpy>=1.22,<2"]
    assert "installing" in note


def test_other_torch_that_works_is_kept_and_the_tested_one_named(monkeypatch):
    monkeypatch.setattr(plan, "missing", lambda requirements: [])
    wanted, note = plan_torch(ONEDL, {"torch": "2.11.0", "torchvision": "0.26.0"})
    assert wanted == []
    assert note == "torch 2.11.0 is kept (tested: torch==2.12.1)"


def test_missing_torchvision_is_matched_to_the_torch_that_is_kept(monkeypatch):
    monkeypatch.setattr(plan, "missing", lambda requirements: [])
    wanted, note = plan_torch(ONEDL, {"torch": "2.12.1+cpu"})
    assert wanted == ["torchvision>=0.27,<0.28"]
    assert note == "torch 2.12.1+cpu is kept"


@pytest.mark.parametrize("stack", [ONEDL, OPENMMLAB])
def test_torch_and_torchvision_pins_belong_together(stack):
    low = matching_torchvision(stack.tested["torch"]).split(">=")[1].split(",")[0]
    assert stack.tested["torchvision"].startswith(f"{low}.")


@pytest.mark.parametrize(
    ("stack", "torch", "reason"),
    [(ONEDL, "2.14.1", "C++20"), (ONEDL, "2.1.0", "older"), (OPENMMLAB, "2.6.0", "checkpoints")],
)
def test_unusable_torch_stops_and_is_not_replaced(stack, torch, reason):
    with pytest.raises(StepFailedError, match="already in this environment") as failure:
        plan_torch(stack, {"torch": torch})
    assert reason in str(failure.value)
    assert "--venv" in failure.value.advice


@pytest.mark.parametrize(
    ("gpu", "torch_cuda", "nvcc", "forced", "cuda"),
    [
        (True, "13.0", "13.0", None, True),
        (True, "13.0", "13.2", None, True),
        (True, "13.0", "12.4", None, False),
        (True, "13.0", None, None, False),
        (True, None, "13.0", None, False),
        (False, "13.0", "13.0", None, False),
        (False, "13.0", "13.0", "1", True),
        (True, "13.0", "13.0", "0", False),
    ],
)
def test_operators_are_compiled_for_cuda_where_gpu_and_fitting_nvcc_are(
    gpu, torch_cuda, nvcc, forced, cuda
):
    assert plan_cuda(gpu, torch_cuda, nvcc, forced)[0] is cuda


@pytest.mark.parametrize(
    ("cores", "free", "jobs"), [(2, 24.0, 2), (64, 24.0, 12), (8, 0.5, 1), (8, 5.0, 2)]
)
def test_compilers_at_once_fit_cores_and_memory(cores, free, jobs):
    assert compile_jobs(cores, free) == jobs


def test_constraints_hold_torch_at_what_is_installed():
    lines = constraint_lines(ONEDL, {"torch": "2.12.1+cpu", "torchvision": "0.27.1"})
    assert "torch==2.12.1+cpu" in lines
    assert "torchvision==0.27.1" in lines
    assert "numpy>=2.0,<2.3" in lines
    assert "transformers>=4.53,<5" in lines


def test_stack_defaults_to_the_one_that_is_installed():
    assert choose_stack(None, {}) is ONEDL
    assert choose_stack(None, {"mmdet": "3.3.0"}) is OPENMMLAB
    assert choose_stack("openmmlab", {}) is OPENMMLAB


@pytest.mark.parametrize(
    ("wanted", "versions"),
    [
        ("onedl", {"mmdet": "3.3.0"}),
        ("openmmlab", {"onedl-mmcv": "2.3.6"}),
        (None, {"onedl-mmcv": "2.3.6", "mmengine": "0.10.7"}),
    ],
)
def test_one_stack_is_never_installed_over_the_other(wanted, versions):
    with pytest.raises(StepFailedError, match="already holds"):
        choose_stack(wanted, versions)


def test_failed_step_prints_one_block_with_step_reason_log_and_advice(job, capsys, monkeypatch):
    def fail(job):
        run_logged(job, "mmcv", [sys.executable, "-c", "raise OSError('No space left on device')"])

    monkeypatch.setattr(install, "STEPS", (("mmcv with compiled operators", fail),))
    assert run_steps(job) == 1
    block = capsys.readouterr().out.split("installation stopped at: ")[1].splitlines()
    assert block[0] == "mmcv with compiled operators"
    assert "why:  OSError: No space left on device" in "\n".join(block)
    assert f"log:  {job.logs / 'mmcv.log'}" in "\n".join(block)
    assert block[-1].startswith("  do:   free some disk space")


def test_long_step_gives_signs_of_life_with_the_compiler_count(job, capsys, monkeypatch):
    monkeypatch.setattr(running, "HEARTBEAT_SECONDS", 0.3)
    code = "import time; print('[12/95] c++ -c a.cpp', flush=True); time.sleep(1.5)"
    run_logged(job, "mmcv", [sys.executable, "-c", code])
    assert "mmcv: still at work, 0:0" in capsys.readouterr().out
    assert running._progress(job.logs / "mmcv.log") == " [12/95]"


class FakeMachine:
    """Stands for pip and the imports: records what is asked, answers from a list."""

    def __init__(self, monkeypatch, problems, gpu=False):
        self.calls, self.problems = [], list(problems)
        torch = {"error": None, "gpu": gpu, "cuda": "13.0"}
        monkeypatch.setattr(install, "missing", lambda requirements: [])
        monkeypatch.setattr(install, "_check_compiler", lambda: None)
        monkeypatch.setattr(install, "_nvcc_release", lambda: "13.0")
        monkeypatch.setattr(install, "try_imports", lambda modules: {"torch": torch})
        monkeypatch.setattr(install, "_operators_problem", lambda cuda: self.problems.pop(0))
        monkeypatch.setattr(install, "pip_install", self.pip_install)
        monkeypatch.setattr(install, "drop_kept_wheel", self.drop)
        for variable in ("FORCE_CUDA", "MAX_JOBS"):
            monkeypatch.delenv(variable, raising=False)

    def pip_install(self, job, name, *arguments, **environment):
        self.calls.append((name, arguments, environment))

    def drop(self, distribution):
        self.calls.append(("drop", distribution))


def test_mmcv_that_works_is_not_touched(job, monkeypatch):
    machine = FakeMachine(monkeypatch, [None])
    install.install_mmcv(job)
    assert machine.calls == []


def test_mmcv_without_gpu_is_compiled_for_the_cpu_though_devices_may_appear(job, monkeypatch):
    machine = FakeMachine(monkeypatch, ["No module named 'mmcv._ext'", None])
    install.install_mmcv(job)
    ((name, arguments, environment),) = machine.calls
    assert name == "mmcv"
    assert arguments[-1] == "onedl-mmcv==2.3.6"
    assert "--no-build-isolation" in arguments
    assert environment["MMCV_WITH_OPS"] == "1"
    assert environment["FORCE_CUDA"] == "0"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert environment["PATH"].split(":")[0] == sysconfig.get_path("scripts")  # ninja is there


def test_mmcv_with_gpu_and_nvcc_is_compiled_for_cuda(job, monkeypatch):
    machine = FakeMachine(monkeypatch, ["its operators are compiled for the CPU only", None], True)
    install.install_mmcv(job)
    environment = machine.calls[0][2]
    assert environment["FORCE_CUDA"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in environment


def test_wheel_kept_from_another_torch_is_dropped_and_compiled_anew(job, monkeypatch, capsys):
    symbol = "ImportError: undefined symbol: _ZN2at"
    machine = FakeMachine(monkeypatch, [symbol, symbol, None])
    install.install_mmcv(job)
    assert [call[0] for call in machine.calls] == ["mmcv", "drop", "mmcv-again"]
    assert machine.calls[1] == ("drop", "onedl-mmcv")
    assert "does not fit (ImportError: undefined symbol: _ZN2at)" in capsys.readouterr().out


def test_mmcv_that_stays_unusable_stops_with_the_inner_error(job, monkeypatch):
    FakeMachine(monkeypatch, ["undefined symbol: a"] * 3)
    with pytest.raises(StepFailedError, match="unusable: undefined symbol: a"):
        install.install_mmcv(job)


@pytest.fixture
def complete(monkeypatch):
    """An environment in which all requirements are met and the verification passes."""

    def build(problems, gpu):
        machine = FakeMachine(monkeypatch, problems, gpu)
        monkeypatch.setattr(install, "_project_is_current", lambda job: True)
        monkeypatch.setattr(install, "verify", lambda job: None)
        monkeypatch.setattr(install.shutil, "which", lambda name: "/x" if gpu else None)
        return machine

    return build


def test_second_run_without_gpu_looks_no_further(job, complete):
    complete([], gpu=False)
    assert install.all_in_place(job)


@pytest.mark.parametrize("problem", [None, "its operators are compiled for the CPU only"])
def test_second_run_notices_that_gpu_and_nvcc_have_come(job, complete, problem):
    complete([problem], gpu=True)
    assert install.all_in_place(job) is (problem is None)


def test_second_run_goes_through_the_steps_if_the_verification_fails(job, complete, monkeypatch):
    complete([], gpu=False)

    def fail(job):
        raise StepFailedError(["ImportError: libGL.so.1"], "mend it")

    monkeypatch.setattr(install, "verify", fail)
    assert not install.all_in_place(job)


def test_environment_of_another_user_is_named(tmp_path):
    with pytest.raises(StepFailedError, match="cannot be made: No such file or directory"):
        install._make_folder(tmp_path / "absent" / "logs")


# --- the shell part: which Python is taken -------------------------------------------------------


@pytest.fixture
def shell(tmp_path):
    """Run a copy of install.sh, seeing only the programs in ``tmp_path/programs``."""
    script = tmp_path / "project/tools/install.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "tools/install.sh", script)
    programs = tmp_path / "programs"
    for name in ("python3.12", "python3.11", "python3.10", "python3", "python"):
        executable(programs / name, "echo 'not found' >&2; exit 127")
    for tool in ("dirname", "uname", "sed", "tail"):
        (programs / tool).symlink_to(shutil.which(tool))

    def run(*arguments, **variables):
        done = subprocess.run(
            [shutil.which("bash"), str(script), *arguments],
            env={"PATH": str(programs), **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr

    return run


# A Python that works, but only tells which environment it is asked to make.
RECORD = f"""[ "$2" = venv ] && {{ echo "ASKED TO MAKE $3"; exit 1; }}
exec {sys.executable} "$@\""""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_no_suitable_python_says_what_to_install(shell, tmp_path):
    status, text = shell()
    assert status == 1
    assert "no Python 3.10, 3.11 or 3.12" in text
    assert "apt install python3.11-venv python3.11-dev" in text
    assert not (tmp_path / "project/.venv").exists()


def test_shim_that_exists_but_fails_is_passed_over(shell, tmp_path):
    # python3 works; the names tried before it are there and fail.
    executable(tmp_path / "programs/python3", RECORD)
    status, text = shell()
    assert status == 1
    assert f"ASKED TO MAKE {tmp_path}/project/.venv" in text
    assert "installation stopped at: virtual environment" in text


def test_folder_option_wins_over_the_active_environment(shell, tmp_path):
    executable(tmp_path / "programs/python3", RECORD)
    text = shell("--venv", "new", VIRTUAL_ENV=str(tmp_path / "env"))[1]
    assert f"ASKED TO MAKE {tmp_path}/new" in text


@pytest.mark.parametrize(
    "variables",
    [{"VIRTUAL_ENV": "env"}, {"CONDA_PREFIX": "env", "CONDA_DEFAULT_ENV": "work"}],
    ids=["venv", "conda"],
)
def test_active_environment_with_an_unsuitable_python_is_refused(shell, tmp_path, variables):
    executable(tmp_path / "env/bin/python", '[ "$1" = -V ] && echo "Python 3.13.0"; exit 1')
    variables = {k: str(tmp_path / v) if v == "env" else v for k, v in variables.items()}
    status, text = shell(**variables)
    assert status == 1
    assert f"the Python of {tmp_path}/env (Python 3.13.0) is not 3.10, 3.11 or 3.12" in text


def test_conda_base_is_left_alone(shell, tmp_path):
    executable(tmp_path / "conda/bin/python", '[ "$1" = -V ] && echo "Python 3.13.0"; exit 1')
    text = shell(CONDA_PREFIX=str(tmp_path / "conda"), CONDA_DEFAULT_ENV="base")[1]
    assert "no Python 3.10, 3.11 or 3.12" in text  # it looks for one to make .venv with
    assert "conda (Python" not in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--stak", "onedl"], "unknown option '--stak'"), (["--stack", "x"], "unknown stack 'x'")],
)
def test_mistaken_options_are_named(shell, arguments, told):
    status, text = shell(*arguments)
    assert status == 1
    assert told in text


def test_broken_interpreter_in_an_import_check_is_reported_not_raised(tmp_path, monkeypatch):
    (tmp_path / "ends_the_interpreter.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    said = try_imports(("json", "ends_the_interpreter", "csv"))
    assert said["json"]["error"] is None
    assert said["ends_the_interpreter"]["error"] == "the interpreter ended with status 7"
    assert "csv" not in said
