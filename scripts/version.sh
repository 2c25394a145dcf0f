#!/usr/bin/env bash
# What is built here: version, commit and its date, for the stamp of builds, images and packages.
#
#   scripts/version.sh version | commit | date | epoch | deb    one of them
#   scripts/version.sh ldflags                                  the linker's flags that stamp it
#
# From CAPPER_VERSION, CAPPER_COMMIT and CAPPER_DATE where they are set; else from git; else, in an archive that
# `git archive` made, from what it wrote into this file. Elsewhere the version is v0.0.0-unknown, and the rest empty.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

archived_commit='$Format:%H$'
archived_epoch='$Format:%ct$'
archived_tag='$Format:%(describe:tags=true,match=v[0-9]*)$'

utc() { date -u -d "@$1" "+$2" 2>/dev/null || date -u -r "$1" "+$2"; } # GNU, BSD

commit="" epoch="" tag="" dirty=""
if [ -e .git ] && commit=$(git rev-parse HEAD 2>/dev/null); then
  epoch=$(git log -1 --format=%ct)
  tag=$(git describe --tags --match 'v[0-9]*' 2>/dev/null || true)
  [ -z "$(git status --porcelain --untracked-files=no)" ] || dirty=+dirty
elif [[ $archived_commit =~ ^[0-9a-f]{40}$ ]]; then
  commit=$archived_commit epoch=$archived_epoch
  [[ $archived_tag != v[0-9]* ]] || tag=$archived_tag
fi

commit=${CAPPER_COMMIT:-$commit}
date=${CAPPER_DATE:-${epoch:+$(utc "$epoch" %Y-%m-%dT%H:%M:%SZ)}}
if [ -n "${CAPPER_VERSION:-}" ]; then
  version=$CAPPER_VERSION
elif [ -n "$tag" ]; then
  version=$tag$dirty # v1.2.3, or v1.2.3-4-g0123abcd four commits behind it
elif [ -n "$commit" ] && [ -n "$epoch" ]; then
  version=v0.0.0-$(utc "$epoch" %Y%m%d%H%M%S)-${commit:0:12}$dirty # as Go names a commit before the first tag
else
  version=v0.0.0-unknown
fi
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$ ]] || { echo "version.sh: error: CAPPER_VERSION must be such as v1.2.3, got $version" >&2; exit 2; }

case ${1:-} in
  version | commit | date) echo "${!1}" ;;
  epoch) if [ -n "${CAPPER_DATE:-}" ]; then date -u -d "$CAPPER_DATE" +%s 2>/dev/null || date -u -j -f %Y-%m-%dT%H:%M:%SZ "$CAPPER_DATE" +%s; else echo "${epoch:-0}"; fi ;;
  deb) # what stands behind a tag is newer than the tag, a pre-release older
    plain=${version#v}
    case $plain in
      *-[0-9]*-g* | 0.0.0-*) plain=${plain/-/+} ;;
      *-*) plain=${plain/-/\~} ;;
    esac
    echo "${plain//-/.}" ;;
  ldflags)
    at="$(sed -n 's/^module //p' go.mod)/internal/version"
    echo "-X $at.version=$version -X $at.commit=$commit -X $at.date=$date" ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
