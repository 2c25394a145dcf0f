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
scripts/s3.sh up "$dir/s3"
scripts/cluster.sh up "$dir/cluster"
. "$dir/s3/env"
. "$dir/cluster/env"
export CAPPER_TEST_S3="$dir/s3/env" CAPPER_TEST_REDIS
if [ $# -eq 0 ]; then
  (cd client && go test -race ./...) # a module of its own
  set -- ./...
fi
go test -race -timeout 20m "$@"
