#!/usr/bin/env bash
# Breaks a store at random under load and checks every answer.
#
#   MINUTES=2 SEED=7 STORE=redis IDS=uuid torture.sh
#
# STORE is redis (the default: a Redis Cluster and three stores on it) or embedded (the store in a directory).
# IDS is the kind of the users' ids: dense (the default), uint64, uuid or text.
# The same seed breaks in the same order; how the load falls in between is up to the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=${MINUTES:-2} seed=${SEED:-$RANDOM} store=${STORE:-redis} ids=${IDS:-dense}
case $store in
  redis) package=redisstore ;;
  embedded) package=pebblestore ;;
  *) echo "torture.sh: error: STORE must be redis or embedded, got $store" >&2; exit 2 ;;
esac
if [[ $ids == dense ]]; then ids=; fi
CAPPER_TORTURE_IDS=$ids CAPPER_TORTURE_MINUTES=$minutes CAPPER_TORTURE_SEED=$seed \
  go test -tags storms -count=1 -timeout "$(awk -v m="$minutes" 'BEGIN {print int(m * 2 + 10)}')m" -run '^TestTorture$' -v "./internal/capping/$package" |
  grep -v '^=== '
