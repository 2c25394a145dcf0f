#!/usr/bin/env bash
# Builds the Debian package of what is checked out, with nfpm (pinned, installed into build/tools when missing), and
# prints its name. The same commit gives the same bytes, whatever the directory.
#
#   scripts/deb.sh [DIR]     DIR is build/deb by default
#
# CAPPER_VERSION and its like set another version (scripts/version.sh), GOARCH another architecture, NFPM another program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022

NFPM_VERSION=v2.45.0
tool=${NFPM:-build/tools/nfpm-$NFPM_VERSION}
if [ ! -x "$tool" ]; then
  echo "deb.sh: installing nfpm $NFPM_VERSION into build/tools (once, about a minute)" >&2
  GOOS="" GOARCH="" GOBIN=$PWD/build/tools go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$NFPM_VERSION" >&2
  mv build/tools/nfpm "$tool"
fi

out=${1:-build/deb}
stage=build/deb/stage
rm -rf "$stage"
mkdir -p "$stage" "$out"
CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags "-s -w $(scripts/version.sh ldflags)" -o "$stage/" ./cmd/capper ./cmd/segmentbuild
GOARCH="" go run ./scripts/sbom -version "$(scripts/version.sh version)" -date "$(scripts/version.sh date)" "$stage/capper" "$stage/segmentbuild" >"$stage/sbom.cdx.json"
scripts/beside.sh "$stage/beside"

export ARCH VERSION SOURCE_DATE_EPOCH
ARCH=$(go env GOARCH) VERSION=$(scripts/version.sh deb) SOURCE_DATE_EPOCH=$(scripts/version.sh epoch)
package=$out/capper_${VERSION}_$ARCH.deb
"$tool" package --config deploy/debian/nfpm.yaml --packager deb --target "$package" >&2
echo "$package"
