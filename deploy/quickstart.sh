#!/usr/bin/env bash
# From a fresh Debian 12 to a running cluster: installs, fetches a model, builds, and shows the main
# job. Running it again is quick and changes nothing.
#
# usage: deploy/quickstart.sh [--once] [-- FLAG...]
#   --once     end after the demonstration
#   -- FLAG... further flags for `pagoda up`
# PAGODA_MODEL=FILE  serve this GGUF file (default: SmolLM2-135M-Instruct, fetched once)
# PAGODA_CACHE=DIR   where models are kept (default ~/.cache/pagoda)
# Exit status: 0 everything held, 1 something did not, 2 wrong usage, 3 packages are missing and this
# user may not install them (the command to run is printed).
set -euo pipefail
cd "$(dirname "$0")/.."

once=()
while [ $# -gt 0 ]; do
  case $1 in
    --once) once=(--once) ;;
    --) shift; break ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument \"$1\" (--once, -- FLAG...)" >&2; exit 2 ;;
  esac
  shift
done

began=$SECONDS
step() { step_began=$SECONDS; echo "[$1/4] $2"; }
step_done() { echo "      done in $((SECONDS - step_began)) s"; }

step 1 "packages"
deploy/install_packages.sh deploy/packages.txt
step_done

step 2 "model"
model=$(deploy/fetch_model.sh) || exit 1
echo "      $model"
step_done

step 3 "build (the first one takes minutes)"
cmake --preset release
cmake --build build/release --target pagoda_programs
step_done

step 4 "cluster of a router, two workers and a KV store"
exec python3 deploy/demo.py --seconds-before $((SECONDS - began)) "${once[@]}" --programs build/release/bin \
  --model "$model" -- "$@"
