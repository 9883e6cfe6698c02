#!/usr/bin/env bash
# Train on several GPUs, or without a GPU on several processes:
#   tools/dist_train.sh CONFIG GPUS [arguments of tools/train.py]
# Several machines: run it on each with NNODES, NODE_RANK, MASTER_ADDR and PORT set.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 2 || ! $2 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 CONFIG GPUS [arguments of tools/train.py]" >&2
    exit 2
fi
config=$1 gpus=$2
shift 2
exec bash "$here/dist_run.sh" "$gpus" "$here/train.py" "$config" --launcher pytorch "$@"
