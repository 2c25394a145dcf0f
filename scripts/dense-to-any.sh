#!/usr/bin/env bash
# Moves the past sends of a deployment with dense ids to a deployment of UUIDs, as docs/moving.md describes, and measures
# each step: wall time, and CPU time of the command and of the service.
#
#   scripts/dense-to-any.sh           10 million users with one send each, to the embedded store
#   USERS=100000 STORE=redis scripts/dense-to-any.sh
#
# Needs sqlite3, and for STORE=redis what scripts/cluster.sh needs. All files are in build/dense-to-any, which is emptied
# first: some 10 GB for 10 million users. The check at the end fails unless each user has the sends of the old deployment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

USERS=${USERS:-10000000}
STORE=${STORE:-embedded}
LISTEN=${LISTEN:-127.0.0.1:18471}
dir=$PWD/build/dense-to-any
released=$((USERS / 100))
bin=${BIN:-$PWD/build/bin}
fail() { echo "dense-to-any.sh: error: $*" >&2; exit 1; }
command -v sqlite3 >/dev/null || fail "sqlite3 is missing"
[ "$STORE" = embedded ] || [ "$STORE" = redis ] || fail "STORE must be embedded or redis, got $STORE"
[ -x "$bin/capper" ] || fail "$bin/capper is missing: run make build"
[ ! -e "$dir/cluster" ] || scripts/cluster.sh down "$dir/cluster"
rm -rf "$dir"
mkdir -p "$dir"

pid=
stop() { [ -z "$pid" ] || { kill "$pid" && wait "$pid"; } || true; pid=; }
end() { stop; [ ! -e "$dir/cluster" ] || scripts/cluster.sh down "$dir/cluster"; }
trap end EXIT
trap 'exit 130' INT TERM

# used prints the CPU seconds of processes.
ticks=$(getconf CLK_TCK)
used() {
  local sum=0 stat p
  for p in "$@"; do
    stat=$(sed 's/.*) //' "/proc/$p/stat")
    read -r -a stat <<<"$stat"
    sum=$((sum + stat[11] + stat[12]))
  done
  awk "BEGIN { printf \"%.1f\", $sum / $ticks }"
}
servers() { [ ! -e "$dir/cluster" ] || cat "$dir"/cluster/*.pid; }

# step TEXT COMMAND… runs a command and prints its times.
step() {
  local text=$1 before=0 after=0 redis=0 took
  shift
  if [ -n "$pid" ]; then before=$(used "$pid"); redis=$(used $(servers)); fi
  exec 3>&1
  TIMEFORMAT='%R %U %S'
  took=$({ time "$@" >"$dir/out" 2>"$dir/err" 3>&-; } 2>&1) || { cat "$dir/out" "$dir/err" >&2; fail "$text"; }
  if [ -n "$pid" ]; then after=$(used "$pid"); redis=$(awk "BEGIN { print $(used $(servers)) - $redis }"); fi
  awk -v text="$text" -v took="$took" -v service="$(awk "BEGIN { print $after - $before }")" -v redis="$redis" 'BEGIN {
    split(took, t, " ")
    printf "%-34s %8.1f s; CPU: command %.1f s, service %.1f s, redis %.1f s\n", text, t[1], t[2] + t[3], service, redis
  }'
}

# serve NAME starts the service of a configuration and waits until it is ready.
serve() {
  export CAPPER_URL=http://$LISTEN
  "$bin/capper" serve --config "$dir/$1.yaml" 2>"$dir/$1.log" &
  pid=$!
  local tries=0
  until "$bin/capper" status >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || { cat "$dir/$1.log" >&2; fail "the service did not start"; }
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "the service is not ready"
    sleep 0.1
  done
}

config() {
  cat >"$dir/$1.yaml" <<YAML
server: {listen: "$LISTEN", stop_delay: 0s, call_timeout: 60s}
segments: {source: $dir/$1.segments, cache_dir: $dir/$1.cache}
store: $2
channels: {push: 1}
limits: {default: {daily: 2, weekly: 5}}
YAML
}

echo "$USERS users, to the store $STORE; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
awk -v n="$USERS" -v dir="$dir" 'BEGIN {
  print "user,id" >dir "/users.csv"
  for (i = 1; i <= n; i++) {
    id = sprintf("%08x-%04x-4000-8000-%012x", (i * 2654435) % 4294967296, i % 65536, i)
    print i >dir "/dense.txt"
    print id >dir "/uuids.txt"
    print i "," id >dir "/users.csv"
  }
}'
head -n "$released" "$dir/dense.txt" >"$dir/released.txt"

# The deployment with dense ids.
config dense "{embedded: {path: $dir/dense.db}}"
echo "audit: {to: $dir/dense.audit}" >>"$dir/dense.yaml"
"$bin/segmentbuild" build --to "$dir/dense.segments" --segment everybody="$dir/dense.txt" >"$dir/err" 2>&1 || { cat "$dir/err"; exit 1; }
serve dense
step "old: one send to each user" "$bin/capper" filter --audience everybody --message-id spring --channel push
step "old: $released of them released" "$bin/capper" release "$dir/released.txt" --message-id spring --channel push
stop

# The move.
cd "$dir"
step "capper audit export" "$bin/capper" audit export --config dense.yaml --out past.ndjson
cat err
step "sqlite3: join with the table" sqlite3 moving.db ".read $OLDPWD/deploy/sends-of-audit.sql"
cat out
rm -f moving.db
cd "$OLDPWD"
store="{embedded: {path: $dir/uuid.db}}"
if [ "$STORE" = redis ]; then
  scripts/cluster.sh up "$dir/cluster" >&2
  . "$dir/cluster/env"
  store="{kind: redis, redis: {addrs: [${CAPPER_TEST_REDIS}]}}"
fi
config uuid "$store"
step "segmentbuild build --ids uuid" "$bin/segmentbuild" build --ids uuid --to "$dir/uuid.segments" --segment everybody="$dir/uuids.txt"
serve uuid
step "capper import" "$bin/capper" import "$dir/sends.csv"
cat "$dir/out"
step "capper import again, all known" "$bin/capper" import "$dir/sends.csv"

# The check: each user but those of the release has the send.
"$bin/capper" filter "$dir/uuids.txt" --message-id spring --channel push --json >"$dir/check.json"
want=$((USERS - released))
grep -q "\"replayed\": $want" "$dir/check.json" || { cat "$dir/check.json" >&2; fail "want $want replayed users"; }
echo "$want of $USERS users have the send of the old deployment, and $released may receive it"
