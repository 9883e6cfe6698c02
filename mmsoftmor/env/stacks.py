"""The two sets of versions that were tested together, and the bounds around them.

This is the only place that names a version: the installer, the report and the tests read it.
"""

from dataclasses import dataclass

from mmsoftmor.env.versions import Range, installed

PYTHON = Range("3.10", "3.13")


@dataclass(frozen=True)
class Stack:
    """One tested set of distributions.

    Attributes:
        name: As in ``tools/install.sh --stack NAME``.
        mmcv: Distribution that provides ``mmcv`` with its compiled operators.
        libraries: The other OpenMMLab distributions, by import name.
        tested: Tested version of each distribution.
        torch: Torch releases that are kept when found, though only ``tested`` was tested.
        torch_too_new: What goes wrong from the end of that range on.
        mmcv_range: Versions of mmcv that all four libraries accept at import.
        numpy: Versions of numpy that the libraries' compiled code accepts.
        setuptools: Versions with which mmcv's build script works.
        transformers: Versions beside which mmpretrain imports; it uses them only if they are there.
        extra: Packages that the libraries import but do not declare.
    """

    name: str
    mmcv: str
    libraries: dict[str, str]
    tested: dict[str, str]
    torch: Range
    torch_too_new: str
    mmcv_range: Range
    numpy: Range
    setuptools: Range
    transformers: Range
    extra: tuple[str, ...] = ()

    def pinned(self, *distributions: str) -> list[str]:
        """Return ``name==tested version`` for each distribution."""
        return [f"{name}=={self.tested[name]}" for name in distributions]

    @property
    def build_tools(self) -> list[str]:
        """What mmcv's build script imports, and what builds the project."""
        return ["ninja", "wheel", "psutil", "packaging", f"setuptools{self.setuptools}"]

    @property
    def mmcv_pin(self) -> str:
        """The requirement for the tested mmcv."""
        return self.pinned(self.mmcv)[0]

    @property
    def openmmlab_pins(self) -> list[str]:
        """The other OpenMMLab libraries, and what they import without declaring it."""
        return [*self.pinned(*self.libraries.values()), *self.extra]

    @property
    def distributions(self) -> dict[str, str]:
        """Distribution of every package of the stack, by import name."""
        return {
            "torch": "torch",
            "torchvision": "torchvision",
            "mmcv": self.mmcv,
            **self.libraries,
            "numpy": "numpy",
        }


ONEDL = Stack(
    name="onedl",
    mmcv="onedl-mmcv",
    libraries={
        "mmengine": "onedl-mmengine",
        "mmdet": "onedl-mmdetection",
        "mmseg": "onedl-mmsegmentation",
        "mmpretrain": "onedl-mmpretrain",
    },
    tested={
        "torch": "2.12.1",
        "torchvision": "0.27.1",
        "onedl-mmengine": "0.10.12",
        "onedl-mmcv": "2.3.6",
        "onedl-mmdetection": "3.5.1",
        "onedl-mmsegmentation": "1.4.2",
        "onedl-mmpretrain": "1.3.6",
        "numpy": "2.2.6",
    },
    torch=Range("2.4", "2.14"),
    torch_too_new="its headers need C++20, and mmcv compiles as C++17",
    mmcv_range=Range("2.0.0", "2.4.0"),
    numpy=Range("2.0", "2.3"),
    setuptools=Range("80", "82"),
    transformers=Range("4.53", "5"),
)

OPENMMLAB = Stack(
    name="openmmlab",
    mmcv="mmcv",
    libraries={
        "mmengine": "mmengine",
        "mmdet": "mmdet",
        "mmseg": "mmsegmentation",
        "mmpretrain": "mmpretrain",
    },
    tested={
        "torch": "2.5.1",
        "torchvision": "0.20.1",
        "mmengine": "0.10.7",
        "mmcv": "2.1.0",
        "mmdet": "3.3.0",
        "mmsegmentation": "1.2.2",
        "mmpretrain": "1.2.0",
        "numpy": "1.26.4",
    },
    torch=Range("2.0", "2.6"),
    torch_too_new="mmengine 0.10.7 cannot load its own checkpoints there",
    mmcv_range=Range("2.0.0", "2.2.0"),
    numpy=Range("1.22", "2"),
    setuptools=Range("60", "70"),
    transformers=Range("4.28", "4.50"),
    extra=("ftfy", "regex"),
)

STACKS = {stack.name: stack for stack in (ONEDL, OPENMMLAB)}

# imaug, which the OneDL detection library needs, stops at this OpenCV; without the bound pip first
# takes a newer one and a newer numpy, then goes back.
OPENCV = Range("4.5", "4.13")


def detect(versions: dict[str, str]) -> list[Stack]:
    """Return the stacks of which any OpenMMLab distribution is among the installed ``versions``."""
    return [
        stack
        for stack in STACKS.values()
        if any(name in versions for name in (stack.mmcv, *stack.libraries.values()))
    ]


def installed_versions() -> dict[str, str]:
    """Return the installed version of every distribution that matters here."""
    names = {name for stack in STACKS.values() for name in (*stack.tested, *stack.extra)}
    names |= {"mmcv-full", "mmcv-lite", "opencv-python", "opencv-python-headless"}
    names |= {"pycocotools", "setuptools", "mmsoftmor", "transformers"}
    found = {name: installed(name) for name in sorted(names)}
    return {name: version for name, version in found.items() if version is not None}
