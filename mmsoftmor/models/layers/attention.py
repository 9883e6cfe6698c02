"""The transformer layer: pre-norm attention and MLP, under mmpretrain's parameter names."""

import torch.nn.functional as F
from mmcv.cnn.bricks.drop import build_dropout
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import BaseModule
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import Tensor, nn


class Attention(nn.Module):
    """Multi-head self-attention over the last token axis, with padding masked.

    mmpretrain's ``MultiheadAttention`` has these parameters but takes no mask.

    Args:
        dim (int): Channels C.
        num_heads (int): Number of heads; must divide ``dim``.
        qkv_bias (bool): Whether the query, key and value projection has a bias. Defaults to True.
        layer_scale_init_value (float): Starting value of a per-channel scale on the output; 0 for
            none. Defaults to 0.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        qkv_bias: bool = True,
        layer_scale_init_value: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.gamma1 = (
            LayerScale(dim, layer_scale_init_value) if layer_scale_init_value else nn.Identity()
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend within the last token axis.

        Args:
            x (Tensor): Tokens, shape (B, N, C), or (B, G, N, C) for G windows of N tokens.
            mask (Tensor, optional): Boolean, shape (B*G, 1, 1, N), true for tokens that may be
                attended to. Defaults to None: all.

        Returns:
            Tensor: Tokens of the shape of ``x``.
        """
        n, c = x.shape[-2:]
        qkv = self.qkv(x).reshape(-1, n, 3, self.num_heads, c // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.gamma1(self.proj(out.transpose(1, 2).reshape(x.shape)))


class TransformerLayer(BaseModule):
    """Pre-norm transformer layer: ``x + attn(ln1(x))``, then ``x + ffn(ln2(x))``.

    Args:
        dim (int): Channels C.
        num_heads (int): Number of attention heads; must divide ``dim``.
        feedforward_channels (int): Hidden channels of the MLP.
        window_size (int): Side in tokens of the windows that attention is restricted to; 0 for
            global attention. The caller cuts the windows, so that a recursive layer cuts them once.
            Defaults to 0.
        drop_rate (float): Dropout rate in the MLP. Defaults to 0.
        drop_path_rate (float): Rate at which a sample skips a branch, drawn anew at every call.
            Defaults to 0.
        qkv_bias (bool): See :class:`Attention`. Defaults to True.
        layer_scale_init_value (float): See :class:`Attention`. Defaults to 0.
        norm_cfg (dict): Config of the norms. Defaults to ``dict(type='LN', eps=1e-6)``.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        feedforward_channels: int,
        window_size: int = 0,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        qkv_bias: bool = True,
        layer_scale_init_value: float = 0.0,
        norm_cfg: dict | None = None,
    ) -> None:
        super().__init__()
        norm_cfg = norm_cfg or dict(type="LN", eps=1e-6)
        drop_path = dict(type="DropPath", drop_prob=drop_path_rate)
        self.window_size = window_size
        self.ln1 = build_norm_layer(norm_cfg, dim)
        self.attn = Attention(dim, num_heads, qkv_bias, layer_scale_init_value)
        self.drop_path = build_dropout(drop_path)
        self.ln2 = build_norm_layer(norm_cfg, dim)
        self.ffn = FFN(
            embed_dims=dim,
            feedforward_channels=feedforward_channels,
            ffn_drop=drop_rate,
            act_cfg=dict(type="GELU"),
            dropout_layer=drop_path,
            layer_scale_init_value=layer_scale_init_value,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Transform tokens of shape (B, N, C) or (B, G, N, C); see :meth:`Attention.forward`."""
        x = x + self.drop_path(self.attn(self.ln1(x), mask))
        return self.ffn(self.ln2(x), identity=x)
