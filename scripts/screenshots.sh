#!/usr/bin/env bash
# Takes the pictures of docs/console.md anew, into docs/console: of the console of a service with sample campaigns.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/browser.sh
mkdir -p docs/console
go test -count=1 ./internal/console/browsertest -run '^TestInABrowser$/^pictures$' -pictures "$PWD/docs/console"
ls -l docs/console
