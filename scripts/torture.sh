#!/usr/bin/env bash
# Breaks a Redis Cluster at random under load and checks every answer.
#
#   MINUTES=2 SEED=7 torture.sh
#
# The same seed breaks in the same order; how the load falls in between is up to the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=${MINUTES:-2} seed=${SEED:-$RANDOM}
CAPPER_TORTURE_MINUTES=$minutes CAPPER_TORTURE_SEED=$seed \
  go test -count=1 -timeout "$(awk -v m="$minutes" 'BEGIN {print int(m * 2 + 10)}')m" -run '^TestTorture$' -v ./internal/capping/redisstore |
  grep -v '^=== '
