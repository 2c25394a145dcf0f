#!/usr/bin/env bash
# gofmt, go vet and staticcheck over both modules (the service and its client), the last pinned (v0.8.2 is 2026.2.2) and installed into build/tools when missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# As the tests are compiled: what is compiled here need not be again there.
export CGO_ENABLED=1 GOFLAGS=-race
STATICCHECK=v0.8.2
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "gofmt would change:" >&2; echo "$unformatted" >&2; exit 1; }
tool=build/tools/staticcheck-$STATICCHECK
if [ ! -x "$tool" ]; then
  CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN=$PWD/build/tools go install "honnef.co/go/tools/cmd/staticcheck@$STATICCHECK"
  mv build/tools/staticcheck "$tool"
fi
for module in . client; do
  (cd "$module" && go vet ./... && "$OLDPWD/$tool" ./...)
done
echo "lint: gofmt, vet and staticcheck $STATICCHECK have nothing to say"
