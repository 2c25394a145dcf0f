#!/usr/bin/env bash
# The whole system on real parts: an S3 server, segments and sets of 8 million generated users published to it, a 3+3 Redis
# Cluster with append-only files, capper over both, three blasts of a million users and one of an audience by expression, and
# some who are then sent to at the pace of a pacer. With IDS=uuid, uint64 or text the users have such ids, and the command
# line sends the blasts. Stops all it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ids=${IDS:-dense}
dir=build/demo
rm -rf "$dir"
mkdir -p "$dir"
pid=""
stop() {
  [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" || true; }
  scripts/cluster.sh down "$dir/cluster" || true
  scripts/s3.sh down "$dir/s3" || true
}
trap stop EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

say "an S3 server and a 3+3 Redis Cluster with append-only files"
scripts/s3.sh up "$dir/s3"
scripts/cluster.sh up "$dir/cluster"
. "$dir/s3/env"
. "$dir/cluster/env"
mkdir -p "$dir/s3/data/segments" # a bucket of this server is a directory
echo "S3 at $AWS_ENDPOINT_URL_S3, Redis at $CAPPER_TEST_REDIS"

say "generate 8 million users and publish 4 segments and 2 sets of them"
as=text
if [ "$ids" = dense ]; then as=roaring; fi
build/bin/segmentbuild generate --users 8000000 --ids "$ids" --segments new=10%,active=40%,lapsed=25%,vip=5% --out "$dir/ids"
build/bin/segmentbuild generate --users 8000000 --ids "$ids" --segments audience=13% --seed 2 --as "$as" --out "$dir/ids"
build/bin/segmentbuild generate --users 8000000 --ids "$ids" --segments opted-out=3%,my=20% --seed 3 --out "$dir/ids"
build/bin/segmentbuild build --ids "$ids" --to s3://segments/demo --segment new="$dir/ids/new.txt" --segment active="$dir/ids/active.txt" \
  --segment lapsed="$dir/ids/lapsed.txt" --segment vip="$dir/ids/vip.txt" \
  --set opted-out="$dir/ids/opted-out.txt" --only-grows opted-out --set country/my="$dir/ids/my.txt"

say "serve"
cat >"$dir/capper.yaml" <<YAML
server: {listen: "127.0.0.1:0"}
segments: {source: s3://segments/demo, cache_dir: $dir/cache}
store: {kind: redis, redis: {addrs: [$(echo "$CAPPER_TEST_REDIS" | sed 's/,/, /g')]}}
channels: {push: 1}
limits:
  default: {daily: 1, weekly: 3}
  segments:
    new: {daily: 1, weekly: 3}
    active: {daily: 2, weekly: 7}
    lapsed: {daily: 0}
    vip: {daily: 3, weekly: 10}
suppress: {opted-out: all}
pacers:
  carrier: {rate: 50000/s, limits: [{max: 5000000, window: 24h}], max_wait: 1m}
YAML
build/bin/capper serve --config "$dir/capper.yaml" 2>"$dir/capper.log" &
pid=$!
for _ in $(seq 200); do
  kill -0 "$pid" 2>/dev/null || { cat "$dir/capper.log" >&2; exit 1; }
  url=$(sed -n 's/.*what=api address=\([^ ]*\).*/http:\/\/\1/p' "$dir/capper.log")
  if [ -n "$url" ] && build/bin/capper status --url "$url" 2>/dev/null; then break; fi
  sleep 0.05
done

say "the console, while this runs: $url/console"

if [ "$ids" != dense ]; then
  head -n 1000000 "$dir/ids/audience.txt" >"$dir/ids/million.txt"
  say "one user"
  build/bin/capper explain "$(head -n 1 "$dir/ids/million.txt")" --url "$url"
  say "four messages to a million users of the kind $ids in random order, 10,000 ids a call"
  go run ./scripts/demo --url "$url" --random "$dir/ids/million.txt"
  for blast in 1 2 3; do
    say "blast $blast: a million users of the kind $ids"
    build/bin/capper filter "$dir/ids/million.txt" --message-id "blast-$blast" --channel push --allowed "$dir/allowed-$blast.txt" --url "$url"
  done
  say "the same person again"
  build/bin/capper explain "$(head -n 1 "$dir/ids/million.txt")" --url "$url"
  exit 0
fi

say "three blasts of a million users and one to an expression, each a message of its own; then some of the allowed are sent to, at the pace of a provider"
go run ./scripts/demo --url "$url" --audience "$dir/ids/audience.roaring" --users 1000000 --blasts 3 --pacer carrier --paced 200000
