#!/usr/bin/env bash
# Reads the API's description as its users' tools do: a linter; then openapi-typescript with its defaults, whose types
# every documented request and answer has to fit under tsc --strict. Installs what it needs (node through apt or brew,
# pinned packages into build/tools); afterwards it needs no network. A check that bites: see the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "openapi.sh: $*" >&2
  exit 1
}

require_node() {
  command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 && return
  echo "openapi.sh: installing node" >&2
  local sudo=""
  if command -v brew >/dev/null 2>&1; then
    brew install --quiet node >&2
  elif command -v apt-get >/dev/null 2>&1; then
    [ "$(id -u)" = 0 ] || sudo="sudo"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >&2
  else
    fail "node is missing, and there is neither apt-get nor brew to install it"
  fi
  command -v npm >/dev/null 2>&1 || fail "npm is still missing after its installation"
}

# install makes $tools a directory with the packages of package-lock.json.
install() {
  tools=$PWD/build/tools/openapi-$(cat scripts/openapi/package*.json | git hash-object --stdin | cut -c1-12)
  if [ ! -e "$tools/installed" ]; then
    rm -rf "$tools"
    mkdir -p "$tools"
    cp scripts/openapi/package*.json "$tools"
    npm ci --prefix "$tools" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
    touch "$tools/installed"
  fi
  cp scripts/openapi/*.mjs scripts/openapi/redocly.yaml scripts/openapi/engine.ts "$tools"
}

# types generates them from document $1 and compiles the callers.
types() {
  rm -rf "$tools/types"
  mkdir "$tools/types"
  cp "$tools/engine.ts" "$tools/types"
  node "$tools/examples.mjs" "$1" docs/api.md >"$tools/types/examples.ts"
  document=$(realpath "$1")
  # In a directory of its own: openapi-typescript would take the linter's rules for its configuration.
  (cd "$tools/types" && ../node_modules/.bin/openapi-typescript "$document" -o capper.ts >/dev/null &&
    ../node_modules/.bin/tsc --strict --noEmit --target es2022 --lib es2022,dom ./*.ts)
}

require_node
install
document=internal/server/openapi.yaml
node "$tools/lint.mjs" "$document"
types "$document"

# Both find what they are there for: a reference to nothing, and a default, which makes a property of requests mandatory.
bad=$(mktemp -d)
trap 'rm -rf "$bad"' EXIT
sed "s,schemas/Denial',schemas/Nothing'," "$document" >"$bad/reference.yaml"
! node "$tools/lint.mjs" "$bad/reference.yaml" >"$bad/out" 2>&1 || fail "the linter accepts a reference to nothing"
sed 's/record: {type: boolean,/record: {type: boolean, default: true,/' "$document" >"$bad/default.yaml"
! types "$bad/default.yaml" >"$bad/out" 2>&1 || fail "the compiler accepts requests without what the types call mandatory"
grep -q "Property 'record' is missing" "$bad/out" || fail "the compiler refuses the wrong thing: $(head -1 "$bad/out")"
echo "openapi: the linter has nothing to say, and $(grep -c '^export const' "$tools/types/examples.ts") documented requests and answers fit the types"
