"""Comparing version numbers with the standard library alone.

``packaging`` would do this, but a fresh virtual environment does not have it yet.
"""

import re
from dataclasses import dataclass
from importlib import metadata

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?([^;)]*)\)?")
_CLAUSE = re.compile(r"\s*(==|>=|<=|!=|~=|<|>)\s*([^,\s]+)\s*")


def release(version: str) -> tuple[int, ...]:
    """Return the numeric release of a version: ``2.12.1+cu130`` -> ``(2, 12, 1)``.

    Pre-release and local parts are dropped, and trailing zeros too, so that ``2.0`` equals
    ``2.0.0``. A version that starts with no number gives ``()``, which sorts before all others.
    """
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True)
class Range:
    """Versions from ``low`` (allowed) up to ``high`` (no longer allowed)."""

    low: str
    high: str

    def __contains__(self, version: str) -> bool:
        return release(self.low) <= release(version) < release(self.high)

    def __str__(self) -> str:
        return f">={self.low},<{self.high}"


def split_requirement(requirement: str) -> tuple[str, list[tuple[str, str]]]:
    """Split ``"name>=1,<2; marker"`` into ``("name", [(">=", "1"), ("<", "2")])``."""
    match = _REQUIREMENT.match(requirement)
    if match is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    clauses = [part for part in match.group(2).split(",") if part.strip()]
    parsed = [_CLAUSE.fullmatch(clause) for clause in clauses]
    if None in parsed:
        raise ValueError(f"not a requirement: {requirement!r}")
    return match.group(1), [(clause.group(1), clause.group(2)) for clause in parsed]


def satisfies(version: str, clauses: list[tuple[str, str]]) -> bool:
    """Tell whether a version fulfils all clauses (``==``, ``!=``, ``>=``, ``<=``, ``>``, ``<``)."""
    have = release(version)
    tests = {
        "==": lambda want: have == want,
        "!=": lambda want: have != want,
        ">=": lambda want: have >= want,
        "<=": lambda want: have <= want,
        ">": lambda want: have > want,
        "<": lambda want: have < want,
    }
    return all(tests[operator](release(wanted)) for operator, wanted in clauses)


def installed(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def missing(requirements: list[str]) -> list[str]:
    """Return those requirements that the running environment does not fulfil, in order."""
    lacking = []
    for requirement in requirements:
        name, clauses = split_requirement(requirement)
        version = installed(name)
        if version is None or not satisfies(version, clauses):
            lacking.append(requirement)
    return lacking
