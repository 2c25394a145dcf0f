#!/usr/bin/env bash
# Lays out what packages and archives ship beside the programs, as it lies in the source so that links between the
# pages lead to what is there: README.md, CHANGELOG.md, LICENSE, docs, deploy, testdata. Links into the source,
# which is not shipped, become plain text.
#
#   scripts/beside.sh DIR     DIR is made anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

to=$1
rm -rf "$to"
mkdir -p "$to/docs"
cp README.md CHANGELOG.md LICENSE "$to/"
cp -R docs/*.md docs/console docs/design "$to/docs/"
cp -RL deploy "$to/" # the chart has a link to the rules
rm -r "$to/deploy/debian" "$to/deploy/image/Containerfile"
cp -R testdata "$to/" # the sample segments, which the compose file publishes
for page in "$to"/*.md "$to"/docs/*.md "$to"/docs/design/*.md; do
  sed -E 's,\[([^][]*)\]\((\.\./)*(internal|client|cmd|lookup|scripts|CONTRIBUTING\.md)([/#][^)]*)?\),\1,g' "$page" >"$page.new"
  mv "$page.new" "$page"
done
chmod -R u=rwX,go=rX "$to"
