"""Any supported file into a whole model: a detector's into a segmentor, a plain ViT's into either.

What lies outside the backbone follows by name and shape; what the file does not have keeps its
initialisation and is named in the report.
"""

from torch import Tensor, nn

from mmsoftmor.checkpoints.load import check_values, fit_trunk
from mmsoftmor.checkpoints.reader import Checkpoint
from mmsoftmor.checkpoints.report import ModelReport
from mmsoftmor.checkpoints.schemes import Trunk, find_trunk
from mmsoftmor.errors import InputError
from mmsoftmor.models import SRViT


def find_backbone(model: nn.Module) -> tuple[str, SRViT] | None:
    """Return the name, with the dot behind it, and the module of a model's SR-ViT, if it has one.

    The name of a model that is one itself is ``''``.
    """
    for name, module in model.named_modules():
        if isinstance(module, SRViT):
            return (f"{name}." if name else ""), module
    return None


def fit_model(
    file: Checkpoint, model: nn.Module, allow_partial: bool = False
) -> tuple[dict[str, Tensor], ModelReport]:
    """Make a file fit a whole model, and report how; nothing is loaded.

    Args:
        file (Checkpoint): A backbone's or a whole model's, of any task and any supported scheme.
        model (nn.Module): A classifier, detector or segmentor on an SR-ViT.
        allow_partial (bool): As of :func:`~mmsoftmor.checkpoints.load.load_pretrained`, for the
            backbone. Defaults to False.

    Returns:
        tuple[dict[str, Tensor], ModelReport]: Tensors under the model's names and of its shapes,
        beside what its backbone has no place for; and the report.

    Raises:
        InputError: If the file has no vision transformer, or one that does not fit, or values that
            are no weights.
    """
    before, backbone = find_backbone(model)
    trunk = find_trunk(file)
    state, inner = fit_trunk(file, trunk, backbone, allow_partial)
    report = ModelReport(file.path, inner)
    state = {before + name: value for name, value in state.items()}
    there, others = model.state_dict(), _others(file, trunk, before)
    for name, value in there.items():
        if name.startswith(before):
            continue
        if name not in others:
            report.missing.append(name)
        elif others[name].shape != value.shape:
            mine, theirs = tuple(value.shape), tuple(others[name].shape)
            report.other_shape[name] = f"{theirs} in the file, {mine} in the model"
        else:
            if value.is_floating_point():
                check_values(file.path, name, others[name])
            report.matched.append(name)
            state[name] = others[name]
    report.unused = [name for name in others if name not in there]
    return state, report


def require_complete(report: ModelReport) -> None:
    """Raise InputError unless every tensor of the model came from the file."""
    if report.complete:
        return
    lacking = [*report.backbone.missing, *report.backbone.new, *report.missing]
    lacking += report.other_shape
    raise InputError(
        f"checkpoint {report.path} lacks {len(lacking)} tensors of the model, such as "
        f"{lacking[0]}: give the checkpoint that was trained with this config"
    )


def _others(file: Checkpoint, trunk: Trunk, before: str) -> dict[str, Tensor]:
    """Return the tensors outside the trunk, under the names that a whole model gives them."""
    others = {name: file.state[name] for name in trunk.rest}
    if trunk.prefix.endswith(before):
        outer = trunk.prefix[: len(trunk.prefix) - len(before)]
        others = {name.removeprefix(outer): value for name, value in others.items()}
    return others | trunk.head
