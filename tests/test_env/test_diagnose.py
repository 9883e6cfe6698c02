from dataclasses import replace

import pytest

from mmsoftmor.env.diagnose import choose_stack, diagnose, untested
from mmsoftmor.env.probe import Facts
from mmsoftmor.env.stacks import ONEDL, OPENMMLAB, STACKS


def sound(stack, **versions):
    """Facts of an environment in which the tested stack works, with other versions on request."""
    known = {**stack.tested, "setuptools": "69.0", "pycocotools": "2.0.11"}
    known.update(dict.fromkeys(stack.extra, "1.0"))
    known.update({name.replace("_", "-"): version for name, version in versions.items()})
    return Facts(python="3.11.7", versions={k: v for k, v in known.items() if v is not None})


def only_problem(facts, stack):
    problems = diagnose(facts, stack)
    assert len(problems) == 1, problems
    assert "\n" not in problems[0]
    return problems[0]


@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
def test_tested_versions_have_no_problem(stack):
    assert diagnose(sound(stack), stack) == []
    assert untested(sound(stack), stack) == []


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1.7.2", "below"), ("2.0.0", None), ("2.1.0", None), ("2.2.0", "above")],
)
def test_mmcv_bound_of_the_official_stack(version, verdict):
    facts = sound(OPENMMLAB, mmcv=version)
    if verdict is None:
        assert diagnose(facts, OPENMMLAB) == []
    else:
        problem = only_problem(facts, OPENMMLAB)
        assert f"mmcv {version} is {verdict} the bound" in problem
        assert problem.endswith("--no-cache-dir mmcv==2.1.0")


def test_untested_but_accepted_version_is_named_with_the_tested_one():
    assert untested(sound(OPENMMLAB, mmcv="2.0.0"), OPENMMLAB) == ["mmcv 2.0.0 (tested: 2.1.0)"]


def test_mmcv_bound_is_reported_once_though_the_libraries_fail_to_import():
    facts = replace(
        sound(OPENMMLAB, mmcv="2.2.0"),
        errors={
            "mmdet.apis": "AssertionError: MMCV==2.2.0 is used but incompatible.",
            "mmseg.apis": "AssertionError: MMCV==2.2.0 is used but incompatible.",
        },
    )
    assert "above the bound" in only_problem(facts, OPENMMLAB)


def test_mmcv_without_operators():
    error = "ModuleNotFoundError: No module named 'mmcv._ext'"
    facts = replace(sound(ONEDL), errors={"mmcv.ops": error, "mmdet.apis": error})
    problem = only_problem(facts, ONEDL)
    assert "without its compiled operators" in problem
    assert "MMCV_WITH_OPS=1 pip install --no-build-isolation" in problem


def test_mmcv_lite_in_place_of_mmcv():
    problems = diagnose(sound(OPENMMLAB, mmcv=None, mmcv_lite="2.1.0"), OPENMMLAB)
    assert problems[0].startswith("not installed: mmcv:")
    assert problems[1].startswith("mmcv-lite has no operators: pip uninstall -y mmcv-lite")


@pytest.mark.parametrize(
    "error",
    [
        "ImportError: /x/mmcv/_ext.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN2at4_ops5",
        "ImportError: libtorch_cuda.so: cannot open shared object file: No such file or directory",
    ],
)
def test_mmcv_compiled_for_another_torch(error):
    problem = only_problem(replace(sound(ONEDL), errors={"mmcv.ops": error}), ONEDL)
    assert "compiled for another torch than 2.12.1" in problem
    assert problem.endswith("onedl-mmcv==2.3.6")


def test_setuptools_82_matters_only_while_mmcv_is_to_be_built():
    assert diagnose(sound(ONEDL, setuptools="82.0.1"), ONEDL) == []
    problems = diagnose(sound(ONEDL, setuptools="82.0.1", onedl_mmcv=None), ONEDL)
    assert any("setuptools 82.0.1 cannot build onedl-mmcv" in line for line in problems)
    assert any(line.endswith("pip install 'setuptools>=80,<82'") for line in problems)


def test_missing_pkg_resources_is_traced_to_setuptools():
    error = "ModuleNotFoundError: No module named 'pkg_resources'"
    problem = only_problem(replace(sound(ONEDL), errors={"mmseg.apis": error}), ONEDL)
    assert problem.endswith("pip install 'setuptools>=80,<82'")


def test_numpy_2_beside_the_official_stack():
    problem = only_problem(sound(OPENMMLAB, numpy="2.2.6"), OPENMMLAB)
    assert problem.startswith("numpy 2.2.6 is outside >=1.22,<2")
    assert problem.endswith("pip install 'numpy>=1.22,<2'")


def test_pycocotools_built_for_another_numpy():
    error = (
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. "
        "Expected 96 from C header, got 88 from PyObject"
    )
    errors = {"pycocotools.mask": error, "mmdet.apis": error}
    problem = only_problem(replace(sound(ONEDL), errors=errors), ONEDL)
    assert "built against another numpy than 2.2.6" in problem
    assert "--force-reinstall --no-cache-dir pycocotools" in problem


