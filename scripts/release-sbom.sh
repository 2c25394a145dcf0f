#!/usr/bin/env bash
# The bill of materials of an archive, for .goreleaser.yaml: scripts/release-sbom.sh ARCHIVE DOCUMENT
set -euo pipefail
archive=$(realpath "$1") document=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xzf "$archive" -C "$dir" --strip-components=1
GOOS="" GOARCH="" go run ./scripts/sbom -version "$(scripts/version.sh version)" -date "$(scripts/version.sh date)" "$dir/capper" "$dir/segmentbuild" >"$document"
