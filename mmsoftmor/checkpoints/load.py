"""Loading pretrained weights into a backbone, with a report of what matched."""

import os
from dataclasses import dataclass, field

from mmengine.logging import print_log
from torch import nn

from mmsoftmor.checkpoints.reader import HOW_TO_NAME_A_FILE, Checkpoint, read_checkpoint
from mmsoftmor.errors import InputError

# The one tensor that every file of a vision transformer in our naming has.
ANCHOR = "patch_embed.projection.weight"
# Tensors that no plain vision transformer has: new by design, never "missing".
NEW_BY_DESIGN = ("routers.",)
# The one tensor whose shape may differ: the backbone resizes it to its own grid.
RESIZED = "pos_embed"


@dataclass
class LoadReport:
    """What loading a file into a backbone did, by tensor name.

    Attributes:
        path (str): The file.
        matched (list[str]): Tensors taken as they are.
        resized (list[str]): Tensors fitted to the model's grid or tokens.
        missing (list[str]): Trunk tensors of the model that the file lacks.
        new (list[str]): Tensors that are new by design (the routers), left at their initialisation.
        unused (list[str]): Tensors of the file that the model has no place for.
        trunk_share (float): Share of the trunk's parameters that came from the file, 0 to 1.
    """

    path: str
    matched: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    trunk_share: float = 0.0

    def __str__(self) -> str:
        rows = [
            f"loaded {self.path}: {self.trunk_share:.1%} of the trunk's parameters, "
            f"{len(self.matched)} tensors matched"
        ]
        for title in ("resized", "missing", "new", "unused"):
            names = getattr(self, title)
            if names:
                title = "new by design" if title == "new" else title
                rows.append(f"  {title} ({len(names)}): {_grouped(names)}")
        return "\n".join(rows)


def load_pretrained(
    model: nn.Module,
    checkpoint: str | os.PathLike,
    prefix: str | None = None,
    allow_partial: bool = False,
) -> LoadReport:
    """Load a checkpoint into a backbone and log a report.

    Args:
        model (nn.Module): The backbone; its own state-dict hooks fit the position table.
        checkpoint (str | os.PathLike): File or address, see :func:`read_checkpoint`.
        prefix (str, optional): What the backbone's names have before them in the file, such as
            ``'backbone.'``, the last dot optional. Defaults to None: found in the file.
        allow_partial (bool): Whether a file that lacks trunk tensors may be loaded. Defaults to
            False.

    Returns:
        LoadReport: What matched and what did not.

    Raises:
        InputError: If the file cannot be read, a tensor's shape differs from the model's, or trunk
            tensors are missing and ``allow_partial`` is False.
    """
    file = read_checkpoint(checkpoint)
    prefix = _find_prefix(file) if prefix is None else prefix
    if prefix and not prefix.endswith("."):
        prefix += "."
    state = _strip(file, prefix)
    report = _compare(file, state, model)
    report.unused += [name for name in file.state if not name.startswith(prefix)]
    if report.missing and not allow_partial:
        raise InputError(
            f"checkpoint {file.path} gives {report.trunk_share:.1%} of the trunk's parameters; "
            f"missing: {_grouped(report.missing)}; give the file that belongs to this backbone, or "
            "set init_cfg.allow_partial=True"
        )
    try:
        model.load_state_dict(state, strict=False)
    except InputError as error:
        raise InputError(f"checkpoint {file.path}: {error}") from error
    print_log(str(report), logger="current")
    return report


def _find_prefix(file: Checkpoint) -> str:
    return min((name[: -len(ANCHOR)] for name in file.state if name.endswith(ANCHOR)), default="")


def _strip(file: Checkpoint, prefix: str) -> dict:
    """Return the backbone's tensors under the backbone's own names."""
    state = {
        name[len(prefix) :]: value for name, value in file.state.items() if name.startswith(prefix)
    }
    if ANCHOR not in state:
        raise InputError(
            f"checkpoint {file.path} has no {prefix + ANCHOR}: it is no vision transformer in "
            f"mmpretrain's naming under prefix {prefix!r}; {HOW_TO_NAME_A_FILE}"
        )
    return state


def _compare(file: Checkpoint, state: dict, model: nn.Module) -> LoadReport:
    report = LoadReport(file.path)
    own = model.state_dict()
    for name, value in own.items():
        if name.startswith(NEW_BY_DESIGN) and name not in state:
            report.new.append(name)
        elif name not in state:
            report.missing.append(name)
        elif state[name].shape == value.shape:
            report.matched.append(name)
        elif name == RESIZED and state[name].shape[-1] == value.shape[-1]:
            report.resized.append(name)
        else:
            raise InputError(
                f"checkpoint {file.path}: {name} has shape {tuple(state[name].shape)}, the model's "
                f"is {tuple(value.shape)}; build the model with the file's arch and options"
            )
    report.unused = [name for name in state if name not in own]
    loaded = sum(own[name].numel() for name in report.matched + report.resized)
    trunk = loaded + sum(own[name].numel() for name in report.missing)
    report.trunk_share = loaded / trunk
    return report


def _grouped(names: list[str]) -> str:
    """Return the names by their first two parts, with counts, on one line."""
    counts: dict[str, int] = {}
    for name in names:
        group = ".".join(name.split(".")[:2])
        counts[group] = counts.get(group, 0) + 1
    return ", ".join(group if n == 1 else f"{group}.* ({n})" for group, n in counts.items())
