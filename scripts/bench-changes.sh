#!/usr/bin/env bash
# Changes of sets by calls: time and bytes of a change on both stores, the cost of the check that each decision makes on
# Redis, in turns, and calls through HTTP on both stores.
# FACTOR=10 takes a tenth of the sizes. Wants an otherwise idle machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CAPPER_BENCH_FACTOR
CAPPER_BENCH_FACTOR=$(awk -v f="${FACTOR:-1}" 'BEGIN {print 1 / f}')
go test -tags storms -count=1 -timeout 60m -run '^(TestCostOfChanges|TestCostOfTheCheck|TestChangesBesideBigCalls)$' -v \
  ./internal/capping/redisstore ./internal/capping/pebblestore |
  sed -nE 's/^ *(live_storm|changes_cost)_test.go:[0-9]+: //p; /^ *--- FAIL/p; /Error/p'
go test -run '^$' -bench ChangeSet ./internal/app
