#!/usr/bin/env bash
# Installs the Debian packages that the given lists name and this machine lacks.
#
# usage: deploy/install_packages.sh LIST_FILE...
# A list has one package a line; lines that begin with # are comments.
# Exit status: 0 all are installed, 1 apt failed, 2 wrong usage, 3 packages are missing and this user
# may not install them (the command to run is printed).
set -euo pipefail

if [ $# -eq 0 ]; then
  echo "usage: deploy/install_packages.sh LIST_FILE..." >&2
  exit 2
fi
for list in "$@"; do
  case $list in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
  [ -r "$list" ] || { echo "install_packages.sh: cannot read the list \"$list\"" >&2; exit 2; }
done

missing=()
while read -r package; do
  status=$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done < <(sed 's/#.*//' "$@" | awk 'NF { print $1 }' | sort -u)
[ ${#missing[@]} -gt 0 ] || exit 0

command="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # Without a terminal, sudo could only ask a password of nobody.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    echo "Packages are missing. Run this as root, then start again:" >&2
    echo "$command" >&2
    exit 3
  fi
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get update || exit 1
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y --no-install-recommends "${missing[@]}" || exit 1
