"""What loading a file did, for people and for programs."""

import math
from dataclasses import asdict, dataclass, field


@dataclass
class LoadReport:
    """What loading a file into a backbone did; tensors by the model's names.

    Attributes:
        path (str): The file.
        scheme (str): How the file names its tensors.
        prefix (str): What the file has before these names.
        matched (list[str]): Tensors taken as they are.
        resized (list[str]): Tensors fitted to the model's grid.
        grids (str): The position table's grid in the file and in the model, where they differ.
        converted (dict[str, str]): Tensors made from the file's, and how.
        missing (list[str]): Trunk tensors of the model that the file lacks.
        new (list[str]): Tensors that are new by design (the routers), left at their initialisation.
        unused (list[str]): Tensors of the file that the model has no place for.
        notes (list[str]): Sentences on what makes the model compute something else than the file's.
        trunk_share (float): Share of the trunk's parameters that came from the file, 0 to 1.
    """

    path: str
    scheme: str = ""
    prefix: str = ""
    matched: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    grids: str = ""
    converted: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trunk_share: float = 0.0

    @property
    def percent(self) -> str:
        """The share of the trunk as text, rounded down: 100.0% is all of it."""
        return f"{math.floor(1000 * self.trunk_share) / 10:.1f}%"

    def to_dict(self) -> dict:
        """Return the report as plain types, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            f"{self.path} ({self.scheme}{f', prefix {self.prefix}' if self.prefix else ''}):"
            f" {self.percent} of the trunk's parameters, {len(self.matched)} tensors "
            "matched"
        ]
        for title in ("resized", "missing", "new", "unused"):
            names = getattr(self, title)
            if names:
                title = "new by design" if title == "new" else title
                grids = f", {self.grids}" if title == "resized" and self.grids else ""
                rows.append(f"  {title} ({len(names)}): {grouped(names)}{grids}")
        if self.converted:
            rows.append(f"  converted ({len(self.converted)}): {_by_reason(self.converted)}")
        return "\n".join([*rows, *(f"  note: {note}" for note in self.notes)])


@dataclass
class ModelReport:
    """What loading a file into a whole model did; tensors by the model's names.

    Attributes:
        path (str): The file.
        backbone (LoadReport): What happened to the backbone.
        matched (list[str]): Tensors outside the backbone that were taken.
        missing (list[str]): Those that the file lacks; they keep their initialisation.
        other_shape (dict[str, str]): Those that the file has in another shape, and both shapes;
            they keep their initialisation.
        unused (list[str]): Tensors of the file that the model has no place for.
    """

    path: str
    backbone: LoadReport
    matched: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    other_shape: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every tensor of the model came from the file."""
        return not (self.missing or self.other_shape or self.backbone.missing or self.backbone.new)

    def to_dict(self) -> dict:
        """Return the report as plain types, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [str(self.backbone), f"  beside the backbone: {len(self.matched)} tensors matched"]
        if self.missing:
            rows.append(f"  left at their initialisation: {grouped(self.missing)}")
        if self.other_shape:
            (name, shapes), *_ = self.other_shape.items()
            rows.append(
                f"  of another shape ({len(self.other_shape)}), left at their initialisation: "
                f"{grouped(list(self.other_shape))}; such as {name}, {shapes}"
            )
        if self.unused:
            rows.append(f"  unused ({len(self.unused)}): {grouped(self.unused)}")
        return "\n".join(rows)


def grouped(names: list[str]) -> str:
    """Return the names by their first two parts, with counts, on one line."""
    counts: dict[str, int] = {}
    for name in names:
        group = ".".join(name.split(".")[:2])
        counts[group] = counts.get(group, 0) + 1
    return ", ".join(group if n == 1 else f"{group}.* ({n})" for group, n in counts.items())


def _by_reason(converted: dict[str, str]) -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in converted.items():
        reasons.setdefault(reason, []).append(name)
    return "; ".join(f"{reason}: {grouped(names)}" for reason, names in reasons.items())
