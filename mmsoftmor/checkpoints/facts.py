"""What a vision transformer is, told by a model, by a checkpoint's meta, or by tensors' shapes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from torch import Tensor, nn

META_KEY = "srvit"  # where our checkpoints' meta dict has these facts


@dataclass(frozen=True)
class Facts:
    """The facts that decide whether a file fits a model; None is unknown.

    Attributes:
        embed_dims (int): Channels.
        num_layers (int): Physical layers.
        feedforward_channels (int): Hidden channels of the MLPs.
        num_heads (int | None): Attention heads; no tensor's shape tells them.
        patch_size (int): Side of a patch in pixels.
        qkv_bias (bool): Whether query, key and value have a bias.
        layer_scale (bool): Whether the branches have a layer scale.
        grid (tuple[int, int] | None): Rows and columns of the position table.
        recursion_depth (int): Recursion steps R.
        recursion_unit (int | None): Layers that recurse together.
        mixing (str | None): How the steps are mixed.
    """

    embed_dims: int
    num_layers: int
    feedforward_channels: int
    num_heads: int | None
    patch_size: int
    qkv_bias: bool
    layer_scale: bool
    grid: tuple[int, int] | None = None
    recursion_depth: int = 1
    recursion_unit: int | None = None
    mixing: str | None = None

    def to_meta(self) -> dict:
        """Return plain types, as they stand in a checkpoint's meta under ``META_KEY``."""
        return asdict(self)


def facts_of_model(model: nn.Module) -> Facts:
    """Describe a built SR-ViT."""
    layer = model.layers[0]
    return Facts(
        embed_dims=model.embed_dims,
        num_layers=model.num_layers,
        feedforward_channels=layer.ffn.feedforward_channels,
        num_heads=layer.attn.num_heads,
        patch_size=model.patch_embed.projection.kernel_size[0],
        qkv_bias=layer.attn.qkv.bias is not None,
        layer_scale=not isinstance(layer.attn.gamma1, nn.Identity),
        grid=tuple(model.grid),
        recursion_depth=model.recursion_depth,
        recursion_unit=model.recursion_unit,
        mixing=model.mixing,
    )


def facts_of_state(state: dict[str, Tensor], meta: dict) -> Facts:
    """Describe a file's tensors under our names; ``meta`` tells what shapes cannot.

    Args:
        state (dict[str, Tensor]): The trunk, with the patch projection at least.
        meta (dict): The file's meta; one of a newer version may have more facts than we know.

    Returns:
        Facts: Shapes where both speak, for a file may have been cut since its meta was written.
    """
    told = _told(meta)
    patches = state["patch_embed.projection.weight"]
    numbers = {int(name.split(".")[1]) for name in state if name.startswith("layers.")}
    routers = {int(name.split(".")[1]) for name in state if name.startswith("routers.")}
    layers = max(numbers, default=-1) + 1
    seen = dict(
        embed_dims=patches.shape[0],
        num_layers=layers,
        feedforward_channels=_length(state, ".ffn.layers.0.0.weight"),
        patch_size=patches.shape[-1],
        qkv_bias=_length(state, ".attn.qkv.bias") > 0,
        layer_scale=_length(state, ".attn.gamma1.weight") > 0,
    )
    if routers:
        seen["mixing"] = "soft"
        seen["recursion_depth"] = _length(state, ".fc2.weight", "routers.")
        seen["recursion_unit"] = max(1, layers // (max(routers) + 1))
    return Facts(**{"num_heads": None, **told, **seen})


def _told(meta: dict) -> dict:
    """Return the facts that a file's meta has, without what is no note of ours."""
    told = meta.get(META_KEY)
    if not isinstance(told, Mapping):
        return {}
    told = {f.name: told[f.name] for f in fields(Facts) if told.get(f.name) is not None}
    grid = told.pop("grid", None)
    if isinstance(grid, (list, tuple)) and len(grid) == 2:
        told["grid"] = tuple(grid)
    return told


def _length(state: dict[str, Tensor], ending: str, start: str = "layers.") -> int:
    """Return the first axis of the first tensor so named, 0 without one."""
    return next(
        (
            len(value)
            for name, value in state.items()
            if name.startswith(start) and name.endswith(ending) and value.ndim
        ),
        0,
    )
