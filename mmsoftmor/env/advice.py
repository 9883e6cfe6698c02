"""From the log of a failed installation step to its reason and one line of advice."""

import re

# The most specific first: a failed compilation also prints lines of the general kinds.
ADVICE = (
    (r"No space left on device", "free some disk space (a CUDA torch needs about 9 GB), run again"),
    (
        r"fatal error: Killed|Killed signal|cannot allocate memory",
        "the machine ran out of memory: run again with MAX_JOBS=1 in front of the command",
    ),
    (
        r"Python\.h: No such file",
        "install the headers of this Python (Debian, Ubuntu: apt install python3-dev), run again",
    ),
    (
        r"C\+\+20 or later|requires C\+\+20|needs C\+\+20",
        "this torch is too new for mmcv: make a new environment, where the tested torch is taken",
    ),
    (
        r"unsupported GNU version|unsupported clang version",
        "nvcc rejects this C++ compiler: name an older one, as in CC=gcc-12 CXX=g++-12, run again",
    ),
    (
        r"detected CUDA version .* mismatches|CUDA_HOME environment variable is not set",
        "nvcc and torch are of different CUDA releases: point CUDA_HOME to the toolkit of torch's "
        "release, or set FORCE_CUDA=0 to compile for the CPU only",
    ),
    (
        r"No module named 'pkg_resources'",
        "setuptools is too new to build this: pip install 'setuptools<82', run again",
    ),
    (
        r"command '?[\w+/.-]*(g\+\+|gcc|c\+\+|clang)[\w+/.-]*'? failed: No such file"
        r"|No such file or directory: '(g\+\+|gcc|c\+\+)",
        "install a C++ compiler (Debian, Ubuntu: apt install build-essential), run again",
    ),
    (
        r"NewConnectionError|Temporary failure in name resolution|Read timed out|ReadTimeoutError"
        r"|ConnectionResetError|ProxyError|Max retries exceeded|Network is unreachable",
        "the network failed: run again; what is already installed is kept",
    ),
    (
        r"No matching distribution found|Could not find a version that satisfies",
        "the package index that pip is set up with has no such file for this Python and machine: "
        "check pip's settings (pip config list) and the network, run again",
    ),
    (
        r"ResolutionImpossible|conflicting dependencies",
        "the index answered in part (run again), or other packages in this environment stand in "
        "the way (run again with --venv NEW_FOLDER)",
    ),
    (r"Permission denied", "the environment is not yours to write: make one of your own"),
)
FALLBACK = "read the log; mend what it names, and run the same command again: it goes on from here"

_ERROR_LINE = re.compile(r"\berror\b|Error:|FAILED:|Killed|No space left|not found", re.IGNORECASE)


def explain(log: str) -> tuple[list[str], str]:
    """Return up to four lines of a log that tell why it failed, and one line of advice.

    Args:
        log: The whole text that the step printed.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    pattern, advice = next(
        (entry for entry in ADVICE if re.search(entry[0], log)), (None, FALLBACK)
    )
    telling = [line for line in lines if _ERROR_LINE.search(line)] or lines
    cause = [line for line in lines if pattern and re.search(pattern, line)][:1]
    reason = list(dict.fromkeys([*cause, *telling[-3:]]))
    return [line[:300] for line in reason], advice
