#!/usr/bin/env bash
# The figures of docs/benchmarks.md, both sides in one run. FACTOR=10 takes a tenth of the sizes.
# Arguments choose parts: redis, pacing, changes, embedded, http, segments, domain; none is all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export FACTOR=${FACTOR:-1}
[ $# -gt 0 ] || set -- redis pacing changes embedded http segments domain

for part in "$@"; do
  printf '\n== %s\n' "$part"
  case $part in
    redis) scripts/bench-redis.sh ;;
    pacing) scripts/bench-pacing.sh ;;
    changes) scripts/bench-changes.sh ;;
    embedded) go test -run '^$' -bench . -benchtime 5s ./internal/capping/pebblestore ;;
    http) scripts/bench-http.sh ;;
    segments) scripts/bench-segments.sh ;;
    domain) go test -run '^$' -bench . -benchmem ./internal/capping ;;
    *) echo "bench.sh: error: no part $part: redis, pacing, changes, embedded, http, segments, domain" >&2; exit 2 ;;
  esac
done
