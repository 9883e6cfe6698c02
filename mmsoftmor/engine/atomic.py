"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import json
import os
import os.path as osp

from mmengine.fileio import LocalBackend, register_backend


def write_bytes(path: str, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that no reader sees half of it.

    An interrupt leaves the old file, if any, and at most ``PATH.tmp``, which the next writing of
    the same file reuses. The folder is created.
    """
    os.makedirs(osp.dirname(osp.abspath(path)), exist_ok=True)
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def write_json(path: str, content: dict) -> None:
    """Write a dict as indented JSON, as :func:`write_bytes` does."""
    write_bytes(path, (json.dumps(content, indent=2) + "\n").encode())


@register_backend("atomic", force=True)
class AtomicLocalBackend(LocalBackend):
    """MMEngine's local files, written atomically: ``backend_args=dict(backend='atomic')``."""

    def put(self, obj: bytes, filepath) -> None:
        """Write bytes to a file; see :func:`write_bytes`."""
        write_bytes(str(filepath), obj)
