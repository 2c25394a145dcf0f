#!/usr/bin/env bash
# The tests, on a 3+3 Redis Cluster, an S3 server and a Chromium that are started for the run and stopped at its end.
#
#   scripts/test.sh quick     the domain and the leaves: no server, no program, no race detector; with more arguments
#                             for go test, such as -count=1
#   scripts/test.sh           every test but the storms: what a change needs before it is submitted
#   scripts/test.sh race      the tests of files that start goroutines, with the race detector
#   scripts/test.sh storms    the storms: tests of files with the build tag storms, and no others
#   scripts/test.sh list      the storms by name: package, space, test
#   scripts/test.sh measurements  the storms that make bench runs instead of make storms, by name
#   scripts/test.sh ARGS…     go test with the race detector and these arguments, storms included
#
# CAPPER_TEST_BIN holds capper and segmentbuild for all packages of a run; a test that runs alone builds its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# As programs are shipped: tests without the race detector share the compiled packages of the programs. CI adds flags.
flags=${GOFLAGS:--trimpath}
plain() { CGO_ENABLED=0 GOFLAGS=$flags "$@"; }
# vet is lint's, and nobody debugs these binaries: without their tables a hundred of them are linked in less time.
# GOGC is meant for compilers and linkers, which take a sixth less processor time when they collect less garbage.
export GOGC=${GOGC:-400}
plain_test() { plain go test -vet=off -ldflags='-s -w' -exec 'env -u GOGC' -timeout 60m "$@"; }

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

# Test files that start goroutines: make race repeats their tests with the race detector, which takes most of the
# processor time of any test. The tests of the programs start processes.
concurrent_files() {
  comm -23 <(grep -rlE --include='*_test.go' '^\s*go |\.Go\(|\blivetest\.' internal lookup | sort) <(storm_files)
}

# Storms whose goroutines meet faults in one process. Other storms wait for programs and servers, or repeat arithmetic.
raced_storms='^internal/(app|server) |^internal/capping/.*store TestTorture$'
processes='^internal/server TestNobodyStarvesBesideTheGreedy$' # its service is a program, without the race detector

# Packages whose goroutines share memory while calls are decided, and the client's pacer.
deciding='^internal/(app|audience|clienttest|pacing|segments|server)/[^/]*$|^internal/(audit/journal|pacing/pacingtest|server/gate)/'

# Measurements, which make bench runs.
measurements='TestAMillionKeys|TestComparedWithTheUsualDesign|TestCostOfChanges|TestCostOfTheCheck|TestManyGroupsCompared'
measurements+='|TestPacingComparedWithOthers|TestPermitsComparedWithASortedSet|TestPermitsPerSecond|TestSpreadComparedWithDense'

# Files with storms, from which make storms, make test and their own test take which tests are which.
storm_files() { grep -rlE --include='*_test.go' '^//go:build .*\bstorms\b' cmd internal lookup scripts | sort; }
tests_of() { # files of standard input
  while read -r file; do
    sed -nE "s|^func ((Test\|Fuzz)[A-Z0-9_][A-Za-z0-9_]*)\(.*|${file%/*} \1|p" "$file"
  done | grep -v ' TestMain$'
}
storms() { storm_files | tests_of; }

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
  measurements) tr '|' '\n' <<<"$measurements"; exit ;;
  quick)
    shift
    plain_test -p 3 "$@" $(quick_packages | first $waiting)
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
# The race detector wants cgo; programs that tests compile are as they are shipped.
race() {
  CGO_ENABLED=1 go test -race -vet=off -ldflags='-s -w' -exec "env -u GOGC CGO_ENABLED=0 'GOFLAGS=$flags'" -timeout 60m "$@"
}

# run COMMAND… takes packages and tests of standard input, and puts the longest first.
run() {
  local tests
  tests=$(cat)
  "$@" -run "^($(cut -d' ' -f2 <<<"$tests" | sort -u | paste -sd'|'))\$" \
    $(cut -d' ' -f1 <<<"$tests" | sort -u | sed 's|^|./|' |
      first internal/capping/redisstore internal/deploytest/drills cmd/capper internal/clienttest internal/server \
        internal/capping/pebblestore)
}

case ${1:-} in
  race)
    run race -p 3 <<<"$(concurrent_files | tests_of)"
    (cd client && race ./...) # a module of its own
    ;;
  storms)
    # Alerts that must not fire need a machine that is not busy with something else: they come last and alone.
    quiet=TestWhatIsShippedWatchesRealServices
    all=$(storms | grep -vE " ($quiet|$measurements)\$")
    # Storms wait for servers most of the time: several run at once.
    # Packages that decide calls run their tests of make race here, too. Each store runs only TestTorture with the race
    # detector, because all its tests would take as long as the storms.
    beside raced run race -p 2 -tags storms \
      <<<"$(grep -E "$raced_storms" <<<"$all" | grep -vE "$processes"; concurrent_files | grep -E "$deciding" | tests_of)"
    failed=0
    run plain_test -p 2 -parallel 4 -tags storms <<<"$(grep -vE "$raced_storms" <<<"$all"; grep -E "$processes" <<<"$all")" || failed=$?
    wait $started || failed=$?
    cat "$dir/raced.log"
    (cd client && race ./...) || failed=$? # a module of its own
    plain_test -tags storms -run "^$quiet\$" ./internal/deploytest/alerts || failed=$?
    exit $failed
    ;;
  '')
    plain_test -p 4 $(go list ./... | sed "s|^$(go list -m)|.|" |
      first $waiting internal/capping/redisstore internal/segments/ingest cmd/capper internal/console/browsertest \
        internal/segments/publish internal/server internal/capping/pebblestore cmd/segmentbuild)
    (cd client && plain_test ./...)
    ;;
  *) race -tags storms "$@" ;;
esac
