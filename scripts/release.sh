#!/usr/bin/env bash
# Archives of both programs for linux and darwin, amd64 and arm64, into build/dist, with goreleaser (pinned; compiled
# into build/tools when missing, which takes long: GORELEASER names one that is there).
#
#   scripts/release.sh           make them
#   scripts/release.sh check     its own check of .goreleaser.yaml, then all of it twice, in two directories: the same bytes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GORELEASER_VERSION=v2.16.0
tool=${GORELEASER:-$PWD/build/tools/goreleaser-$GORELEASER_VERSION}
if [ ! -x "$tool" ]; then
  GOBIN=$PWD/build/tools go install "github.com/goreleaser/goreleaser/v2@$GORELEASER_VERSION" >&2
  mv build/tools/goreleaser "$tool"
fi

make_in() { # make_in DIR: the archives of what is committed, in its build/dist
  (
    cd "$1"
    CAPPER_LDFLAGS=$(scripts/version.sh ldflags) CAPPER_DEB_VERSION=$(scripts/version.sh deb)
    # goreleaser knows no commit, and so no time, where git names no remote
    CAPPER_RELEASE_DATE=$(scripts/version.sh date) CAPPER_RELEASE_EPOCH=$(scripts/version.sh epoch)
    export CAPPER_LDFLAGS CAPPER_DEB_VERSION CAPPER_RELEASE_DATE CAPPER_RELEASE_EPOCH
    "$tool" release --clean --snapshot --skip=publish,announce,validate --parallelism 1 >&2
  )
}

case ${1:-} in
  "") make_in . ;;
  check)
    CAPPER_LDFLAGS="" CAPPER_DEB_VERSION=0 "$tool" check
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    git clone -q --no-hardlinks . "$dir/elsewhere"
    git clone -q --no-hardlinks . "$dir/somewhere"
    git -C "$dir/somewhere" remote remove origin
    make_in "$dir/elsewhere"
    make_in "$dir/somewhere"
    for name in elsewhere somewhere; do
      (cd "$dir/$name/build/dist" && sha256sum -- *.tar.gz *.cdx.json SHA256SUMS) >"$dir/$name.sums"
    done
    cmp "$dir/elsewhere.sums" "$dir/somewhere.sums" || { diff "$dir"/*.sums >&2 || true; echo "release.sh: error: two builds differ" >&2; exit 1; }
    cat "$dir/elsewhere.sums"
    echo "release.sh: two builds from two directories have the same bytes" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
