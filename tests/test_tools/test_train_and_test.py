"""The command lines of the tools, without running a job."""

import importlib.util
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from mmsoftmor.engine import cli
from mmsoftmor.errors import InputError

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def clean_environment():
    with mock.patch.dict(os.environ):
        for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
            os.environ.pop(name, None)
        yield


@pytest.mark.parametrize("name", ["train", "test"])
@pytest.mark.parametrize("spelling", ["--local_rank=3", "--local-rank=3"])
def test_both_spellings_of_the_local_rank_are_exported(name, spelling):
    positional = ["config.py"] if name == "train" else ["config.py", "weights.pth"]
    tool(name).parse_args([*positional, spelling])
    assert os.environ["LOCAL_RANK"] == "3"


def test_local_rank_of_the_launcher_goes_first():
    os.environ["LOCAL_RANK"] = "1"
    tool("train").parse_args(["config.py", "--local_rank=3"])
    assert os.environ["LOCAL_RANK"] == "1"


def test_no_local_rank_exports_nothing():
    tool("train").parse_args(["config.py"])
    assert "LOCAL_RANK" not in os.environ


@pytest.mark.parametrize(
    ("argv", "expected"), [([], None), (["--resume"], "auto"), (["--resume", "a.pth"], "a.pth")]
)
def test_resume_takes_nothing_or_a_path(argv, expected):
    assert tool("train").parse_args(["config.py", *argv]).resume == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/my data/ade", "/my data/ade"),
        ("'/data/a, b'", "/data/a, b"),
        ("{'mode': 'slide', 'stride': (2, 3)}", dict(mode="slide", stride=(2, 3))),
        ("[{'type': 'A', 'scale': (64, 32)}, 5]", [dict(type="A", scale=(64, 32)), 5]),
        ("512,341", [512, 341]),
        ("(512, 341)", (512, 341)),
        ("[a, b]", ["a", "b"]),
        ("1e-3", 1e-3),
        ("None", None),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_option_is_what_python_reads_and_text_keeps_its_spaces(text, value):
    args = tool("train").parse_args(["c.py", "--cfg-options", f"key={text}"])
    assert args.cfg_options == {"key": value}
    assert type(args.cfg_options["key"]) is type(value)


def test_option_without_value_ends_in_usage(capsys):
    with pytest.raises(SystemExit):
        tool("train").parse_args(["c.py", "--cfg-options", "a.b"])
    assert "'a.b' is not of the form KEY=VALUE" in capsys.readouterr().err


def test_options_are_typed():
    args = tool("train").parse_args(["c.py", "--cfg-options", "a.b=1", "c=x,y", "d=True"])
    assert args.cfg_options == {"a.b": 1, "c": ["x", "y"], "d": True}


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_mistake_is_one_line_and_status_2(capsys, monkeypatch, rank, joined):
    monkeypatch.setattr(cli.distributed, "is_initialized", lambda: joined)
    os.environ["RANK"] = rank

    def fail():
        raise InputError("a.jpg: cannot be read")

    with pytest.raises(SystemExit) as ended:
        cli.run(fail)
    assert ended.value.code == 2
    where = f"[rank {rank}] " if joined else ""
    said = f"error: {where}a.jpg: cannot be read\n" if joined or rank == "0" else ""
    assert capsys.readouterr().err == said


def test_other_errors_keep_their_traceback():
    with pytest.raises(ZeroDivisionError):
        cli.run(lambda: 1 / 0)


class Corrupt:
    """A dataset with a bad image."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise InputError(f"{index}.jpg: image file is cut short: replace it")


def test_mistake_in_a_loading_process_is_one_line_too(capsys):
    from torch.utils.data import DataLoader

    with pytest.raises(SystemExit) as ended:
        cli.run(lambda: next(iter(DataLoader(Corrupt(), num_workers=1))))
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: 0.jpg: image file is cut short: replace it\n"


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("dist_train.sh", []),
        ("dist_train.sh", ["config.py"]),
        ("dist_train.sh", ["config.py", "--amp"]),
        ("dist_train.sh", ["config.py", "0"]),
        ("dist_test.sh", ["config.py", "2"]),
        ("dist_test.sh", ["config.py", "weights.pth", "many"]),
        ("slurm_train.sh", ["partition", "job"]),
        ("slurm_test.sh", ["partition", "job", "config.py"]),
    ],
)
def test_wrong_arguments_print_the_usage(script, arguments):
    done = subprocess.run(["bash", str(TOOLS / script), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "arguments", "ends"),
    [
        (
            "slurm_train.sh",
            ["part", "job", "c.py", "wd", "--amp"],
            ["train.py", "c.py", "--launcher", "slurm", "--work-dir", "wd", "--amp"],
        ),
        (
            "slurm_train.sh",
            ["part", "job", "c.py", "--amp"],
            ["train.py", "c.py", "--launcher", "slurm", "--amp"],
        ),
        (
            "slurm_test.sh",
            ["part", "job", "c.py", "w.pth", "--tta"],
            ["test.py", "c.py", "w.pth", "--tta", "--launcher", "slurm"],
        ),
    ],
)
def test_slurm_scripts_call_srun(tmp_path, script, arguments, ends):
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    settings = dict(
        os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}", GPUS="4", SRUN_ARGS="--qos a --mem 9G"
    )
    done = subprocess.run(
        ["bash", str(TOOLS / script), *arguments],
        capture_output=True,
        text=True,
        env=settings,
        check=True,
    )
    words = done.stdout.split("\n")[:-1]
    for word in ("part", "--job-name=job", "--gres=gpu:4", "--ntasks=4", "--ntasks-per-node=4"):
        assert word in words
    # srun's own options, then the environment's Python (by path where none is active) and -u.
    python_at = words.index("-u") - 1
    assert Path(words[python_at]).name == "python"
    assert words[words.index("--qos") : python_at] == ["--qos", "a", "--mem", "9G"]
    script_at = python_at + 2
    assert [Path(words[script_at]).name, *words[script_at + 1 :]] == ends
