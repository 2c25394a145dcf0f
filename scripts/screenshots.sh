#!/usr/bin/env bash
# Takes the pictures of docs/console.md anew, into docs/console: of the console of a service with sample campaigns.
# With the argument gallery: pictures of every page at each width, in light and dark colours, into build/gallery.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/browser.sh
if [ "${1:-}" = gallery ]; then
  go test -count=1 ./internal/console/browsertest -run '^TestInABrowser$/^gallery$' -gallery "$PWD/build/gallery"
  ls build/gallery
  exit
fi
mkdir -p docs/console
go test -count=1 ./internal/console/browsertest -run '^TestInABrowser$/^pictures$' -pictures "$PWD/docs/console"
ls -l docs/console
