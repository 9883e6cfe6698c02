"""Packaging: what ``pip install`` needs, and the configs inside the wheel.

The OpenMMLab libraries and torch are no requirements here on purpose: the same import names come
from two families of distributions, and naming one would install it over the other. The command
``bash tools/install.sh`` installs a tested set; ``python -m mmsoftmor.env`` judges what is there.
"""

import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
VERSION = runpy.run_path(str(ROOT / "mmsoftmor" / "version.py"))["__version__"]

EXTRAS = {
    "det": ["pycocotools>=2.0.6"],
    "seg": ["ftfy", "regex"],
}
EXTRAS["all"] = [*EXTRAS["det"], *EXTRAS["seg"], "tensorboard"]
EXTRAS["tests"] = ["pytest", "pytest-xdist", "ruff", "timm", "torchmetrics", "transformers<5"]


class BuildWithConfigs(build_py):
    """Add configs and tools to the package as ``mmsoftmor/.mim``, where OpenMMLab looks for them.

    An editable install has no copy: it finds them in the checkout.
    """

    def run(self):
        """Build the modules, then copy what lies beside the package in the sources."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "mmsoftmor", ".mim")
        shutil.rmtree(target, ignore_errors=True)  # a config removed since must not linger
        for folder in ("configs", "tools"):
            copied = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(ROOT / folder, target / folder, ignore=copied)
        index = ROOT / "model-index.yml"
        if index.exists():
            shutil.copy2(index, target)


setup(
    name="mmsoftmor",
    version=VERSION,
    description="SR-ViT, a recursive vision transformer, for dense prediction on OpenMMLab",
    long_description=(ROOT / "README.md").read_text() if (ROOT / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    author="mmsoftmor authors",
    license="Apache-2.0",
    packages=find_packages(include=["mmsoftmor", "mmsoftmor.*"]),
    package_data={"": ["*.safetensors", "*.json", "*.yml"]},
    python_requires=">=3.10,<3.13",
    install_requires=["numpy", "safetensors", "tqdm"],
    extras_require=EXTRAS,
    cmdclass={"build_py": BuildWithConfigs},
)
