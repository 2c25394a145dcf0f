#!/usr/bin/env bash
# Benchmarks of segmentbuild and of loading its segments, at full size or divided by FACTOR.
#
#   scripts/bench-segments.sh            100 million ids per input, 270 million users to publish
#   FACTOR=100 scripts/bench-segments.sh the same with a hundredth of the ids
#
# Needs about 4 GB of disk below TMPDIR at full size, and an S3 server: the one that CAPPER_TEST_S3 names
# (an env file of scripts/s3.sh), else one of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

factor=${FACTOR:-1}
ids=$((100000000 / factor))
users=$((270000000 / factor))
work=$(mktemp -d)
own_s3=""
cleanup() {
  [ -z "$own_s3" ] || scripts/s3.sh down "$own_s3"
  rm -rf "$work"
}
trap cleanup EXIT

go build -o "$work/segmentbuild" ./cmd/segmentbuild

# measure WHAT COUNT COMMAND…: runs it, prints wall and CPU seconds, millions of ids per second of wall time, and
# peak memory, of the command and its children.
measure() {
  local what=$1 count=$2 pid child now high=0
  shift 2
  (
    TIMEFORMAT='%R %U %S'
    { time "$@" >"$work/out" 2>"$work/err"; } 2>"$work/time" || { cat "$work/err" >&2; exit 1; }
  ) &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    for child in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true); do
      now=$(awk '/^VmHWM/ {print $2}' "/proc/$child/status" 2>/dev/null || true)
      [ "${now:-0}" -le "$high" ] || high=$now
    done
    sleep 0.02
  done
  wait "$pid"
  awk -v what="$what" -v n="$count" -v kb="$high" '{
    printf "%-46s %8.2f s %8.2f s CPU %8.1f million ids/s %7.0f MB peak\n", what, $1, $2 + $3, n / ($1 + 0.001) / 1e6, kb / 1024 }' "$work/time"
}

build() { "$work/segmentbuild" build --to "$work/published" --max-change 1000000% --force --reason bench --segment "all=$1"; }

echo "== $ids unsorted ids of one file into a published bitmap (2 columns in the CSV)"
for format in text csv parquet; do
  "$work/segmentbuild" generate --users "$ids" --segments all=100% --as "$format" --out "$work/in" >/dev/null
done
measure "segmentbuild, text" "$ids" build "$work/in/all.txt"
measure "wc -l, the same file" "$ids" wc -l "$work/in/all.txt"
measure "sort -u, the same file" "$ids" env LC_ALL=C sort -u -S 50% -T "$work" -o "$work/sorted" "$work/in/all.txt"
rm -f "$work/sorted"
measure "segmentbuild, CSV" "$ids" build "$work/in/all.csv"
measure "segmentbuild, Parquet" "$ids" build "$work/in/all.parquet"
rm -rf "$work/in" "$work/published"

echo "== $users users in 4 segments: build from text and publish to a directory"
env_file=${CAPPER_TEST_S3:-}
if [ -z "$env_file" ]; then
  own_s3=$work/s3
  scripts/s3.sh up "$own_s3"
  env_file=$own_s3/env
fi
# shellcheck disable=SC1090
. "$env_file"
for layout in random contiguous; do
  "$work/segmentbuild" generate --users "$users" --segments new=25%,active=25%,lapsed=25%,vip=25% \
    --layout "$layout" --as text --out "$work/in" >/dev/null
  all=(--segment "new=$work/in/new.txt" --segment "active=$work/in/active.txt" --segment "lapsed=$work/in/lapsed.txt" --segment "vip=$work/in/vip.txt")
  measure "segmentbuild, $layout, text to a directory" "$users" "$work/segmentbuild" build --to "$work/$layout" "${all[@]}"
  measure "segmentbuild, $layout, nothing changed" "$users" "$work/segmentbuild" build --to "$work/$layout" "${all[@]}"
  measure "segmentbuild verify, $layout" "$users" "$work/segmentbuild" verify --at "$work/$layout"
  rm -rf "$work/in"
done

echo "== publish, start-up and lookups of $users users in 4 segments; roaring's Contains beside it"
CAPPER_TEST_S3=$env_file FACTOR=$factor go test -run '^$' -bench 'Publish|Start|Snapshot|Lookup|Contains' -benchtime 1s ./internal/segments/ |
  grep '^Benchmark'
