"""What is in a checkpoint file, and which model it fits."""

import json
import os
from dataclasses import asdict, dataclass

from mmengine.registry import MODELS, DefaultScope

from mmsoftmor.checkpoints.facts import Facts, facts_of_state
from mmsoftmor.checkpoints.pos_embed import SPECIAL_TOKENS
from mmsoftmor.checkpoints.reader import read_checkpoint
from mmsoftmor.checkpoints.report import ModelReport, grouped
from mmsoftmor.checkpoints.schemes import HEAD, find_alien, find_trunk
from mmsoftmor.checkpoints.whole import find_backbone, fit_model
from mmsoftmor.engine.config import load_config
from mmsoftmor.errors import InputError
from mmsoftmor.models.backbones.options import ARCH_KEYS, ARCHS


@dataclass
class FileSummary:
    """What a file holds.

    Attributes:
        path (str): The file.
        key (str): Where in it the tensors are; empty at its top.
        scheme (str): How it names the vision transformer.
        prefix (str): What stands before these names.
        parameters (int): Values of the vision transformer.
        facts (dict): See :class:`~mmsoftmor.checkpoints.facts.Facts`.
        tokens (dict[str, int]): Class, distillation and register tokens.
        positions (int): Entries of the position table.
        classes (int): Outputs of the classification head, 0 without one.
        rest (list[str]): Names of all other tensors.
        meta (list[str]): Keys of the meta dict.
        alien (list[str]): Names of what SR-ViT does not compute, such as relative positions.
        backbone (dict): Options of the SRViT that the file fits, none where something is alien. The
            number of heads is of the shipped size with these channels where the file does not tell
            it.
    """

    path: str
    key: str
    scheme: str
    prefix: str
    parameters: int
    facts: dict
    tokens: dict[str, int]
    positions: int
    classes: int
    rest: list[str]
    meta: list[str]
    alien: list[str]
    backbone: dict

    def to_dict(self) -> dict:
        """Return the summary as plain types, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.backbone.items())
        rows = {
            "file": self.path,
            "tensors under": self.key or "the top",
            "naming scheme": f"{self.scheme}, prefix {self.prefix!r}",
            "trunk": f"{self.parameters / 1e6:.2f}M parameters",
            "facts": ", ".join(f"{k}={v}" for k, v in self.facts.items() if v is not None),
            "special tokens": ", ".join(f"{k}: {v}" for k, v in self.tokens.items()) or "none",
            "position table": f"{self.positions} entries",
            "head": f"{self.classes} classes" if self.classes else "none",
            "other tensors": grouped(self.rest) or "none",
            "meta": ", ".join(self.meta) or "none",
            "fits": f"dict(type='SRViT', {options})"
            if self.backbone
            else f"no SRViT, it has parts that SR-ViT does not compute: {grouped(self.alien)}",
        }
        return "\n".join(f"{title:>15}: {text}" for title, text in rows.items())


def inspect_checkpoint(checkpoint: str | os.PathLike, prefix: str | None = None) -> FileSummary:
    """Summarise a checkpoint file.

    Args:
        checkpoint (str | os.PathLike): File or address.
        prefix (str, optional): As of :func:`~mmsoftmor.checkpoints.load.load_pretrained`.

    Returns:
        FileSummary: What it holds.

    Raises:
        InputError: If it cannot be read or holds no vision transformer.
    """
    file = read_checkpoint(checkpoint)
    trunk = find_trunk(file, prefix)
    facts = facts_of_state(trunk.state, file.meta)
    alien = find_alien(trunk)
    tokens = {name: trunk.state[name].shape[1] for name in SPECIAL_TOKENS if name in trunk.state}
    return FileSummary(
        path=file.path,
        key=file.key,
        scheme=trunk.scheme.name,
        prefix=trunk.prefix,
        parameters=sum(value.numel() for value in trunk.state.values()),
        facts=facts.to_meta(),
        tokens=tokens,
        positions=trunk.state["pos_embed"].shape[1] if "pos_embed" in trunk.state else 0,
        classes=trunk.head[f"{HEAD}.bias"].numel() if trunk.head else 0,
        rest=trunk.rest,
        meta=list(file.meta),
        alien=alien,
        backbone={} if alien else _options(facts, "cls_token" in tokens),
    )


def compare_with_config(checkpoint: str | os.PathLike, config: str) -> ModelReport:
    """Build a config's model and report what loading the file into it would do.

    Raises:
        InputError: If the file does not fit, or the config has no SR-ViT; says why.
    """
    loaded = load_config(config)
    with DefaultScope.overwrite_default_scope(loaded.get("default_scope", "mmengine")):
        model = MODELS.build(loaded.model)
    if find_backbone(model) is None:
        raise InputError(f"--config {config}: its model has no SRViT to compare a file with")
    return fit_model(read_checkpoint(checkpoint), model)[1]


def _options(facts: Facts, with_cls_token: bool) -> dict:
    """Return the SRViT options that differ from its defaults, arch and depth always."""
    sizes = {name: getattr(facts, name) for name in ARCH_KEYS}
    named = (n for n, arch in ARCHS.items() if all(v in (None, arch[k]) for k, v in sizes.items()))
    options = {"arch": next(named, sizes), "recursion_depth": facts.recursion_depth}
    if facts.recursion_depth > 1:
        options |= {"recursion_unit": facts.recursion_unit, "mixing": facts.mixing}
    if facts.patch_size != 16:
        options["patch_size"] = facts.patch_size
    if facts.layer_scale:
        options["layer_scale_init_value"] = 1e-5
    if not with_cls_token:
        options |= {"with_cls_token": False, "out_type": "featmap"}
    return options


def as_json(summary: FileSummary | ModelReport) -> str:
    """Return a summary or report as indented JSON."""
    return json.dumps(summary.to_dict(), indent=2)
