#!/usr/bin/env bash
# Pacing: the Redis store against a sorted set per provider and redis_rate, in turns on
# one server of its own; then permits a second over HTTP and a million keys of a pacer, on both stores; then single permits over HTTP with replicas.
# FACTOR=10 takes a tenth of the sizes. Wants an otherwise idle machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CAPPER_BENCH_FACTOR
CAPPER_BENCH_FACTOR=$(awk -v f="${FACTOR:-1}" 'BEGIN {print 1 / f}')
show() { sed -n 's/^ *\(|.*\)/\1/p; /bench_test.go.*factor/p; /bench_pacing_test.go.*factor/p; /^--- FAIL/p; /Error/p'; }
go test -tags storms -count=1 -timeout 60m -run '^TestPacingComparedWithOthers$' -v ./internal/capping/redisstore | show
go test -tags storms -count=1 -timeout 60m -run '^(TestPermitsPerSecond|TestAMillionKeys|TestPermitsComparedWithASortedSet)$' -v ./cmd/capper | show
