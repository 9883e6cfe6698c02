"""The naming schemes of plain vision transformers, recognised by content, and their names in ours.

Ours is mmpretrain's. A scheme is recognised by the name of its patch projection, which every vision
transformer has; what stands before that name is the prefix of all its names.
"""

import re
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mmsoftmor.checkpoints.reader import HOW_TO_NAME_A_FILE, Checkpoint
from mmsoftmor.errors import InputError

# Axes of the stem's tensors, under our names.
DIMS = {"patch_embed.projection.weight": 4, "pos_embed": 3}
DIMS |= dict.fromkeys(("cls_token", "dist_token", "register_tokens"), 3)
HEAD = "head.layers.head"  # mmpretrain's linear classification head, beside the backbone


@dataclass(frozen=True)
class Scheme:
    """How one family names a plain vision transformer.

    Attributes:
        name (str): For reports.
        anchor (str): Name of the patch projection's weight.
        layer (str): Pattern of a layer's names; its groups are the number and what follows.
        stem (dict[str, str]): Modules and tensors outside the layers, theirs to ours.
        inside (dict[str, str]): Modules and tensors inside a layer, theirs to ours.
        head (str): The linear classification head, beside or outside the trunk.
    """

    name: str
    anchor: str
    layer: str
    stem: dict[str, str]
    inside: dict[str, str]
    head: str

    def rename(self, name: str) -> str | None:
        """Return our name of a tensor, None for what is no part of the trunk.

        What this scheme does not know inside a layer or at the patches keeps its name: it changes
        what the network computes, so nobody may overlook it.
        """
        match = re.fullmatch(self.layer, name)
        if match:
            return f"layers.{match[1]}.{_swap(self.inside, match[2]) or match[2]}"
        alters = name.startswith(ALTERING)
        return _swap(self.stem, name) or (name if alters else None)

    def restore(self, name: str) -> str | None:
        """Return this scheme's name of one of our tensors, None where it has none."""
        match = re.fullmatch(OURS.layer, name)
        if match:
            inner = _swap(_inverse(self.inside), match[2])
            return inner and f"{self.layer_prefix}{match[1]}.{inner}"
        return _swap(_inverse(self.stem), name)

    @property
    def layer_prefix(self) -> str:
        """What stands before a layer's number."""
        return re.sub(r"\\(.)", r"\1", self.layer.split("(", 1)[0])


# Outside the layers, these compute something that SR-ViT does not.
ALTERING = ("patch_embed.", "pre_norm.", "norm_pre.", "embeddings.norm.")

OURS = Scheme(
    name="mmpretrain",
    anchor="patch_embed.projection.weight",
    layer=r"layers\.(\d+)\.(.+)",
    stem={
        name: name
        for name in (
            *("cls_token", "dist_token", "pos_embed", "register_tokens"),
            *("patch_embed.projection", "ln1", "ln2"),
        )
    },
    # Its own names need no entry; mmsegmentation keeps torch's attention under another module.
    inside={
        "attn.attn.in_proj_weight": "attn.qkv.weight",
        "attn.attn.in_proj_bias": "attn.qkv.bias",
        "attn.attn.out_proj": "attn.proj",
    },
    head=HEAD,
)

TIMM = Scheme(
    name="timm",
    anchor="patch_embed.proj.weight",
    # DINOv2's training files have a chunk's number before the layer's.
    layer=r"blocks\.(?:\d+\.)?(\d+)\.(.+)",
    stem={
        "cls_token": "cls_token",
        "dist_token": "dist_token",
        "pos_embed": "pos_embed",
        "reg_token": "register_tokens",
        "register_tokens": "register_tokens",
        "patch_embed.proj": "patch_embed.projection",
        "norm": "ln1",
        "fc_norm": "ln2",
    },
    inside={
        "norm1": "ln1",
        "attn.qkv": "attn.qkv",
        "attn.proj": "attn.proj",
        "ls1.gamma": "attn.gamma1.weight",
        "gamma_1": "attn.gamma1.weight",
        "norm2": "ln2",
        "mlp.fc1": "ffn.layers.0.0",
        "mlp.fc2": "ffn.layers.1",
        "ls2.gamma": "ffn.gamma2.weight",
        "gamma_2": "ffn.gamma2.weight",
    },
    head="head",
)

HUGGING_FACE = Scheme(
    name="Hugging Face",
    anchor="embeddings.patch_embeddings.projection.weight",
    layer=r"encoder\.layer\.(\d+)\.(.+)",
    stem={
        "embeddings.cls_token": "cls_token",
        "embeddings.distillation_token": "dist_token",
        "embeddings.register_tokens": "register_tokens",
        "embeddings.position_embeddings": "pos_embed",
        "embeddings.patch_embeddings.projection": "patch_embed.projection",
        "layernorm": "ln1",
    },
    inside={
        "layernorm_before": "ln1",
        "norm1": "ln1",
        "attention.attention.query": "attn.query",
        "attention.attention.key": "attn.key",
        "attention.attention.value": "attn.value",
        "attention.output.dense": "attn.proj",
        "layer_scale1.lambda1": "attn.gamma1.weight",
        "layernorm_after": "ln2",
        "norm2": "ln2",
        "intermediate.dense": "ffn.layers.0.0",
        "mlp.fc1": "ffn.layers.0.0",
        "output.dense": "ffn.layers.1",
        "mlp.fc2": "ffn.layers.1",
        "layer_scale2.lambda1": "ffn.gamma2.weight",
    },
    head="classifier",
)

