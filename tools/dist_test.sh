#!/usr/bin/env bash
# Evaluate on several GPUs, or without a GPU on several processes:
#   tools/dist_test.sh CONFIG CHECKPOINT GPUS [arguments of tools/test.py]
# Several machines: run it on each with NNODES, NODE_RANK, MASTER_ADDR and PORT set.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 3 || ! $3 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 CONFIG CHECKPOINT GPUS [arguments of tools/test.py]" >&2
    exit 2
fi
config=$1 checkpoint=$2 gpus=$3
shift 3
exec bash "$here/dist_run.sh" "$gpus" "$here/test.py" "$config" "$checkpoint" \
    --launcher pytorch "$@"
