#!/usr/bin/env bash
# Install what is missing, then check the style and run the tests:
#
#   bash tools/run_tests.sh [pytest options and files]
#
# Uses one process for each core, up to 8, and one thread in each; `-n 0` runs all in one process.
# All three checks run even if one fails; the exit status is 0 only if all passed.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/tools/install.sh" --print-python)"
cd "$root"

failed=()
"$python" -m ruff check . || failed+=("ruff check")
"$python" -m ruff format --check . || failed+=("ruff format")

# Threads of one process would fight those of the other for the same cores. Whole files go to one
# process, since tests in a file share what is expensive to make.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" MKL_NUM_THREADS="${MKL_NUM_THREADS:-1}"
cores="$(env -u OMP_NUM_THREADS nproc)"  # nproc would take that for the number of cores
workers=$((cores > 8 ? 8 : cores))
"$python" -m pytest -n "$workers" --dist loadfile --durations 10 "$@" || failed+=("pytest")

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
