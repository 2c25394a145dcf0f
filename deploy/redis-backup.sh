#!/usr/bin/env bash
# Backup and restore of capper's Redis, from any machine that reaches its nodes: docs/moving.md.
#
#   redis-backup.sh save NODE DIR      copy every shard of NODE's cluster (host:port) into the new directory DIR, from its replicas
#   redis-backup.sh restore NODE DIR   put the copies of DIR into NODE's cluster, which is empty and may have other shards
#
# restore starts one server after the other on this machine, on 127.0.0.1:PORT (7999), with a shard's copy in memory.
# REDIS_CLI is how redis-cli is called, such as "redis-cli --user admin --tls --cacert ca.crt"; REDISCLI_AUTH has the password.
set -euo pipefail
umask 077 # copies hold who was sent what: nobody else of the machine may read them, as with capper backup

fail() { echo "redis-backup.sh: error: $*" >&2; exit 1; }
[ $# = 3 ] || { sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
verb=$1 node=$2 dir=${3%/} port=${PORT:-7999}
read -ra cli <<<"${REDIS_CLI:-redis-cli}"
at() { local addr=$1; shift; "${cli[@]}" -h "${addr%:*}" -p "${addr##*:}" "$@"; }
nodes() { at "$node" cluster nodes | tr -d '\r' | sed 's/@[^ ]*//'; } # id host:port flags master … state slots

masters() { nodes | awk '$3 ~ /master/ && $3 !~ /fail/ && NF > 8 {print $1, $2}'; }
source_of() { # ID ADDRESS of a master: a replica that follows it, else itself
  local addr
  for addr in $(nodes | awk -v id="$1" '$4 == id && $3 !~ /fail/ {print $2}'); do
    if at "$addr" info replication | grep -q master_link_status:up; then echo "$addr"; return; fi
  done
  echo "$2"
}

serves() { at "$node" cluster info | grep -q '^cluster_slots_ok:16384' || fail "$node: not all slots of its cluster are served"; }
slots() { # of each master, as it says itself: with those that it is just giving away or taking
  local addr
  while read -r _ addr <&3; do
    at "$addr" cluster nodes | tr -d '\r' | awk '$3 ~ /myself/ {for (i = 9; i <= NF; i++) printf "%s ", $i; print ""}'
  done 3< <(masters) | sort
}

save() {
  [ ! -e "$dir" ] || fail "$dir is there already: name a new directory"
  serves
  local before
  before=$(slots)
  [[ $before != *'['* ]] || fail "slots are being moved: wait until they are"
  mkdir -p "$(dirname "$dir")"
  mkdir "$dir.part" || fail "$dir.part is of a save that runs, or that was killed: when none runs, rm -r $dir.part"
  trap 'rm -rf "$dir.part"' EXIT
  date -u -d '1 minute ago' +%Y-%m-%dT%H:%M:%SZ >"$dir.part/since"
  local id addr from
  while read -r id addr <&3; do
    from=$(source_of "$id" "$addr")
    at "$from" --rdb "$dir.part/$id.rdb" >"$dir.part/$id.log" 2>&1 || fail "$from: $(tail -n 1 "$dir.part/$id.log")"
    redis-check-rdb "$dir.part/$id.rdb" >"$dir.part/$id.log" || fail "$from: $(tail -n 1 "$dir.part/$id.log")"
    echo "shard $addr from $from: $(sed -n 's/^\[info\] \([0-9]* keys\) read/\1/p' "$dir.part/$id.log"), $(stat -c %s "$dir.part/$id.rdb") bytes"
    rm "$dir.part/$id.log"
    echo "$id" >>"$dir.part/shards"
  done 3< <(masters)
  [ "$(slots)" = "$before" ] || fail "slots were moved meanwhile, and what is in them may be in two copies or in none: save again"
  (cd "$dir.part" && sha256sum since shards ./*.rdb >SHA256SUMS)
  mv -T "$dir.part" "$dir"
  trap - EXIT
  echo "$dir: all that was recorded until $(cat "$dir/since")"
}

whole() { # one copy of each shard, as it was saved, and no other
  (cd "$dir" && sha256sum --quiet --check SHA256SUMS) || fail "$dir is not what was saved"
  local rdb name
  for rdb in "$dir"/*.rdb; do
    name=$(basename "$rdb")
    grep -qF "  ./$name" "$dir/SHA256SUMS" || fail "$rdb is not what was saved: take it away"
    # Versions before had no list of shards.
    [ ! -e "$dir/shards" ] || grep -qxF "${name%.rdb}" "$dir/shards" || fail "$rdb is of no shard of this backup: take it and its line in SHA256SUMS away"
  done
  [ ! -e "$dir/shards" ] || for name in $(cat "$dir/shards"); do [ -e "$dir/$name.rdb" ] || fail "$dir/$name.rdb is missing"; done
}

restore() {
  whole
  serves
  local id addr rdb
  while read -r id addr <&3; do
    [ "$(at "$addr" dbsize)" = 0 ] || fail "$addr is not empty: FLUSHALL there first, if what it has is to be given up"
  done 3< <(masters)
  for rdb in "$dir"/*.rdb; do load "$rdb"; done
}

load() { # RDB
  local here=(env -u REDISCLI_AUTH redis-cli -p "$port") log="$dir/restore.log" server try had copied
  redis-server --bind 127.0.0.1 --port "$port" --dir "$dir" --dbfilename "$(basename "$1")" --appendonly no --save "" >"$log" 2>&1 &
  server=$!
  trap 'kill -9 '"$server"' 2>/dev/null || true' EXIT
  until [ "$("${here[@]}" ping 2>/dev/null)" = PONG ]; do # not while it loads
    kill -0 "$server" 2>/dev/null || fail "$1: $(tail -n 1 "$log")"
    sleep 0.1
  done
  [ "$("${here[@]}" info server | tr -d '\r' | sed -n 's/^process_id://p')" = "$server" ] || fail "127.0.0.1:$port is another server's: set PORT"
  had=$("${here[@]}" dbsize)
  [ "$had" = 0 ] || "${cli[@]}" --cluster import "$node" --cluster-from "127.0.0.1:$port" >"$log" || broken "$1" "$log"
  [ "$("${here[@]}" dbsize)" = 0 ] || fail "$1: not all of its keys went over; see $log, FLUSHALL on each master, and begin again"
  kill -9 "$server" && wait "$server" 2>/dev/null || true
  trap - EXIT
  rm "$log"
  echo "$(basename "$1"): $had keys"
}

broken() { # RDB LOG of an import that failed
  ! grep -q BUSYKEY "$2" || fail "$1: keys of it are in another copy of $dir too: docs/moving.md has what to do; FLUSHALL on each master before you begin again"
  fail "$1: $(tail -n 2 "$2" | tr '\n' ' '); FLUSHALL on each master, and begin again"
}

case $verb in
  save | restore) "$verb" ;;
  *) fail "unknown command $verb" ;;
esac
