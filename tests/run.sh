#!/usr/bin/env bash
# Builds Pagoda and runs every test.
#
# usage: tests/run.sh [--require-model] [--long] [-- CTEST_ARGUMENT ...]
#   --require-model  fail when the SmolLM2 file cannot be had (otherwise its tests are skipped)
#   --long           also run the tests with the label `long`
# Exit status: 0 all passed, 1 a test failed or the build did, 2 wrong usage, 3 packages are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

require_model=0 long=0
while [ $# -gt 0 ]; do
  case $1 in
    --require-model) require_model=1 ;;
    --long) long=1 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown argument \"$1\" (--require-model, --long, -- CTEST_ARGUMENT ...)" >&2; exit 2 ;;
  esac
  shift
done

deploy/install_packages.sh deploy/packages.txt tests/packages.txt

# The label `model` marks tests that need the SmolLM2 file.
exclude=()
if PAGODA_TEST_MODEL=${PAGODA_TEST_MODEL:-$(deploy/fetch_model.sh)} && [ -r "$PAGODA_TEST_MODEL" ]; then
  export PAGODA_TEST_MODEL
elif [ "$require_model" = 1 ]; then
  echo "tests/run.sh: no SmolLM2 file, and --require-model was given" >&2
  exit 1
else
  exclude+=(model)
fi
[ "$long" = 1 ] || exclude+=(long)

mkdir -p build
cmake --preset release -DPAGODA_TESTS=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build build/release

cd build/release
skipped=$(ctest -N -L '^model$' | sed -n 's/^Total Tests: //p')
status=0
pattern=$(IFS='|'; echo "${exclude[*]}")
ctest --output-on-failure ${pattern:+--label-exclude "^($pattern)\$"} "$@" || status=1
[[ " ${exclude[*]} " != *" model "* ]] || echo "$skipped skipped: no SmolLM2"
exit $status
