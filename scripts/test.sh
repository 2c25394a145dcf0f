#!/usr/bin/env bash
# The tests, on a 3+3 Redis Cluster, an S3 server and a Chromium that are started for the run and stopped at its end.
#
#   scripts/test.sh quick     the domain and the leaves: no server, no program, no race detector; with more arguments
#                             for go test, such as -count=1
#   scripts/test.sh           every test but the storms: what a change needs before it is submitted
#   scripts/test.sh storms    the storms: tests of files with the build tag storms, and no others
#   scripts/test.sh list      the storms by name: package, space, test
#   scripts/test.sh ARGS…     go test with the race detector and these arguments, storms included
#
# CAPPER_TEST_BIN holds capper and segmentbuild for all packages of a run; a test that runs alone builds its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# As programs are shipped: tests without the race detector share the compiled packages of the programs.
plain() { CGO_ENABLED=0 GOFLAGS=-trimpath "$@"; }

# The packages whose tests start no server and build no program, but for the slow ones beside a store, a service
# or a program: the domain and the leaves.
quick_packages() {
  local module builders
  module=$(go list -m)
  builders=$(grep -rlE --include='*_test.go' 'exec\.Command(Context)?\(.*("go", "(build|run)"|scripts/)' internal |
    grep -vxF "$(storm_files)" | xargs -n1 dirname | sort -u)
  plain go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}} {{end}}' ./internal/... |
    grep '\.test ' | grep -vE "$module/internal/(testcluster|objects/s3test) " | sed "s|^$module/||; s|\.test .*||" |
    grep -vE '/(pebblestore|redisstore|deploytest)(/|$)|^internal/(clienttest|console|testkit|whatif)$' |
    grep -vxF "$builders" | sed 's|^|./|'
}

# The quick packages that use one goroutine: the race detector has nothing to find in them.
sequential_packages() {
  local package
  for package in $(quick_packages); do
    grep -qE '^\s*go |\.Go\(|"sync|/parallel"' "$package"/*.go || echo "$package"
  done
}

# Further packages whose own code starts no goroutine: what tests of them start is a program, a chart, a measurement
# or a package with tests of its own.
plain_packages() {
  printf './internal/%s\n' architecture deploytest/alerts deploytest/charts deploytest/compose pressure version yamltree
  printf './scripts/%s\n' sbom scale
}

# Arithmetic that is ten times slower under the race detector, though few of its tests start a goroutine: make test
# does without the detector, make storms runs most of it once more with it.
arithmetic_packages() { quick_packages | grep -xE '\./internal/(audience|bitmap|capping|pacing|pacing/pacingtest)'; }

# The longest tests of these packages that use one goroutine: make storms does not repeat them.
one_goroutine='ReturnRemovesTheSlots|PlaceIsTheRule|LossesDoNotAddUp|MergeMovesLater|ReturnFromAMergedLog'
one_goroutine+='|ASearchForRoomEndsAtItsBound|MemoryShares|MemoryOnAClock|MemoryWaits|MixesOfPacers|ASharedPacerGivesOutItsRate'
one_goroutine+='|CallersBite|KeysFarApartAreFound|EveryArrayIsSearched|WordsOfCodes|EncodesLikeRoaring|JudgeByTheStoreSuite'

# Files with storms, from which make storms, make test and their own test take which tests are which.
storm_files() { grep -rlE --include='*_test.go' '^//go:build .*\bstorms\b' cmd internal lookup scripts | sort; }
storms() {
  storm_files | while read -r file; do
    sed -nE "s|^func ((Test\|Fuzz)[A-Z0-9_][A-Za-z0-9_]*)\(.*|${file%/*} \1|p" "$file"
  done | grep -v ' TestMain$'
}

# first PACKAGE… puts these packages before the others of standard input: the longest must not end alone.
first() {
  local packages
  packages=$(cat)
  for package in "$@"; do grep -xF "./$package" <<<"$packages" || true; done
  grep -vxF "$(printf './%s\n' "$@")" <<<"$packages"
}

waiting=internal/pacing/pacingtest # its permits come at a rate, by the wall clock

case ${1:-} in
  list) storms; exit ;;
  quick)
    shift
    plain go test -p 3 -vet=off -ldflags='-s -w' -exec 'env -u GOGC' "$@" $(quick_packages | first $waiting)
    exit
    ;;
esac

dir=$(mktemp -d)
started=''
# beside NAME COMMAND… runs the command in the background, in a process group of its own that stop ends. Its output is
# in $dir/NAME.log.
beside() {
  local log=$dir/$1.log
  shift
  set -m
  "$@" >"$log" 2>&1 &
  set +m
  started="$started $!"
}
stop() {
  for one in $started; do kill -- "-$one" 2>/dev/null || true; done
  scripts/cluster.sh down "$dir/cluster" || true
  scripts/s3.sh down "$dir/s3" || true
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

scripts/browser.sh
scripts/prometheus.sh
scripts/s3.sh up "$dir/s3"
scripts/cluster.sh up "$dir/cluster" --node-timeout 15000 # nobody breaks it, and a busy machine is no reason to fail over
. "$dir/s3/env"
. "$dir/cluster/env"
export CAPPER_TEST_S3="$dir/s3/env" CAPPER_TEST_REDIS CAPPER_TEST_BIN="$dir/bin"
plain go build -ldflags='-s -w' -o "$dir/bin/" ./cmd/...
# The race detector wants cgo; programs that tests compile are as they are shipped. vet is lint's, and
# nobody debugs these binaries: without their tables a hundred of them are linked in less time.
# GOGC, where it is set, is meant for the compiler.
race() {
  CGO_ENABLED=1 GOFLAGS='' go test -race -vet=off -ldflags='-s -w' -exec "env -u GOGC CGO_ENABLED=0 GOFLAGS=-trimpath" -timeout 60m "$@"
}

case ${1:-} in
  storms)
    # Alerts that must not fire need a machine that is not busy with something else: they come last and alone.
    quiet=TestWhatIsShippedWatchesRealServices
    names="^($(storms | cut -d' ' -f2 | grep -vxF $quiet | sort -u | paste -sd'|'))\$"
    # Storms wait for servers most of the time: the longest package runs several at once, beside the others. Arithmetic
    # fills the processor meanwhile.
    longest=internal/capping/redisstore
    beside arithmetic race -p 1 -skip "^Test($one_goroutine)\$" $(arithmetic_packages)
    beside longest race -tags storms -parallel 3 -run "$names" ./$longest
    failed=0
    race -tags storms -p 2 -run "$names" $(storms | cut -d' ' -f1 | sort -u | grep -vxF $longest | sed 's|^|./|' |
      first internal/deploytest/drills cmd/capper internal/capping/pebblestore) || failed=$?
    for one in $started; do
      wait "$one" || failed=$?
    done
    cat "$dir/arithmetic.log" "$dir/longest.log"
    race -tags storms -run "^$quiet\$" ./internal/deploytest/alerts || failed=$?
    exit $failed
    ;;
  '')
    plainly=$(sequential_packages; arithmetic_packages; plain_packages)
    plain go test -p 3 -vet=off -ldflags='-s -w' -exec 'env -u GOGC' $(first $waiting <<<"$plainly")
    (cd client && race ./...) # a module of its own
    module=$(go list -m)
    race -p 3 $(go list ./... | sed "s|^$module|.|" | grep -vxF "$plainly" |
      first internal/capping/redisstore cmd/capper internal/console/browsertest internal/segments/ingest \
        internal/server internal/segments/publish internal/capping/pebblestore cmd/segmentbuild)
    ;;
  *) race -tags storms "$@" ;;
esac
