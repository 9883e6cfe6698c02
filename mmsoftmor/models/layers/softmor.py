"""Recursion and the soft mixture over its steps, in plain torch.

For a transformer layer (or unit of layers) ``f`` with input ``x``::

    h_0 = x,   h_r = f(h_{r-1})   for r = 1..R
    w   = softmax(router(norm(x)))
    y   = sum_r w_r * h_r

The recursion and the token-wise mixture over *all* steps are the paper's ("Soft Mixture-of-
Recursions", arXiv 2607.00774, abstract). The router's form and what it reads are this project's
reading of it: the soft form of the token-choice router of Mixture-of-Recursions (arXiv 2507.10524),
which reproduces the abstract's parameter figures.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mmsoftmor.errors import InputError

MIXINGS = ("soft", "mean", "last")

# What ``init='first'`` leaves to all steps after the first together: small enough that a plain ViT
# keeps its function, large enough that the router's gradient does not vanish.
REMAINDER = 0.01


class Router(nn.Module):
    """Mixture weights over the recursion steps, one softmax per token.

    ``Linear(C, hidden) -> GELU -> Linear(hidden, R)``, the softmax always in fp32.

    Args:
        dim (int): Channels C of the tokens.
        depth (int): Recursion depth R, at least 2.
        hidden_ratio (float): Hidden width as a multiple of ``dim``. Defaults to 1.0.
        init (str): ``'uniform'`` starts every step at 1/R, for training from nothing. ``'first'``
            starts the first step at 0.99 and the others at 0.01 together, so that a pretrained
            plain ViT starts as nearly the function it was. Defaults to ``'uniform'``.

    Raises:
        InputError: If ``init`` is unknown or ``hidden_ratio`` leaves no hidden channel.
    """

    def __init__(
        self, dim: int, depth: int, hidden_ratio: float = 1.0, init: str = "uniform"
    ) -> None:
        super().__init__()
        hidden = int(dim * hidden_ratio)
        if hidden < 1:
            raise InputError(f"router.hidden_ratio={hidden_ratio} leaves no channel of {dim}")
        if init not in ("uniform", "first"):
            raise InputError(f"router.init={init!r} is unknown; use 'uniform' or 'first'")
        self.depth = depth
        self.init = init
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, depth)
        self.init_weights()

    def init_weights(self) -> None:
        """Set the starting mixture: the same for every token, as ``init`` says."""
        nn.init.trunc_normal_(self.fc1.weight, std=0.02)
        nn.init.zeros_(self.fc1.bias)
        nn.init.zeros_(self.fc2.weight)
        nn.init.zeros_(self.fc2.bias)
        if self.init == "first":
            odds = (1 - REMAINDER) / REMAINDER
            with torch.no_grad():
                self.fc2.bias[0] = math.log(odds * (self.depth - 1))

    def forward(self, x: Tensor, depth: int | None = None) -> Tensor:
        """Return the weights of the first ``depth`` steps, renormalised over them.

        Args:
            x (Tensor): Normalised tokens, shape (..., C).
            depth (int, optional): Number of steps R' <= R. Defaults to R.

        Returns:
            Tensor: fp32 weights of shape (..., R') that sum to 1 over the last axis.
        """
        logits = self.fc2(self.act(self.fc1(x)))
        return logits[..., :depth].float().softmax(dim=-1)


def recurse(
    step: Callable[[Tensor], Tensor], x: Tensor, depth: int, weights: Tensor | None = None
) -> Tensor:
    """Apply ``step`` ``depth`` times and mix the steps' outputs as they appear.

    The weights are known before the first step, so the mixture accumulates while the steps run and
    no step's output is kept: inference memory does not grow with the depth.

    Args:
        step (Callable): Maps tokens (..., C) to tokens of the same shape.
        x (Tensor): Input tokens, shape (..., C).
        depth (int): Number of steps.
        weights (Tensor, optional): Mixture weights of shape (..., depth), or (depth,) to give every
            token the same. None returns the last step alone, the plain recursion of Universal
            Transformers. Defaults to None.

    Returns:
        Tensor: Mixed tokens, shape and type of ``x``.
    """
    if weights is None:
        for _ in range(depth):
            x = step(x)
        return x
    h, y = x, None
    for w in weights.unsqueeze(-2).unbind(-1):
        h = step(h)
        y = w * h if y is None else torch.addcmul(y, w, h.to(y.dtype))
    return y.to(x.dtype)
