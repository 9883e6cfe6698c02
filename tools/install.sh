#!/usr/bin/env bash
# Install everything that mmsoftmor needs; run again at any time, it does only what is missing.
#
#   bash tools/install.sh [--stack onedl|openmmlab] [--venv DIR] [--print-python]
#
# --stack         onedl (default): the maintained releases; openmmlab: the official ones
# --venv DIR      use this virtual environment, made if need be; without it the active virtual or
#                 conda environment, and if none is active .venv in the project root
# --print-python  print on standard output nothing but the path of the environment's Python
#
# Variables: MAX_JOBS (compilers at once), FORCE_CUDA=0|1 (CUDA operators no or yes), CXX, CUDA_HOME.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
suitable='import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))'
venv_ready="import ensurepip, venv; $suitable"
headers='import os, sysconfig; p = sysconfig.get_paths()["include"]; assert os.path.exists(p + "/Python.h")'

stop() { # STEP WHY DO
  printf '\ninstallation stopped at: %s\n  why:  %s\n  do:   %s\n' "$1" "$2" "$3" >&2
  exit 1
}

usage() { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# The newest Python that can make a virtual environment, one with C headers if there is any. Each is
# run, not just looked up: a shim of a version manager exists also for versions that it cannot run.
find_python() {
  local name path fallback=""
  for name in python3.12 python3.11 python3.10 python3 python; do
    for path in $(type -aP "$name"); do
      "$path" -c "$venv_ready" 2>/dev/null || continue
      if "$path" -c "$headers" 2>/dev/null; then
        echo "$path"
        return
      fi
      fallback="${fallback:-$path}"
    done
  done
  echo "$fallback"
}

make_venv() { # DIR
  local base
  if [ ! -x "$1/bin/python" ]; then
    base="$(find_python)"
    [ -n "$base" ] || stop "choice of Python" "no Python 3.10, 3.11 or 3.12 that can make a virtual environment was found" \
      "install one (Debian, Ubuntu: apt install python3.11-venv python3.11-dev), or activate a conda environment that has one; then run again"
    echo "making the virtual environment $1 with $("$base" -V)" >&2
    "$base" -m venv "$1" >&2 || stop "virtual environment" "$base -m venv $1 failed" \
      "see the lines above; remove $1 and run again"
  fi
}

active_environment() {
  if [ -n "${VIRTUAL_ENV:-}" ]; then
    echo "$VIRTUAL_ENV"
  elif [ -n "${CONDA_PREFIX:-}" ] && [ "${CONDA_DEFAULT_ENV:-}" != base ]; then
    echo "$CONDA_PREFIX"  # conda's own 'base' is left alone: pins in it can break conda
  fi
}

stack=() folder="" print_python=no
while [ $# -gt 0 ]; do
  case "$1" in
    --stack) stack=(--stack "${2:?--stack needs onedl or openmmlab}") && shift 2 ;;
    --venv) folder="${2:?--venv needs a folder}" && shift 2 ;;
    --print-python) print_python=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) stop "reading the options" "unknown option '$1'" "see bash tools/install.sh --help" ;;
  esac
done
case "${stack[1]:-onedl}" in
  onedl | openmmlab) ;;
  *) stop "reading the options" "unknown stack '${stack[1]}'" "use --stack onedl or --stack openmmlab" ;;
esac
[ "$(uname -s)" = Linux ] || stop "start" "this is $(uname -s); only Linux was tested" "use a Linux machine"

[ -n "$folder" ] || folder="$(active_environment)"
if [ -z "$folder" ]; then
  folder="$root/.venv"
fi
case "$folder" in /*) ;; *) folder="$PWD/$folder" ;; esac
make_venv "$folder"
python="$folder/bin/python"
"$python" -c "$suitable" 2>/dev/null || stop "choice of Python" \
  "the Python of $folder ($("$python" -V 2>&1 | tail -1)) is not 3.10, 3.11 or 3.12, or does not run" \
  "deactivate it (or remove the folder, if it is a broken virtual environment) and run again"
"$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null 2>&1 || stop "pip" \
  "$folder has no pip" "add it (conda install pip, or remake the environment) and run again"

cd "$root"
"$python" -m mmsoftmor.env.install "${stack[@]}" >&2
if [ "$print_python" = yes ]; then
  echo "$python"
elif [ "$folder" != "$(active_environment)" ]; then
  echo "to use it: . $folder/bin/activate" >&2
fi
