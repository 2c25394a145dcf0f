#!/usr/bin/env bash
# Every test with the race detector, on a 3+3 Redis Cluster and an S3 server started for this run and
# stopped at its end, and in a Chromium. Arguments go to `go test`; the default is every package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
stop() {
  scripts/cluster.sh down "$dir/cluster" || true
  scripts/s3.sh down "$dir/s3" || true
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

scripts/browser.sh
scripts/prometheus.sh
scripts/s3.sh up "$dir/s3"
scripts/cluster.sh up "$dir/cluster" --node-timeout 15000 # nobody breaks it, and a busy machine is no reason to fail over
. "$dir/s3/env"
. "$dir/cluster/env"
export CAPPER_TEST_S3="$dir/s3/env" CAPPER_TEST_REDIS
# The race detector wants cgo; programs that tests compile are as they are shipped. vet is lint's, and
# nobody debugs these binaries: without their tables a hundred of them are linked in less time.
# GOGC, where it is set, is meant for the compiler.
race() {
  CGO_ENABLED=1 GOFLAGS='' go test -race -vet=off -ldflags='-s -w' -exec "env -u GOGC CGO_ENABLED=0 GOFLAGS=-trimpath" -timeout 30m "$@"
}
if [ $# -gt 0 ]; then
  race "$@"
  exit
fi
# Several packages compile the programs that they try, at the same time: what these are made of is compiled here, once.
GOFLAGS=-trimpath CGO_ENABLED=0 go build -o "$dir/bin/" ./cmd/...
(cd client && race ./...) # a module of its own
# Alerts that must not fire need a machine that is not busy with something else: they come last and alone.
quiet=internal/deploytest/alerts
# What takes longest comes first.
race -p 3 ./internal/capping/redisstore ./cmd/capper $(go list ./... | grep -v "$quiet\$")
race "./$quiet"
