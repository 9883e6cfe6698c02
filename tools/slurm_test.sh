#!/usr/bin/env bash
# Evaluate under Slurm:
#   GPUS=8 tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [arguments of tools/test.py]
# GPUS (8), GPUS_PER_NODE (8), CPUS_PER_TASK (5) and SRUN_ARGS are read from the environment.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -lt 4 ]]; then
    echo "usage: $0 PARTITION JOB_NAME CONFIG CHECKPOINT [arguments of tools/test.py]" >&2
    exit 2
fi
partition=$1 job=$2
shift 2
exec bash "$here/slurm_run.sh" "$partition" "$job" "$here/test.py" "$@" --launcher slurm