def test_torch_too_new_to_compile_mmcv():
    problem = only_problem(sound(ONEDL, torch="2.14.1", torchvision="0.29.1"), ONEDL)
    assert "C++20" in problem
    assert "pip install torch==2.12.1 torchvision==0.27.1" in problem


def test_torch_too_new_for_the_official_mmengine():
    problem = only_problem(sound(OPENMMLAB, torch="2.6.0"), OPENMMLAB)
    assert "cannot load its own checkpoints" in problem


def test_cpu_torch_beside_cuda_torchvision():
    error = "RuntimeError: operator torchvision::nms does not exist"
    facts = replace(
        sound(ONEDL, torch="2.12.1+cpu"),
        errors={"torchvision": error, "mmpretrain.apis": error},
    )
    problem = only_problem(facts, ONEDL)
    assert "torch 2.12.1+cpu and torchvision 0.27.1 do not belong together" in problem


def test_missing_libgl():
    error = "ImportError: libGL.so.1: cannot open shared object file: No such file or directory"
    facts = replace(sound(ONEDL, opencv_python="4.12.0.88"), errors={"cv2": error, "mmcv": error})
    problem = only_problem(facts, ONEDL)
    assert problem.endswith("pip install opencv-python-headless==4.12.0.88")


def test_undeclared_dependency_is_named():
    error = "ModuleNotFoundError: No module named 'ftfy'"
    problem = only_problem(replace(sound(ONEDL), errors={"mmseg.apis": error}), ONEDL)
    assert problem == "mmseg.apis needs ftfy: pip install ftfy"


def test_missing_opencv_is_named_by_its_distribution():
    errors = {"cv2": "ModuleNotFoundError: No module named 'cv2'"}
    problem = only_problem(replace(sound(ONEDL), errors=errors), ONEDL)
    assert problem == "cv2 needs cv2: pip install opencv-python"


def test_unknown_import_error_shows_the_inner_error():
    errors = {"mmdet.apis": "RuntimeError: something never seen"}
    problem = only_problem(replace(sound(ONEDL), errors=errors), ONEDL)
    assert "RuntimeError: something never seen" in problem


def test_bare_environment_has_one_line_naming_what_is_missing():
    modules = ("numpy", "torch", "cv2", "pycocotools.mask", "mmcv.ops", "mmdet.apis")
    errors = {m: f"ModuleNotFoundError: No module named '{m.split('.')[0]}'" for m in modules}
    problem = only_problem(Facts(python="3.11.7", versions={}, errors=errors), ONEDL)
    assert problem.startswith("not installed: torch, torchvision, onedl-mmcv,")
    assert problem.endswith("bash tools/install.sh --stack onedl")


def test_both_stacks_in_one_environment():
    facts = sound(ONEDL, mmcv="2.1.0", mmengine="0.10.7")
    problem = only_problem(facts, ONEDL)
    assert problem.startswith("both stacks are installed over each other")
    assert "pip uninstall -y" in problem


def test_python_outside_the_range():
    problem = only_problem(replace(sound(ONEDL), python="3.13.0"), ONEDL)
    assert problem.startswith("Python 3.13.0 is outside >=3.10,<3.13")


def test_gpu_with_operators_for_the_cpu_only():
    facts = replace(sound(ONEDL), cuda="13.0", gpu=True, driver=True)
    problem = only_problem(facts, ONEDL)
    assert "compiled for the CPU only" in problem
    assert diagnose(replace(facts, ops_cuda="13.0"), ONEDL) == []


def test_driver_too_old_for_torch():
    problem = only_problem(replace(sound(ONEDL), cuda="13.0", driver=True), ONEDL)
    assert "needs a driver for CUDA 13.0" in problem


@pytest.mark.parametrize(
    ("versions", "stack"),
    [({}, ONEDL), ({"mmdet": "3.3.0"}, OPENMMLAB), ({"onedl-mmengine": "0.10.12"}, ONEDL)],
)
def test_stack_is_recognised_by_its_distributions(versions, stack):
    assert choose_stack(versions) is stack


NO_NAME = "ImportError: cannot import name 'GenerationMixin' from 'transformers.modeling_utils'"


@pytest.mark.parametrize(
    ("stack", "version", "bound", "error"),
    [
        (ONEDL, "5.24.0", ">=4.53,<5", "TypeError: NoneType takes no arguments"),
        (OPENMMLAB, "4.57.6", ">=4.28,<4.50", "TypeError: NoneType takes no arguments"),
        (OPENMMLAB, "4.55.4", ">=4.28,<4.50", NO_NAME),
    ],
)
def test_transformers_beside_which_mmpretrain_does_not_import(stack, version, bound, error):
    errors = {"mmpretrain.models": error}
    problem = only_problem(replace(sound(stack, transformers=version), errors=errors), stack)
    assert problem.endswith(f"beside transformers {version}: pip install 'transformers{bound}'")
