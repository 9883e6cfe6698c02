"""``python -m mmsoftmor.env``: installed versus tested versions, and what to mend."""

import argparse
import sys

from mmsoftmor.env.diagnose import choose_stack, diagnose, untested
from mmsoftmor.env.probe import Facts, gather
from mmsoftmor.env.stacks import ONEDL, OPENMMLAB, PYTHON, STACKS, Stack


def _installed(facts: Facts, module: str) -> str:
    names = {stack.distributions[module] for stack in STACKS.values()}
    found = [f"{name} {facts.versions[name]}" for name in sorted(names) if name in facts.versions]
    return ", ".join(found) or "-"


def table(facts: Facts) -> str:
    """Lay out each package's installed version beside the tested version of either stack."""
    rows = [("package", "installed", "onedl (default)", "openmmlab")]
    rows.append(("python", facts.python, str(PYTHON), str(PYTHON)))
    for module in ONEDL.distributions:
        tested = [stack.tested[stack.distributions[module]] for stack in (ONEDL, OPENMMLAB)]
        rows.append((module, _installed(facts, module), *tested))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def hardware(facts: Facts) -> str:
    """Say in one line what torch and mmcv's operators compute on."""
    if "torch" not in facts.versions:
        return "torch: not installed"
    cuda = "a CPU build" if facts.cuda is None else f"built for CUDA {facts.cuda}"
    gpu = "a GPU is usable" if facts.gpu else "no GPU is usable"
    return f"torch: {cuda}, {gpu}; mmcv operators for CUDA: {facts.ops_cuda}"


def verdict(facts: Facts, stack: Stack) -> tuple[str, bool]:
    """Return the closing lines and whether the environment is sound."""
    problems = diagnose(facts, stack)
    if problems:
        head = f"{len(problems)} problem(s) with the {stack.name} stack:"
        return "\n".join([head, *(f"- {problem}" for problem in problems)]), False
    other = untested(facts, stack)
    if other:
        return f"OK: everything imports, in versions other than tested: {', '.join(other)}", True
    return f"OK: the tested {stack.name} stack", True


def main(arguments: list[str] | None = None) -> int:
    """Print the report; return 0 if the environment is sound, 1 if something needs mending."""
    parser = argparse.ArgumentParser(prog="python -m mmsoftmor.env", description=__doc__)
    parser.add_argument(
        "--stack", choices=sorted(STACKS), help="judge by this stack (default: the installed one)"
    )
    wanted = parser.parse_args(arguments).stack
    facts = gather()
    text, sound = verdict(facts, STACKS[wanted] if wanted else choose_stack(facts.versions))
    print(table(facts), "", hardware(facts), text, sep="\n")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