SCHEMES = (OURS, TIMM, HUGGING_FACE)


@dataclass
class Trunk:
    """A vision transformer found in a file, under our names.

    Attributes:
        scheme (Scheme): How the file names it.
        prefix (str): What the file has before its names.
        state (dict[str, Tensor]): The trunk's tensors.
        converted (dict[str, str]): What was made from several tensors, and how.
        head (dict[str, Tensor]): The linear classification head, if there is one, under our names.
        rest (list[str]): The file's names of everything else.
    """

    scheme: Scheme
    prefix: str
    state: dict[str, Tensor]
    converted: dict[str, str] = field(default_factory=dict)
    head: dict[str, Tensor] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)


def find_trunk(file: Checkpoint, prefix: str | None = None) -> Trunk:
    """Find the vision transformer in a file and give its tensors our names.

    Args:
        file (Checkpoint): What was read.
        prefix (str, optional): What its names have before them in the file, the last dot optional.
            Defaults to None: found in the file; of several, the shortest, a teacher before its
            student.

    Returns:
        Trunk: The tensors, nothing resized or left out.

    Raises:
        InputError: If the file holds no vision transformer under that prefix, or one whose stem has
            other axes.
    """
    if prefix and not prefix.endswith("."):
        prefix += "."
    scheme, prefix = _recognise(file, prefix)
    head = _find_head(file.state, scheme, prefix)
    trunk = Trunk(scheme, prefix, {}, head={ours: file.state[n] for n, ours in head.items()})
    for name, value in file.state.items():
        ours = scheme.rename(name[len(prefix) :]) if name.startswith(prefix) else None
        if scheme is OURS and re.match(rf"{re.escape(prefix)}routers\.\d+\.", name):
            ours = name[len(prefix) :]
        if ours is not None:
            trunk.state[ours] = value
        elif name not in head:
            trunk.rest.append(name)
    if not any(name.startswith("layers.") for name in trunk.state):
        raise InputError(
            f"checkpoint {file.path} has the patches of a vision transformer, {prefix}"
            f"{scheme.anchor}, but no layers of one: give a plain vision transformer's file"
        )
    _check_dims(file.path, trunk.state)
    _join_qkv(trunk)
    return trunk


def find_alien(trunk: Trunk) -> list[str]:
    """Return the names in a trunk of what SR-ViT does not compute."""
    ours = (name for name in trunk.state if not name.startswith("routers."))
    return [name for name in ours if TIMM.restore(name) is None]


def _recognise(file: Checkpoint, prefix: str | None) -> tuple[Scheme, str]:
    found = [
        (scheme, name.removesuffix(scheme.anchor))
        for scheme in SCHEMES
        for name in file.state
        if name == scheme.anchor or name.endswith(f".{scheme.anchor}")
    ]
    chosen = [item for item in found if prefix is None or item[1] == prefix]
    if not chosen:
        known = ", ".join(f"{scheme.anchor} ({scheme.name})" for scheme in SCHEMES)
        there = sorted({repr(before) for _, before in found})
        raise InputError(
            f"checkpoint {file.path} holds no vision transformer"
            + (f" under prefix {prefix!r}" if prefix is not None else "")
            + (f", but under {', '.join(there)}" if there else f": it has none of {known}")
            + f"; {HOW_TO_NAME_A_FILE}"
        )
    return min(chosen, key=lambda item: ("student" in item[1], len(item[1]), item[1]))


def _find_head(state: dict[str, Tensor], scheme: Scheme, prefix: str) -> dict[str, str]:
    """Return the names of a head beside the trunk's or one level further out, and ours of them."""
    outer = re.sub(r"[^.]+\.$", "", prefix)
    for before in (prefix, outer):
        names = {f"{before}{scheme.head}.{leaf}": f"{HEAD}.{leaf}" for leaf in ("weight", "bias")}
        if all(name in state for name in names):
            return names
    return {}


def _check_dims(path: str, state: dict[str, Tensor]) -> None:
    """Refuse a stem of another kind: patches of a video, a table that is a map."""
    for name, value in state.items():
        dims = DIMS.get(name, value.ndim)
        if value.ndim != dims:
            raise InputError(
                f"checkpoint {path}: {name} has shape {tuple(value.shape)}, that of a plain vision "
                f"transformer has {dims} axes: give the file of a plain vision transformer"
            )


def _join_qkv(trunk: Trunk) -> None:
    """Put query, key and value one below the other, as the fused projection has them."""
    for name in [name for name in trunk.state if ".attn.query." in name]:
        parts = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if all(part in trunk.state for part in parts):
            joined = name.replace(".query.", ".qkv.")
            trunk.state[joined] = torch.cat([trunk.state.pop(part) for part in parts])
            trunk.converted[joined] = "query, key and value joined"


def _swap(table: dict[str, str], name: str) -> str | None:
    """Replace a tensor's name, or the module's that it belongs to."""
    module, _, leaf = name.rpartition(".")
    return table.get(name) or (f"{table[module]}.{leaf}" if module in table else None)


def _inverse(table: dict[str, str]) -> dict[str, str]:
    """Return ours to theirs; of two of their names for one of ours the first counts."""
    return {ours: theirs for theirs, ours in reversed(table.items())}
