"""From facts to problems: pure functions, each problem one line that ends with what to do."""

import re
from collections.abc import Iterator

from mmsoftmor.env.probe import Facts
from mmsoftmor.env.stacks import ONEDL, PYTHON, Stack, detect
from mmsoftmor.env.versions import release


def rebuild_mmcv(stack: Stack) -> str:
    """Return the command that compiles mmcv anew for the torch that is installed."""
    return (
        "MMCV_WITH_OPS=1 pip install --no-build-isolation --no-deps --force-reinstall "
        f"--no-cache-dir {stack.mmcv_pin}"
    )


def _install(stack: Stack) -> str:
    return f"bash tools/install.sh --stack {stack.name}"


def choose_stack(versions: dict[str, str]) -> Stack:
    """Return the stack that the installed distributions belong to; the default one if none does."""
    found = detect(versions)
    return found[0] if found else ONEDL


def _python(facts: Facts, stack: Stack) -> Iterator[str]:
    if facts.python not in PYTHON:
        yield (
            f"Python {facts.python} is outside {PYTHON}: make an environment with Python 3.11, "
            f"then {_install(stack)}"
        )


def _two_stacks(facts: Facts, stack: Stack) -> Iterator[str]:
    found = detect(facts.versions)
    if len(found) > 1:
        names = [n for s in found for n in (s.mmcv, *s.libraries.values()) if n in facts.versions]
        yield (
            f"both stacks are installed over each other ({', '.join(names)}): "
            f"pip uninstall -y {' '.join(names)}, then {_install(stack)}"
        )


def _absent(facts: Facts, stack: Stack) -> Iterator[str]:
    names = [*stack.distributions.values(), *stack.extra]
    absent = [name for name in names if name not in facts.versions]
    if absent:
        yield f"not installed: {', '.join(absent)}: {_install(stack)}"


def _mmcv_bound(facts: Facts, stack: Stack) -> Iterator[str]:
    version = facts.versions.get(stack.mmcv)
    if version is None or version in stack.mmcv_range:
        return
    side = "above" if release(version) >= release(stack.mmcv_range.high) else "below"
    yield (
        f"mmcv {version} is {side} the bound that mmdet, mmseg and mmpretrain check at import "
        f"({stack.mmcv_range}): {rebuild_mmcv(stack)}"
    )


def _mmcv_variant(facts: Facts, stack: Stack) -> Iterator[str]:
    for name, what in (("mmcv-lite", "has no operators"), ("mmcv-full", "is of the 1.x series")):
        if name in facts.versions:
            yield f"{name} {what}: pip uninstall -y {name}, then {rebuild_mmcv(stack)}"


def _torch(facts: Facts, stack: Stack) -> Iterator[str]:
    version = facts.versions.get("torch")
    if version is None or version in stack.torch:
        return
    too_new = release(version) >= release(stack.torch.high)
    reason = stack.torch_too_new if too_new else "it is older than the libraries support"
    pins = " ".join(stack.pinned("torch", "torchvision"))
    yield (
        f"torch {version} is outside {stack.torch} ({reason}): pip install {pins}, "
        f"then {rebuild_mmcv(stack)}"
    )


def _numpy(facts: Facts, stack: Stack) -> Iterator[str]:
    version = facts.versions.get("numpy")
    if version is not None and version not in stack.numpy:
        yield (
            f"numpy {version} is outside {stack.numpy}, against which the stack's compiled parts "
            f"were built: pip install 'numpy{stack.numpy}'"
        )


def _setuptools(facts: Facts, stack: Stack) -> Iterator[str]:
    version = facts.versions.get("setuptools", "0")
    to_build = stack.mmcv not in facts.versions or "mmcv.ops" in facts.errors
    if to_build and release(version) >= release(stack.setuptools.high):
        yield (
            f"setuptools {version} cannot build {stack.mmcv} (82 removed pkg_resources): "
            f"pip install 'setuptools{stack.setuptools}'"
        )


def _gpu(facts: Facts, stack: Stack) -> Iterator[str]:
    if "torch" not in facts.versions or "torch" in facts.errors:
        return
    if facts.driver and not facts.gpu:
        what = "is a CPU build" if facts.cuda is None else f"needs a driver for CUDA {facts.cuda}"
        yield (
            f"the NVIDIA driver is there but torch cannot use the GPU (torch {what}): update the "
            f"driver, or install the build of torch {stack.tested['torch']} for the CUDA version "
            "that nvidia-smi prints"
        )
    built = stack.mmcv in facts.versions and "mmcv.ops" not in facts.errors
    if facts.gpu and built and facts.ops_cuda == "not available":
        yield (
            f"mmcv's operators were compiled for the CPU only: install nvcc of CUDA {facts.cuda}, "
            f"then FORCE_CUDA=1 {rebuild_mmcv(stack)}"
        )


