#!/usr/bin/env bash
# From a bare machine to a trained detector: install what is missing, then run the main job on the
# sample dataset. Options go to tools/quickstart.py (see `bash tools/quickstart.sh --help`).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/tools/install.sh" --print-python)"
exec "$python" "$root/tools/quickstart.py" "$@"
