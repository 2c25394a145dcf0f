#!/usr/bin/env bash
# gofmt, lines of at most 120 columns, go vet and staticcheck, over both modules (the service and its client).
# The build tag storms adds files and removes none: one run checks the files of both make test and make storms.
# The tools are pinned and installed into build/tools when missing; staticcheck v0.8.2 is 2026.2.2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# make test compiles packages in the same way, and so finds them in the build cache.
export CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--trimpath}
STATICCHECK=v0.8.2
LLL=v1.0.1

# install NAME VERSION PACKAGE sets tool to the path of that version.
install() {
  tool=$PWD/build/tools/$1-$2
  [ -x "$tool" ] && return
  GOBIN=$PWD/build/tools go install "$3@$2"
  mv "build/tools/$1" "$tool"
}

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "gofmt would change:" >&2; echo "$unformatted" >&2; exit 1; }
# A line with a backtick holds a struct tag or a raw string, which nothing can break.
install lll $LLL github.com/walle/lll/cmd/lll
wide=$(git ls-files '*.go' | "$tool" -l 120 -w 4 -e '`' --files)
[ -z "$wide" ] || { echo "lines over 120 columns:" >&2; echo "$wide" >&2; exit 1; }
install staticcheck $STATICCHECK honnef.co/go/tools/cmd/staticcheck
for module in . client; do
  (cd "$module" && go vet -tags storms ./... && "$tool" -tags storms ./...)
done
echo "lint: gofmt, lll $LLL, vet and staticcheck $STATICCHECK have nothing to say"