def _headless(facts: Facts, stack: Stack) -> str:
    version = facts.versions.get("opencv-python", "4.12.0.88")
    return (
        "OpenCV needs a graphics library that this machine lacks: "
        "pip uninstall -y opencv-python opencv-python-headless, "
        f"then pip install opencv-python-headless=={version}"
    )


def _no_ops(facts: Facts, stack: Stack) -> str:
    return f"mmcv was installed without its compiled operators: {rebuild_mmcv(stack)}"


def _other_torch(facts: Facts, stack: Stack) -> str:
    torch = facts.versions.get("torch", "the installed one")
    return f"mmcv's operators were compiled for another torch than {torch}: {rebuild_mmcv(stack)}"


def _mixed_torch(facts: Facts, stack: Stack) -> str:
    pair = " and ".join(
        f"{name} {facts.versions.get(name, 'missing')}" for name in ("torch", "torchvision")
    )
    pins = " ".join(stack.pinned("torch", "torchvision"))
    return (
        f"{pair} do not belong together (one is built for the CPU, the other for CUDA, or their "
        f"releases differ): pip install --force-reinstall {pins} 'numpy{stack.numpy}'"
    )


def _numpy_abi(facts: Facts, stack: Stack) -> str:
    numpy = facts.versions.get("numpy", "the installed one")
    return (
        f"a compiled part was built against another numpy than {numpy}: "
        f"pip install --force-reinstall --no-cache-dir pycocotools 'numpy{stack.numpy}'"
    )


def _pkg_resources(facts: Facts, stack: Stack) -> str:
    return (
        "a library needs pkg_resources, which setuptools 82 removed: "
        f"pip install 'setuptools{stack.setuptools}'"
    )


def _transformers(facts: Facts, stack: Stack) -> str:
    version = facts.versions.get("transformers", "")
    return (
        f"mmpretrain does not import beside transformers {version}: "
        f"pip install 'transformers{stack.transformers}'"
    )


# What an import error says, in words that do not change with versions, and its mend. An error that
# starts in numpy or torch surfaces in every library above: equal lines are printed once.
CAUSES = (
    (r"lib(GL|EGL|gthread|glib|SM|Xext|Xrender)\b.*cannot open shared object", _headless),
    (r"No module named 'mmcv\._ext'", _no_ops),
    (r"_ext.*undefined symbol|undefined symbol.*(c10|at\d|torch)", _other_torch),
    (r"lib(torch|c10)\w*\.so.*cannot open shared object", _other_torch),
    (r"operator torchvision::nms does not exist|torchvision.*undefined symbol", _mixed_torch),
    (r"numpy\.\w+ size changed|_ARRAY_API not found|numpy\.core\.multiarray failed", _numpy_abi),
    (r"compiled using NumPy 1", _numpy_abi),
    (r"No module named 'pkg_resources'", _pkg_resources),
    # mmpretrain falls back to None for base classes that newer transformers no longer have there.
    (r"NoneType takes no arguments|cannot import name .* from 'transformers", _transformers),
)


# Brought along by the libraries, so not named one by one where those are missing themselves.
BROUGHT = {"cv2": "opencv-python", "pycocotools": "pycocotools"}


def _import_errors(facts: Facts, stack: Stack) -> Iterator[str]:
    absent = [m for m, name in stack.distributions.items() if name not in facts.versions]
    reported = [*absent, *(BROUGHT if absent else ())]
    bound_reported = any(True for _ in _mmcv_bound(facts, stack))
    for module, error in facts.errors.items():
        missing = re.search(r"No module named '(\w+)'", error)
        if (missing and missing[1] in reported) or (bound_reported and "incompatible" in error):
            continue
        mend = next((mend for pattern, mend in CAUSES if re.search(pattern, error)), None)
        if mend is not None:
            yield mend(facts, stack)
        elif missing:
            package = BROUGHT.get(missing[1], missing[1])
            yield f"{module} needs {missing[1]}: pip install {package}"
        else:
            yield f"{module} does not import ({error}): {_install(stack)} in a new environment"


RULES = (
    _python,
    _two_stacks,
    _absent,
    _mmcv_variant,
    _mmcv_bound,
    _torch,
    _numpy,
    _setuptools,
    _gpu,
    _import_errors,
)


def diagnose(facts: Facts, stack: Stack) -> list[str]:
    """Return one line per problem, causes first, each ending with what to do; empty if none."""
    problems = [problem for rule in RULES for problem in rule(facts, stack)]
    return list(dict.fromkeys(problems))


def untested(facts: Facts, stack: Stack) -> list[str]:
    """Return ``"torch 2.11.0 (tested: 2.12.1)"`` for what is installed in another version."""
    return [
        f"{name} {facts.versions[name]} (tested: {wanted})"
        for name, wanted in stack.tested.items()
        if name in facts.versions and release(facts.versions[name]) != release(wanted)
    ]
