#!/usr/bin/env bash
# The HTTP path on loopback: processor time per user above the store, the
# embedded store with and without HTTP, and the latency of small calls beside a
# bare echo handler. The load comes from a process of its own.
# BENCHTIME (default 2s) is how long each measurement takes.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run '^$' -bench 'AboveStore|Embedded|Latency' -benchtime "${BENCHTIME:-2s}" ./internal/server
