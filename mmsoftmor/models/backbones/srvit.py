"""SR-ViT of "Soft Mixture-of-Recursions" (arXiv 2607.00774)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.logging import print_log
from mmengine.model import ModuleList
from mmengine.utils import to_2tuple
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.utils import build_norm_layer, resize_pos_embed
from mmpretrain.registry import MODELS
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmsoftmor.checkpoints import load_pretrained
from mmsoftmor.checkpoints.pos_embed import SPECIAL_TOKENS, adapt_pos_embed
from mmsoftmor.errors import InputError
from mmsoftmor.models.backbones.options import (
    OUT_TYPES,
    check_choice,
    checked_arch,
    checked_frozen_stages,
    checked_out_indices,
    checked_router,
    layer_windows,
)
from mmsoftmor.models.layers import (
    MIXINGS,
    Router,
    TransformerLayer,
    in_windows,
    recurse,
)

INIT_KEYS = ("checkpoint", "prefix", "allow_partial", "layers")


@MODELS.register_module()
class SRViT(BaseBackbone):
    """Vision transformer whose layers recurse, with a soft mixture over the recursion steps.

    At ``recursion_depth=1`` it is mmpretrain's ``VisionTransformer``: the same parameter names and
    the same outputs. At R > 1 the routers (``routers.*``) are the only addition. A class token and
    global attention make the classifier (``out_type='cls_token'``). Dense mode
    (``out_type='featmap'``) is ViTDet's (arXiv 2203.16527): no class token, window attention in
    most layers, one stride-16 map for an image of any size.

    Where recursion applies and what the router reads are this project's reading of the abstract.

    Args:
        arch (str | dict): ``'tiny'``, ``'small'``, ``'base'``, or a dict with exactly the keys
            ``embed_dims``, ``num_layers``, ``num_heads`` and ``feedforward_channels``. Defaults to
            ``'small'``.
        img_size (int | tuple[int, int]): Image height and width in pixels that the position table
            is stored for; other sizes resize the table on the way. Defaults to 224.
        patch_size (int): Side of a patch in pixels. Defaults to 16.
        in_channels (int): Channels of the image. Defaults to 3.
        recursion_depth (int): Recursion steps R. Defaults to 4.
        recursion_unit (int): Layers that recurse together; must divide the number of layers.
            ``num_layers`` loops the whole stack. Defaults to 1.
        mixing (str): ``'soft'`` mixes all steps by the router's weights, ``'mean'`` evenly,
            ``'last'`` takes the last step alone. Defaults to ``'soft'``.
        router (dict, optional): ``hidden_ratio`` and ``init`` of
            :class:`~mmsoftmor.models.layers.Router`. Defaults to None: its defaults.
        active_depth (int, optional): Steps R' <= R that are run, the mixture renormalised over
            them; also a property that can be set later. Defaults to None: R.
        out_type (str): ``'cls_token'`` (B, C), ``'raw'`` (B, N, C), ``'featmap'`` (B, C, H, W) or
            ``'avg_featmap'`` (B, C). Defaults to ``'cls_token'``.
        out_indices (int | Sequence[int]): Layers whose outputs are returned; negative counts from
            the end. Layers behind the last of them are frozen. Defaults to -1.
        with_cls_token (bool, optional): Whether there is a class token. Defaults to None: yes,
            except for ``out_type='featmap'``.
        window_size (int, optional): Side in tokens of the attention windows; 0 makes every layer
            global. Defaults to None: 16 for ``out_type='featmap'``, else 0.
        global_attn_indexes (Sequence[int], optional): Layers with global attention among windowed
            ones. Defaults to None: the last of each quarter, 2, 5, 8, 11 of 12.
        final_norm (bool): Whether the last layer's output is normalised. Defaults to True.
        qkv_bias (bool): Whether query, key and value have a bias. Defaults to True.
        layer_scale_init_value (float): Starting value of the layer scale, 0 for none. Defaults to
            0.
        drop_rate (float): Dropout rate behind the position embedding and in the MLPs. Defaults to
            0.
        drop_path_rate (float): Drop path rate of the last layer, linear from 0 at the first, drawn
            anew at every recursion step. Defaults to 0.
        norm_cfg (dict): Config of the norms; its ``eps`` is 1e-6 unless it names another. Defaults
            to ``dict(type='LN', eps=1e-6)``.
        frozen_stages (int): Layers frozen from the input on: -1 none, 0 the stem (patch and
            position embedding, class token), k the stem and k layers with their routers. Defaults
            to -1.
        with_cp (bool): Whether training recomputes each recursion step in the backward pass
            (non-re-entrant activation checkpointing). Defaults to False.
        init_cfg (dict, optional): ``dict(type='Pretrained', checkpoint=..., prefix=...,
            allow_partial=..., layers=...)``, see :func:`mmsoftmor.checkpoints.load_pretrained`. A
            ``checkpoint`` of None starts from nothing. Defaults to None.

    Raises:
        InputError: If an option is unknown or does not fit the others.
    """

    def __init__(
        self,
        arch: str | dict = "small",
        img_size: int | tuple[int, int] = 224,
        patch_size: int = 16,
        in_channels: int = 3,
        recursion_depth: int = 4,
        recursion_unit: int = 1,
        mixing: str = "soft",
        router: dict | None = None,
        active_depth: int | None = None,
        out_type: str = "cls_token",
        out_indices: int | Sequence[int] = -1,
        with_cls_token: bool | None = None,
        window_size: int | None = None,
        global_attn_indexes: Sequence[int] | None = None,
        final_norm: bool = True,
        qkv_bias: bool = True,
        layer_scale_init_value: float = 0.0,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        norm_cfg: dict | None = None,
        frozen_stages: int = -1,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        arch = checked_arch(arch)
        self.embed_dims = arch["embed_dims"]
        self.num_layers = arch["num_layers"]
        check_choice("out_type", out_type, OUT_TYPES)
        check_choice("mixing", mixing, MIXINGS)
        self.out_type = out_type
        self.mixing = mixing
        self.with_cp = with_cp
        self._set_recursion(recursion_depth, recursion_unit, active_depth)
        self.out_indices = checked_out_indices(out_indices, self.num_layers, self.recursion_unit)
        self.frozen_stages = checked_frozen_stages(frozen_stages, self.num_layers)
        norm_cfg = {"eps": 1e-6, **(norm_cfg or {"type": "LN"})}

        dense = out_type == "featmap"
        self.with_cls_token = not dense if with_cls_token is None else with_cls_token
        windows = layer_windows(
            (16 if dense else 0) if window_size is None else window_size,
            global_attn_indexes,
            self.num_layers,
            self.with_cls_token,
        )
        self._set_stem(img_size, patch_size, in_channels, drop_rate)
        rates = np.linspace(0, drop_path_rate, self.num_layers)
        self.layers = ModuleList(
            TransformerLayer(
                self.embed_dims,
                arch["num_heads"],
                arch["feedforward_channels"],
                window_size=windows[i],
                drop_rate=drop_rate,
                drop_path_rate=float(rates[i]),
                qkv_bias=qkv_bias,
                layer_scale_init_value=layer_scale_init_value,
                norm_cfg=norm_cfg,
            )
            for i in range(self.num_layers)
        )
        router = checked_router(router)
        if self.recursion_depth > 1 and mixing == "soft":
            self.routers = ModuleList(
                Router(self.embed_dims, self.recursion_depth, **router)
                for _ in range(self.num_layers // self.recursion_unit)
            )
        self.final_norm = final_norm
        if final_norm:
            self.ln1 = build_norm_layer(norm_cfg, self.embed_dims)
        if out_type == "avg_featmap":
            self.ln2 = build_norm_layer(norm_cfg, self.embed_dims)
        self._register_load_state_dict_pre_hook(self._adapt_state_dict)
        self._freeze()

    # ---------------------------------------------------------------- construction

    def _set_recursion(self, depth: int, unit: int, active: int | None) -> None:
        if type(depth) is not int or depth < 1:
            raise InputError(f"recursion_depth={depth!r} must be a whole number of at least 1")
        if not isinstance(unit, int) or unit < 1 or self.num_layers % unit:
            raise InputError(
                f"recursion_unit={unit!r} must divide the {self.num_layers} layers of arch"
            )
        self.recursion_depth = depth
        self.recursion_unit = unit
        self.active_depth = depth if active is None else active

    @property
    def active_depth(self) -> int:
        """Recursion steps that are run, 1 <= R' <= R (elastic depth)."""
        return self._active_depth

    @active_depth.setter
    def active_depth(self, depth: int) -> None:
        if not isinstance(depth, int) or not 1 <= depth <= self.recursion_depth:
            raise InputError(
                f"active_depth={depth!r} must lie between 1 and recursion_depth="
                f"{self.recursion_depth}"
            )
        self._active_depth = depth

    def _set_stem(self, img_size, patch_size: int, in_channels: int, drop_rate: float) -> None:
        if self.out_type == "cls_token" and not self.with_cls_token:
            raise InputError("out_type='cls_token' needs with_cls_token=True")
        self.patch_embed = PatchEmbed(
            in_channels=in_channels,
            embed_dims=self.embed_dims,
            kernel_size=patch_size,
            stride=patch_size,
            input_size=to_2tuple(img_size),
        )
        self.grid = tuple(self.patch_embed.init_out_size)
        tokens = int(self.with_cls_token)
        self.pos_embed = nn.Parameter(
            torch.zeros(1, tokens + self.grid[0] * self.grid[1], self.embed_dims)
        )
        if self.with_cls_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, self.embed_dims))
        self.drop_after_pos = nn.Dropout(drop_rate)

    # ---------------------------------------------------------------- weights

    def init_weights(self) -> None:
        """Initialise everything, then load ``init_cfg``'s file over it; a second call does nothing.

        Linear weights, position table and class token are drawn from a normal of std 0.02 truncated
        at two; biases are 0, norms 1 and 0; routers as :class:`Router` says.
        """
        if self.is_init:
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for router in getattr(self, "routers", ()):
            router.init_weights()
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        if self.with_cls_token:
            nn.init.trunc_normal_(self.cls_token, std=0.02)
        for cfg in self._init_cfgs():
            self._load_pretrained(**cfg)
        self._is_init = True

    def _init_cfgs(self) -> list[dict]:
        cfgs = self.init_cfg or []
        cfgs = [dict(c) for c in ([cfgs] if isinstance(cfgs, dict) else cfgs)]
        for cfg in cfgs:
            kind, unknown = cfg.pop("type", None), sorted(set(cfg) - {*INIT_KEYS, "type"})
            if kind != "Pretrained" or unknown:
                raise InputError(
                    f"init_cfg of SRViT: type={kind!r}, unknown keys {unknown}; it takes "
                    f"type='Pretrained' with {', '.join(INIT_KEYS)}; its own initialisation needs "
                    "no entry"
                )
        return cfgs

    def _load_pretrained(self, checkpoint: str | None = None, **options) -> None:
        if checkpoint is None:
            print_log(
                "SRViT STARTS FROM NOTHING: init_cfg.checkpoint is None, no pretrained weights are "
                "loaded",
                logger="current",
                level=30,
            )
            return
        load_pretrained(self, checkpoint, **options)

    def _adapt_state_dict(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit a file's class token and position table to this model, on every loading path."""
        table = state_dict.get(f"{prefix}pos_embed")
        if table is None:
            return
        tokens = [state_dict.get(f"{prefix}{name}") for name in SPECIAL_TOKENS]
        special = sum(token.shape[1] for token in tokens if token is not None)
        own = special == int(self.with_cls_token)
        state_dict[f"{prefix}pos_embed"] = adapt_pos_embed(
            table, special, self.grid, self.with_cls_token, self.grid if own else None
        )
        if not self.with_cls_token:
            state_dict.pop(f"{prefix}cls_token", None)

    def _frozen(self) -> list[nn.Module]:
        """Return the modules that ``frozen_stages`` freezes."""
        if self.frozen_stages < 0:
            return []
        modules = [self.patch_embed, self.drop_after_pos, *self.layers[: self.frozen_stages]]
        if hasattr(self, "routers"):
            modules += self.routers[: self.frozen_stages // self.recursion_unit]
        if self.frozen_stages == self.num_layers:
            modules += [norm for norm in (self._norm("ln1"), self._norm("ln2")) if norm]
        return modules

    def _norm(self, name: str) -> nn.Module | None:
        return getattr(self, name, None)

    def _unused(self) -> list[nn.Module]:
        """Return the modules that no output uses, which would stall a distributed run."""
        used = self.out_indices[-1] + 1
        modules = [*self.layers[used:]]
        if hasattr(self, "routers"):
            modules += self.routers[used // self.recursion_unit :]
        if used < self.num_layers and self.final_norm:
            modules.append(self.ln1)
        return modules

    def _freeze(self) -> None:
        for module in self._frozen() + self._unused():
            module.requires_grad_(False)
        if self.frozen_stages >= 0:
            self.pos_embed.requires_grad_(False)
            if self.with_cls_token:
                self.cls_token.requires_grad_(False)

    def train(self, mode: bool = True) -> "SRViT":
        """Set training mode, frozen stages staying in evaluation mode, and return self."""
        super().train(mode)
        for module in self._frozen():
            module.eval()
        return self

    # ---------------------------------------------------------------- forward

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return one output for each of ``out_indices``, in the form of ``out_type``.

        Args:
            x (Tensor): Images, shape (B, 3, H, W) with any H and W; the patch embedding pads them
                with zeros at the bottom and right to whole patches.

        Returns:
            tuple[Tensor, ...]: See ``out_type``.
        """
        x, hw = self._embed(x)
        outs = []
        for first in range(0, self.out_indices[-1] + 1, self.recursion_unit):
            x = self._recursive_unit(x, hw, first)
            last = first + self.recursion_unit - 1
            if last == self.num_layers - 1 and self.final_norm:
                x = self.ln1(x)
            if last in self.out_indices:
                outs.append(self._format(x, hw))
        return tuple(outs)

    def _embed(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        x, hw = self.patch_embed(x)
        if self.with_cls_token:
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        table = resize_pos_embed(
            self.pos_embed, self.grid, hw, num_extra_tokens=int(self.with_cls_token)
        )
        return self.drop_after_pos(x + table), tuple(hw)

    def _recursive_unit(self, x: Tensor, hw: tuple[int, int], first: int) -> Tensor:
        """Run the unit that begins with layer ``first``; x (B, N, C) in and out.

        Windows are cut once where all layers of the unit share their size, so that recursion does
        not pay for them at every step; else every layer cuts its own.
        """
        layers = self.layers[first : first + self.recursion_unit]
        sizes = {layer.window_size for layer in layers}
        if len(sizes) == 1:
            return in_windows(partial(self._recursion, layers, first), x, hw, sizes.pop())

        def cut_each(layer: TransformerLayer, h: Tensor, _) -> Tensor:
            return in_windows(layer, h, hw, layer.window_size)

        return self._recursion([partial(cut_each, layer) for layer in layers], first, x, None)

    def _recursion(self, layers, first: int, x: Tensor, mask: Tensor | None) -> Tensor:
        def step(h: Tensor) -> Tensor:
            for layer in layers:
                h = layer(h, mask)
            return h

        weigh = self._weights
        if self.with_cp and self.training and torch.is_grad_enabled():
            step = partial(checkpoint, step, use_reentrant=False)
            weigh = partial(checkpoint, weigh, use_reentrant=False)
        return recurse(step, x, self.active_depth, weigh(x, first))

    def _weights(self, x: Tensor, first: int) -> Tensor | None:
        """Return the mixture weights of the unit that begins with layer ``first``."""
        depth = self.active_depth
        # In training a router's parameters stay in the graph at depth 1, where they get a gradient
        # of zero: a distributed run would wait for those that get none.
        alone = depth == 1 and not (self.training and self.recursion_depth > 1)
        if alone or self.mixing == "last":
            return None
        if self.mixing == "mean":
            return x.new_full((depth,), 1 / depth)
        router = self.routers[first // self.recursion_unit]
        return router(self.layers[first].ln1(x), depth)

    def _format(self, x: Tensor, hw: tuple[int, int]) -> Tensor:
        if self.out_type == "raw":
            return x
        if self.out_type == "cls_token":
            return x[:, 0]
        patches = x[:, int(self.with_cls_token) :]
        if self.out_type == "featmap":
            return patches.transpose(1, 2).unflatten(2, hw).contiguous()
        return self.ln2(patches.mean(dim=1))

    def get_layer_depth(self, param_name: str, prefix: str = "") -> tuple[int, int]:
        """Place a parameter among the physical layers, for layer-wise learning rate decay.

        Args:
            param_name (str): Full name of the parameter.
            prefix (str): What the name has before this backbone's own names. Defaults to ``''``.

        Returns:
            tuple[int, int]: Depth i (0 for the stem, k + 1 for layer k and the router that reads
            it, L + 1 for the final norms) and the number of depths, L + 2.

        Raises:
            InputError: If the name is not one of this backbone's.
        """
        depths = self.num_layers + 2
        name = param_name[len(prefix) :] if param_name.startswith(prefix) else ""
        head, _, rest = name.partition(".")
        if head in ("cls_token", "pos_embed", "patch_embed"):
            return 0, depths
        if head == "layers":
            return int(rest.split(".")[0]) + 1, depths
        if head == "routers":
            return int(rest.split(".")[0]) * self.recursion_unit + 1, depths
        if head in ("ln1", "ln2"):
            return depths - 1, depths
        raise InputError(f"parameter {param_name!r} has no place among the layers of SRViT")
