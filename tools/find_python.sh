#!/usr/bin/env bash
# Print the Python to use: the active environment's, else the one that tools/install.sh made.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [[ -z ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} && -x $root/.venv/bin/python ]]; then
    echo "$root/.venv/bin/python"
else
    echo python
fi
