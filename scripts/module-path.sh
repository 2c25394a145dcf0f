#!/usr/bin/env bash
# Gives both modules another path, in every import, go.mod and page: scripts/module-path.sh github.com/acme/capper
# The client's is that path and /client. Works on what git tracks; commits nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

new=${1-}
old=$(sed -n 's/^module //p' go.mod)
if ! [[ $new =~ ^[a-z0-9.-]+(/[A-Za-z0-9._~-]+)*$ ]] || [[ $new == */client ]]; then
  echo "module-path: NEW must be a module path such as github.com/acme/capper, got \"$new\"" >&2
  exit 2
fi
[ "$new" != "$old" ] || exit 0

quoted=${old//./\\.}
# A package of ours: the path where nothing that could be part of a longer one stands before it.
packages="s#(^|[^A-Za-z0-9._~/-])$quoted/(client|cmd|internal|lookup|scripts)([^A-Za-z0-9_-]|\$)#\1$new/\2\3#g"
# The path itself where a page tells how to require it.
requires="s#-(require|replace) $quoted([@=])#-\1 $new\2#g"
git ls-files -z | xargs -0 grep -lIZE "$quoted" -- 2>/dev/null | while IFS= read -r -d '' file; do
  [ -L "$file" ] || sed -E -i.renamed -e "$packages" -e "$packages" -e "$requires" "$file" && rm -f "$file.renamed"
done
sed -E -i.renamed "s#^module $quoted(/client)?\$#module $new\1#" go.mod client/go.mod
rm -f go.mod.renamed client/go.mod.renamed
git ls-files '*.go' | xargs gofmt -l -w >/dev/null # imports are sorted by path
go mod tidy
echo "module-path: $old is $new now; look with git diff, build with make build, then commit"
