"""Try imports one after the other and print a JSON line about each.

Run as ``python -m mmsoftmor.env.imports MODULE...`` in a process of its own: a library compiled
against another torch can end the interpreter, and the lines printed until then still tell where.
"""

import importlib
import json
import sys


def _facts(name: str, module: object) -> dict:
    if name == "torch":
        return {"cuda": module.version.cuda, "gpu": module.cuda.is_available()}
    if name == "mmcv.ops":
        return {"ops_cuda": module.get_compiling_cuda_version()}
    return {}


def try_import(name: str) -> dict:
    """Import a module; return its name, the error in one line (or None) and facts about it."""
    try:
        module = importlib.import_module(name)
        return {"module": name, "error": None, **_facts(name, module)}
    except BaseException as error:  # a library may call sys.exit or raise anything at import
        text = str(error).strip().splitlines()
        return {"module": name, "error": f"{type(error).__name__}: {text[0] if text else ''}"}


if __name__ == "__main__":
    for requested in sys.argv[1:]:
        print("@" + json.dumps({"module": requested, "started": True}), flush=True)
        print("@" + json.dumps(try_import(requested)), flush=True)
