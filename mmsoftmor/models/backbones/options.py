"""What SRViT's options may be: the named sizes, and a check of each option in one line.

Every function raises InputError, naming the option, its value and what it may be.
"""

import math
from collections.abc import Sequence

from mmsoftmor.errors import InputError

ARCH_KEYS = ("embed_dims", "num_layers", "num_heads", "feedforward_channels")
ARCHS = {
    "tiny": dict(zip(ARCH_KEYS, (192, 12, 3, 768), strict=True)),
    "small": dict(zip(ARCH_KEYS, (384, 12, 6, 1536), strict=True)),
    "base": dict(zip(ARCH_KEYS, (768, 12, 12, 3072), strict=True)),
}
ROUTER_KEYS = ("hidden_ratio", "init")
OUT_TYPES = ("cls_token", "raw", "featmap", "avg_featmap")


def checked_arch(arch: str | dict) -> dict:
    """Return the sizes of a named or given architecture."""
    if isinstance(arch, str):
        if arch not in ARCHS:
            raise InputError(f"arch={arch!r} is unknown; use one of {', '.join(ARCHS)} or a dict")
        return ARCHS[arch]
    if set(arch) != set(ARCH_KEYS):
        raise InputError(f"arch has keys {sorted(arch)}; a dict needs exactly {sorted(ARCH_KEYS)}")
    if any(type(value) is not int or value < 1 for value in arch.values()):
        raise InputError(f"arch={arch}: every value must be a whole number of at least 1")
    if arch["embed_dims"] % arch["num_heads"]:
        raise InputError(
            f"arch: num_heads={arch['num_heads']} must divide embed_dims={arch['embed_dims']}"
        )
    return arch


def checked_router(router: dict | None) -> dict:
    """Return the options of the routers."""
    router = router or {}
    unknown = sorted(set(router) - set(ROUTER_KEYS))
    if unknown:
        raise InputError(f"router has unknown keys {unknown}; use {', '.join(ROUTER_KEYS)}")
    return router


def check_choice(key: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise InputError(f"{key}={value!r} is unknown; use one of {', '.join(choices)}")


def checked_out_indices(
    out_indices: int | Sequence[int], num_layers: int, unit: int
) -> tuple[int, ...]:
    """Return the tapped layers, ascending and counted from 0, each the last of its unit."""
    given = [out_indices] if isinstance(out_indices, int) else list(out_indices)
    indices = tuple(i + num_layers if i < 0 else i for i in given)
    for i in indices:
        if not 0 <= i < num_layers or (i + 1) % unit:
            raise InputError(
                f"out_indices={out_indices!r}: each must be the last layer of a recursive unit "
                f"of {unit} among {num_layers} layers"
            )
    if not indices or list(indices) != sorted(set(indices)):
        raise InputError(f"out_indices={out_indices!r} must be distinct and ascending")
    return indices


def checked_frozen_stages(frozen_stages: int, num_layers: int) -> int:
    """Return how many stages are frozen, -1 for none."""
    if not -1 <= frozen_stages <= num_layers:
        raise InputError(f"frozen_stages={frozen_stages} must lie between -1 and {num_layers}")
    return frozen_stages


def layer_windows(
    size: int, global_indexes: Sequence[int] | None, num_layers: int, with_cls_token: bool
) -> list[int]:
    """Return each layer's window size in tokens, 0 for global attention."""
    if type(size) is not int or size < 0:
        raise InputError(f"window_size={size!r} must be a whole number of tokens, 0 for none")
    if size and with_cls_token:
        raise InputError(
            f"window_size={size} needs a model without class token: set "
            "out_type='featmap' and leave with_cls_token out"
        )
    if global_indexes is None:
        global_indexes = [math.ceil(num_layers * q / 4) - 1 for q in (1, 2, 3, 4)]
    if any(not 0 <= i < num_layers for i in global_indexes):
        raise InputError(
            f"global_attn_indexes={list(global_indexes)} must name layers 0 to {num_layers - 1}"
        )
    return [0 if i in global_indexes else size for i in range(num_layers)]
