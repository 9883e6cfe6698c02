"""Layer-wise learning rate decay over the physical layers of a recursive backbone."""

from collections.abc import Iterator

from mmengine.logging import print_log
from mmengine.optim import DefaultOptimWrapperConstructor, OptimWrapper
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from mmsoftmor.errors import InputError

# Tables and tokens are no weights of a map: decaying them pulls positions towards each other.
NO_DECAY = ("pos_embed", "cls_token")


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class RecursiveLayerDecayConstructor(DefaultOptimWrapperConstructor):
    """Parameter groups with a learning rate that decays towards the input (ViTDet, BEiT).

    A parameter at depth i of a backbone with L layers learns at ``lr * rate ** (L + 1 - i)``: the
    stem is i = 0, layer k and its router are k + 1, and all that is no layer is L + 1, like all
    outside the backbone. Recursion does not count: a layer has one depth however often it runs.
    Biases, norms, layer scales, the position table and the class token have no weight decay. A
    frozen parameter is in no group, and a shared one in one group only.

    Options in ``paramwise_cfg``: ``layer_decay_rate`` (float), the rate; 1.0 turns the decay off.

    Raises:
        InputError: If ``paramwise_cfg`` has other keys, the rate is none, the model is sharded, no
            backbone in it knows its layers' depths, or the backbone has a parameter that it cannot
            place.
    """

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Build the optimiser's wrapper for a model, which may be in one for several processes."""
        if any(isinstance(module, FullyShardedDataParallel) for module in model.modules()):
            raise InputError(
                "optim_wrapper.constructor: sharding flattens and renames the weights, so that "
                f"{type(self).__name__} would not know a norm from a layer: set "
                "optim_wrapper.constructor=None and paramwise_cfg=None, or train without FSDP"
            )
        return super().__call__(model)

    def _validate_cfg(self) -> None:
        super()._validate_cfg()
        if set(self.paramwise_cfg) != {"layer_decay_rate"}:
            raise InputError(
                f"optim_wrapper.paramwise_cfg has keys {sorted(self.paramwise_cfg)}; "
                f"{type(self).__name__} takes layer_decay_rate alone"
            )
        rate = self.paramwise_cfg["layer_decay_rate"]
        if not isinstance(rate, (int, float)) or not 0 < rate <= 1:
            raise InputError(
                f"optim_wrapper.paramwise_cfg.layer_decay_rate={rate!r} must be above 0 and at "
                "most 1, which is no decay"
            )

    def add_params(self, params: list[dict], module: nn.Module, **kwargs) -> None:
        """Append the model's parameter groups to ``params`` and log them as a table."""
        groups: dict[tuple[float, float], dict] = {}
        for name, param, scale in self._scaled(module):
            decay = 0.0 if param.ndim <= 1 or name.endswith(NO_DECAY) else self.base_wd or 0.0
            group = groups.setdefault(
                (scale, decay),
                {"params": [], "lr": self.base_lr * scale, "weight_decay": decay},
            )
            group["params"].append(param)
        params.extend(groups[key] for key in sorted(groups))
        print_log(_table(params), logger="current")

    def _scaled(self, model: nn.Module) -> Iterator[tuple[str, nn.Parameter, float]]:
        """Yield every trainable parameter once with its learning rate's scale."""
        backbones = {
            f"{name}." if name else "": module
            for name, module in model.named_modules()
            if isinstance(module, BaseBackbone) and hasattr(module, "get_layer_depth")
        }
        if not backbones:
            raise InputError(
                "no part of the model knows its layers' depths: layer decay needs SRViT, or set "
                "optim_wrapper.constructor=None"
            )
        rate = self.paramwise_cfg["layer_decay_rate"]
        for name, param in model.named_parameters():
            if not param.requires_grad:
                continue
            prefix = next((p for p in backbones if name.startswith(p)), None)
            if prefix is None:
                yield name, param, 1.0
            else:
                depth, depths = backbones[prefix].get_layer_depth(name, prefix)
                yield name, param, rate ** (depths - 1 - depth)


def _table(groups: list[dict]) -> str:
    rows = ["parameter groups:   learning rate   weight decay   tensors   parameters"]
    for group in groups:
        count = sum(param.numel() for param in group["params"])
        rows.append(
            f"{group['lr']:33.3e}{group['weight_decay']:15g}{len(group['params']):10d}{count:13,d}"
        )
    return "\n".join(rows)
