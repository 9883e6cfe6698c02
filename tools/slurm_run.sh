#!/usr/bin/env bash
# Start srun for slurm_train.sh and slurm_test.sh:
#   tools/slurm_run.sh PARTITION JOB_NAME SCRIPT [arguments]
set -euo pipefail
partition=$1 job=$2
shift 2
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-8}
if ((per_node > gpus)); then
    per_node=$gpus
fi
python="$(bash "$(dirname "${BASH_SOURCE[0]}")/find_python.sh")"
read -r -a extra <<<"${SRUN_ARGS:-}"
exec srun -p "$partition" --job-name="$job" --gres="gpu:$per_node" --ntasks="$gpus" \
    --ntasks-per-node="$per_node" --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
    ${extra[@]+"${extra[@]}"} "$python" -u "$@"
