#!/usr/bin/env bash
# The Redis store against the usual design, both in one run, on servers of its own.
# FACTOR=10 takes a tenth of the sizes. Wants an otherwise idle machine: the longest
# script call is wall time, as SLOWLOG has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
CAPPER_BENCH_FACTOR=$(awk -v f="${FACTOR:-1}" 'BEGIN {print 1 / f}') \
  go test -tags storms -count=1 -timeout 60m -run '^(TestComparedWithTheUsualDesign|TestManyGroupsCompared|TestSpreadComparedWithDense)$' \
  -v ./internal/capping/redisstore |
  sed -nE 's/^ *(\|.*)/\1/p; /bench_test.go.*factor/p; s/^ *bench_(groups|spread)_test.go:[0-9]+: //p; /^ *--- FAIL/p; /Error/p'
