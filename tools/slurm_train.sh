#!/usr/bin/env bash
# Train under Slurm:
#   GPUS=8 tools/slurm_train.sh PARTITION JOB_NAME CONFIG [WORK_DIR] [arguments of tools/train.py]
# GPUS (8), GPUS_PER_NODE (8), CPUS_PER_TASK (5) and SRUN_ARGS are read from the environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 3 ]]; then
    echo "usage: $0 PARTITION JOB_NAME CONFIG [WORK_DIR] [arguments of tools/train.py]" >&2
    exit 2
fi
partition=$1 job=$2 config=$3
shift 3
if [[ $# -gt 0 && $1 != -* ]]; then
    set -- --work-dir "$@"
fi
exec bash "$here/slurm_run.sh" "$partition" "$job" "$here/train.py" "$config" \
    --launcher slurm "$@"
