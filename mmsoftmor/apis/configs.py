"""Find the shipped configs: in the installed wheel, or beside the package in a checkout."""

from difflib import get_close_matches
from functools import wraps
from pathlib import Path

from mmsoftmor.errors import InputError

SCOPE = "mmsoftmor::"
_PACKAGE = Path(__file__).resolve().parents[1]


def configs_dir() -> Path:
    """Return the folder of the shipped configs.

    A wheel carries them in ``mmsoftmor/.mim/configs``, as OpenMMLab's packages do; an editable
    install uses the checkout's ``configs``.

    Raises:
        InputError: Neither folder is there.
    """
    inside, beside = _PACKAGE / ".mim" / "configs", _PACKAGE.parent / "configs"
    if inside.is_dir():
        return inside
    # Another project may have put a folder `configs` into site-packages; ours lies by setup.py.
    if beside.is_dir() and (_PACKAGE.parent / "setup.py").is_file():
        return beside
    raise InputError(
        f"no shipped configs in {inside} or {beside}: install mmsoftmor again (pip install .)"
    )


def shipped_config(name: str) -> str:
    """Return the absolute path of a shipped config.

    Args:
        name: File name with or without ``.py``, such as ``"maskrcnn_srvit_s_coco"``, or a path
            below the configs folder, such as ``"_base_/default_runtime.py"``.

    Raises:
        InputError: There is no such config; the message lists the closest names.
    """
    folder = configs_dir()
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))
    wanted = name if name.endswith(".py") else f"{name}.py"
    if wanted in names:
        return str(folder / wanted)
    top = [known for known in names if "/" not in known]
    close = get_close_matches(wanted, names, n=3, cutoff=0.5) or top
    raise InputError(f"no shipped config '{name}': did you mean {', '.join(close)}?")


def register_config_scope() -> None:
    """Let ``_base_ = "mmsoftmor::maskrcnn_srvit_s_coco.py"`` resolve to the shipped config.

    MMEngine resolves such names for its own family only, asks for a subfolder in the name, and
    marks the inherited dicts with the package's scope, under which mmdet's and mmseg's types would
    not be found. Ours are flat and name their own default scope, so this prefix is resolved here
    and every other one by MMEngine as before. Calling it twice changes nothing more.
    """
    from mmengine.config import Config

    stock = Config._get_cfg_path
    if getattr(stock, "resolves_mmsoftmor", False):
        return

    @wraps(stock)
    def resolve(cfg_path: str, filename: str) -> tuple[str, str | None]:
        if cfg_path.startswith(SCOPE):
            return shipped_config(cfg_path.removeprefix(SCOPE)), None
        return stock(cfg_path, filename)

    resolve.resolves_mmsoftmor = True
    Config._get_cfg_path = staticmethod(resolve)
