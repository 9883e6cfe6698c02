"""The wheel, built from a copy of the sources and used from an empty folder."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("mmsoftmor", "configs", "tools")
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "model-index.yml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel without isolation, so that no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        shutil.copytree(ROOT / name, sources / name, ignore=ignored)
    for name in FILES:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, sources)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(
        [*command, "-w", str(folder), str(sources)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = folder.glob("mmsoftmor-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Install the wheel into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target"]
    run = subprocess.run([*command, str(target), str(wheel)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return target


def run_python(installed, folder, code, *path_before):
    """Run code in an empty folder, seeing the installed wheel and not the checkout."""
    path = ":".join(map(str, [*path_before, installed]))
    # An editable install of the checkout may be there: the wheel's path comes before it.
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def wheel_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_wheel_carries_every_module_config_and_tool(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "mmsoftmor").rglob("*.py")}
    assert modules <= inside
    for folder in ("configs", "tools"):
        shipped = [p for p in (ROOT / folder).rglob("*") if p.is_file()]
        shipped = [p for p in shipped if "__pycache__" not in p.parts]
        assert shipped, f"{folder} holds nothing to ship"
        names = {f"mmsoftmor/.mim/{p.relative_to(ROOT).as_posix()}" for p in shipped}
        assert names <= inside
    assert not [n for n in inside if n.endswith((".pyc", ".so"))]
    assert not [n for n in inside if n.split("/")[0] not in ("mmsoftmor",) and "dist-info" not in n]


def test_wheel_requires_no_distribution_of_the_stack(wheel):
    requirements = wheel_metadata(wheel).get_all("Requires-Dist")
    names = {requirement.split(";")[0].split(">")[0].strip() for requirement in requirements}
    assert {"numpy", "safetensors", "pytest"} <= names
    assert not [n for n in names if n.startswith(("torch=", "mm", "onedl")) or n == "torch"]


def test_wheel_declares_python_extras_and_licence(wheel):
    described = wheel_metadata(wheel)
    assert set(described["Requires-Python"].split(",")) == {">=3.10", "<3.13"}
    assert set(described.get_all("Provides-Extra")) == {"det", "seg", "all", "tests"}
    with zipfile.ZipFile(wheel) as archive:
        licences = [n for n in archive.namelist() if n.endswith("LICENSE") and "dist-info" in n]
        assert len(licences) == 1
        assert "Apache License" in archive.read(licences[0]).decode()


LOAD_ALL = """
import mmsoftmor, pathlib
from mmengine.config import Config
from mmsoftmor.apis.configs import configs_dir, shipped_config
site = pathlib.Path(mmsoftmor.__file__).parents[1]
assert configs_dir() == site / "mmsoftmor/.mim/configs", configs_dir()
names = sorted(path.name for path in configs_dir().glob("*.py"))
for name in names:
    assert Config.fromfile(shipped_config(name)).model.type, name
print(site, len(names))
"""


def test_every_config_loads_from_the_installed_wheel_in_an_empty_folder(installed, tmp_path):
    run = run_python(installed, tmp_path, LOAD_ALL)
    assert run.returncode == 0, run.stderr
    site, count = run.stdout.split()[-2:]
    assert site == str(installed)
    assert int(count) == len(list((ROOT / "configs").glob("*.py"))) > 0


def test_packages_of_common_names_earlier_on_the_path_do_no_harm(installed, tmp_path):
    for name in ("configs", "tools", "projects", "datasets", "models", "env"):
        (tmp_path / "before" / name).mkdir(parents=True)
        (tmp_path / "before" / name / "__init__.py").write_text("raise RuntimeError('imported')\n")
    run = run_python(installed, tmp_path, LOAD_ALL, tmp_path / "before")
    assert run.returncode == 0, run.stderr


CHILD = """
import pathlib
from mmengine.config import Config
from mmsoftmor.apis.configs import configs_dir, register_config_scope
register_config_scope()
name = sorted(path.name for path in configs_dir().glob("*.py"))[0]
pathlib.Path("child.py").write_text(f"_base_ = 'mmsoftmor::{name}'\\nwork_dir = 'mine'\\n")
child = Config.fromfile("child.py")
assert child.work_dir == "mine" and child.model == Config.fromfile(configs_dir() / name).model
"""


def test_child_config_inherits_from_the_installed_wheel_by_scope(installed, tmp_path):
    run = run_python(installed, tmp_path, CHILD)
    assert run.returncode == 0, run.stderr


def test_report_command_works_from_the_installed_wheel(installed, tmp_path):
    code = "import runpy; runpy.run_module('mmsoftmor.env', run_name='__main__')"
    run = run_python(installed, tmp_path, code)
    assert "onedl (default)" in run.stdout, run.stderr
