#!/usr/bin/env bash
# Start torchrun for dist_train.sh and dist_test.sh: tools/dist_run.sh GPUS SCRIPT [arguments]
set -euo pipefail
gpus=$1
shift
nnodes=${NNODES:-1}
# Threads of one process beside the data-loading workers; without a GPU the processes share the cores.
if command -v nvidia-smi >/dev/null 2>&1; then
    threads=1
else
    threads=$(($(nproc) / gpus))
fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}
if [[ $nnodes -eq 1 && -z ${PORT:-} ]]; then
    # Port 0: the system picks a free one. Named by number, the machine need not resolve its name.
    where=(--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:0 --rdzv-id "$$-$RANDOM"
        --local-addr 127.0.0.1)
else
    where=(--node-rank "${NODE_RANK:-0}" --master-addr "${MASTER_ADDR:-127.0.0.1}"
        --master-port "${PORT:-29500}")
fi
exec "$(bash "$(dirname "${BASH_SOURCE[0]}")/find_python.sh")" -m mmsoftmor.torchrun --nnodes "$nnodes" --nproc-per-node "$gpus" \
    "${where[@]}" "$@"
