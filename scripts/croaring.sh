#!/usr/bin/env bash
# Builds the program with which the tests check that CRoaring, the C implementation of the bitmap format,
# reads what segmentbuild writes; prints its path. Installs CRoaring (apt or brew) and a C compiler when missing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source=$root/internal/bitmap/testdata/croaring.c
program=$root/build/tools/croaring
mkdir -p "$root/build/tools"
exec 9>"$root/build/tools/croaring.lock"
if command -v flock >/dev/null; then flock 9; fi

compile() {
  local flags=()
  if command -v brew >/dev/null; then flags=(-I"$(brew --prefix)/include" -L"$(brew --prefix)/lib"); fi
  cc -O1 ${flags[@]+"${flags[@]}"} -o "$program" "$source" -lroaring
}

install() {
  echo "croaring.sh: installing CRoaring" >&2
  if command -v apt-get >/dev/null; then
    local sudo=""
    if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
    $sudo apt-get update -q >&2 || true
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q gcc libc6-dev libroaring-dev >&2
  elif command -v brew >/dev/null; then
    brew install croaring >&2
  else
    echo "croaring.sh: error: neither apt-get nor brew is here: install CRoaring (libroaring-dev) and a C compiler" >&2
    exit 1
  fi
}

if [ ! -x "$program" ] || [ "$source" -nt "$program" ]; then
  compile 2>/dev/null || { install; compile; }
fi
echo "$program"
