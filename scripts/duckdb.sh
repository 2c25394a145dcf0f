#!/usr/bin/env bash
# Runs a script of scripts/duckdb with DuckDB for Node: scripts/duckdb.sh pressure.mjs ARGS…
# Installs what it needs (node through apt or brew, the pinned package into build/tools) in a few seconds; afterwards it
# needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
  echo "duckdb.sh: installing node" >&2
  if command -v brew >/dev/null 2>&1; then
    brew install --quiet node >&2
  else
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >&2
  fi
fi

tools=$PWD/build/tools/duckdb-$(cat scripts/duckdb/package*.json | git hash-object --stdin | cut -c1-12)
if [ ! -e "$tools/installed" ]; then
  rm -rf "$tools"
  mkdir -p "$tools"
  cp scripts/duckdb/package*.json "$tools"
  npm ci --prefix "$tools" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  touch "$tools/installed"
fi
cp scripts/duckdb/*.mjs "$tools"
script=$1
shift
exec node "$tools/$script" "$@"
