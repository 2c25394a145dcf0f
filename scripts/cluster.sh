#!/usr/bin/env bash
# Redis servers on free loopback ports for tests, demos and benchmarks.
#
#   cluster.sh up DIR [options]      start a Redis Cluster, wait until it serves every slot
#   cluster.sh single DIR [options]  start one standalone server
#   cluster.sh spare DIR [options]   start --masters servers in cluster mode that are in no cluster yet
#   cluster.sh start DIR PORT        start a stopped or killed node again, same data
#   cluster.sh down DIR              end the servers of DIR and remove DIR
#
# Options:
#   --masters N        masters of the cluster (3)
#   --replicas N       replicas of each master, or of the standalone server (1; single: 0)
#   --node-timeout MS  cluster-node-timeout (2000)
#   --password P       requirepass and masterauth
#   --acl FILE         the servers' ACL file, in which CHANGE-ME becomes capper; without it they have the line
#                      of deploy/redis.acl for the user capper
#   --user U           who creates the cluster and feeds replicas, with the password of --password (default)
#   --host IP          where the nodes listen (127.0.0.1), such as ::1
#   --tls DIR          TLS alone, also between the nodes, with ca.crt, server.crt and server.key of DIR;
#                      clients have to show a certificate of the same authority
#   --owner PID        end the servers when that process ends
#   --set 'NAME VALUE' one more line of redis.conf; may be repeated
#
# CAPPER_TEST_REDIS_SERVER names the server's binary (redis-server), for other engines: see engines.sh.
#
# DIR receives env (CAPPER_TEST_REDIS=addr,addr,…), and for each node PORT.pid,
# PORT.log and PORT/ with redis.conf and data. Only processes that DIR names
# are ever ended. CAPPER_TEST_REDIS lists the masters first.
set -euo pipefail

self=${BASH_SOURCE[0]}
rights=$(dirname "$self")/../deploy/redis.acl
fail() { echo "cluster.sh: error: $*" >&2; exit 1; }

server=${CAPPER_TEST_REDIS_SERVER:-redis-server}
install_redis() {
  command -v "$server" >/dev/null 2>&1 || [ "$server" = redis-server ] || fail "CAPPER_TEST_REDIS_SERVER=$server is no program"
  command -v redis-server >/dev/null 2>&1 && command -v redis-cli >/dev/null 2>&1 && return
  echo "cluster.sh: installing redis-server" >&2
  local sudo=""
  if command -v brew >/dev/null 2>&1; then
    brew install --quiet redis >&2
  elif command -v apt-get >/dev/null 2>&1; then
    [ "$(id -u)" = 0 ] || sudo="sudo"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    # Without the policy file Debian would also start a server of its own.
    $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server redis-tools >&2
  else
    fail "redis-server is missing, and there is neither apt-get nor brew to install it"
  fi
  command -v redis-server >/dev/null 2>&1 || fail "redis-server is still missing after its installation"
}

# Node ports are 12000 to 21999 and bus ports 10000 higher: both below the
# ephemeral range, and no node port is another's bus port.
in_use() { (exec 3<>"/dev/tcp/$host/$1") 2>/dev/null; }
free_port() {
  local port try
  for try in $(seq 1 200); do
    port=$((12000 + (RANDOM * 32768 + RANDOM) % 10000))
    [ -e "$dir/$port" ] && continue
    in_use "$port" || in_use $((port + 10000)) || { echo "$port"; return; }
  done
  fail "no free port between 12000 and 21999 after $try attempts"
}

cli() { local port=$1; shift; redis-cli -h "$host" -p "$port" "${cli_tls[@]}" "${cli_user[@]}" "$@" 2>/dev/null; }
info() { cli "$1" info "$2" | tr -d '\r' | awk -F: -v k="$3" '$1 == k {print $2}'; }

write_config() {
  local port=$1
  mkdir -p "$dir/$port"
  {
    cat <<CONF
bind $host
dir "$dir/$port"
pidfile "$dir/$port.pid"
logfile "$dir/$port.log"
daemonize yes
save ""
appendonly yes
appendfsync everysec
repl-diskless-sync-delay 0
repl-ping-replica-period 1
repl-timeout 10
CONF
    if "$server" --version | grep -q ' v=6'; then # knows neither the newer names nor, in 6.0, channels of users
      printf '%s\n' "hash-max-ziplist-entries 512" "hash-max-ziplist-value 1024"
      sed -n '/^user capper /{s/CHANGE-ME/capper/; s/resetchannels //; s/+acl|dryrun //; p}' "$rights"
    else
      printf '%s\n' "hash-max-listpack-entries 512" "hash-max-listpack-value 1024" "enable-debug-command local"
      [ -n "$acl" ] || sed -n '/^user capper /{s/CHANGE-ME/capper/; p}' "$rights"
    fi
    if [ -z "$tls" ]; then
      echo "port $port"
    else
      printf '%s\n' "port 0" "tls-port $port" "tls-replication yes" "tls-ca-cert-file $tls/ca.crt" \
        "tls-cert-file $tls/server.crt" "tls-key-file $tls/server.key"
      [ "$kind" != cluster ] || echo "tls-cluster yes"
    fi
    [ "$kind" = cluster ] && printf '%s\n' "cluster-enabled yes" "cluster-config-file nodes.conf" \
      "cluster-node-timeout $node_timeout" "cluster-replica-validity-factor 0" "cluster-require-full-coverage no"
    if [ -n "$acl" ]; then
      sed 's/CHANGE-ME/capper/' "$acl" >"$dir/$port/users.acl"
      echo "aclfile \"$dir/$port/users.acl\""
    fi
    [ -n "$user" ] && echo "masteruser $user"
    [ -n "$password" ] && printf '%s\n' "requirepass \"$password\"" "masterauth \"$password\""
    [ ${#settings[@]} -gt 0 ] && printf '%s\n' "${settings[@]}"
    true
  } >"$dir/$port/redis.conf"
}

launch() { # PORT: true when the node answers; false when it could not start
  local port=$1 try
  "$server" "$dir/$port/redis.conf" >/dev/null || return 1
  for try in $(seq 1 200); do
    case "$(cli "$port" ping || true)" in PONG | LOADING* | NOAUTH*) return 0 ;; esac
    sleep 0.05
  done
  return 1
}

# Another's server may have taken the port. One whose INFO is renamed does not tell.
answers_itself() {
  local told
  told=$(info "$1" server process_id)
  [ -s "$dir/$1.pid" ] && { [ -z "$told" ] || [ "$told" = "$(cat "$dir/$1.pid")" ]; }
}

start_nodes() { # COUNT: sets ports
  local n=$1 port
  ports=()
  while [ ${#ports[@]} -lt "$n" ]; do
    port=$(free_port)
    write_config "$port"
    if launch "$port" && answers_itself "$port"; then
      ports+=("$port")
    else
      rm -rf "${dir:?}/$port" "$dir/$port.pid"
      attempts=$((attempts + 1))
      [ "$attempts" -lt 20 ] || fail "redis-server does not start; see $dir/*.log"
    fi
  done
}

wait_for() { # DESCRIPTION COMMAND…
  local what=$1 try
  shift
  for try in $(seq 1 600); do
    "$@" && return
    sleep 0.05
  done
  fail "$what: not so after 30 s; see $dir/*.log"
}

serves() { [ "$(cli "$1" cluster info | tr -d '\r' | awk -F: '$1 == "cluster_state" {print $2}')" = ok ]; }
synced() {
  [ "$(info "$1" replication role)" = master ] || [ "$(info "$1" replication master_link_status)" = up ]
}
knows_replicas() { [ "$(cli "$1" cluster nodes | grep -c ' slave\|,slave')" = $((masters * replicas)) ]; }
feeds() { [ "$(cli "$1" info replication | grep -c 'state=online')" = "$replicas" ]; }

at() { case $host in *:*) echo "[$host]:$1" ;; *) echo "$host:$1" ;; esac; } # the address of a port
finish() {
  local list="" port
  for port in "${ports[@]}"; do list="$list,$(at "$port")"; done
  echo "CAPPER_TEST_REDIS=${list#,}" >"$dir/env"
  if [ -n "$owner" ]; then
    (trap '' HUP INT TERM; while kill -0 "$owner" 2>/dev/null && [ -e "$dir/env" ]; do sleep 1; done
     [ -e "$dir/env" ] && exec bash "$self" down "$dir") >/dev/null 2>&1 </dev/null &
  fi
  cat "$dir/env"
}

up() {
  kind=cluster
  start_nodes $((masters * (1 + replicas)))
  local addrs=() port
  for port in "${ports[@]}"; do addrs+=("$host:$port"); done
  redis-cli "${cli_tls[@]}" "${cli_user[@]}" --cluster create "${addrs[@]}" --cluster-replicas "$replicas" --cluster-yes >"$dir/create.log" 2>&1 ||
    fail "redis-cli --cluster create: $(tail -n 3 "$dir/create.log")"
  for port in "${ports[@]}"; do
    wait_for "node $port serves the cluster" serves "$port"
    wait_for "node $port knows every replica" knows_replicas "$port"
    wait_for "node $port has its data" synced "$port"
  done
  for port in "${ports[@]:0:masters}"; do wait_for "replicas of $port are online" feeds "$port"; done
  finish
}

single() {
  kind=standalone
  start_nodes $((1 + replicas))
  local port
  for port in "${ports[@]:1}"; do
    cli "$port" replicaof "$host" "${ports[0]}" >/dev/null
    wait_for "replica $port has its data" synced "$port"
  done
  [ "$replicas" = 0 ] || wait_for "replicas of ${ports[0]} are online" feeds "${ports[0]}"
  finish
}

spare() {
  kind=cluster
  start_nodes "$masters"
  finish
}

# A pid file may outlive its process, and its number may be another's by then.
ours() { ps -p "$1" -o args= 2>/dev/null | grep -q -e "-server.*:$2" -e "$dir/$2/redis.conf"; } # the title, or where a loader keeps it from being set the arguments
down() {
  [ -d "$dir" ] || return 0
  rm -f "$dir/env"
  local file pid port try
  for file in "$dir"/*.pid; do
    [ -e "$file" ] || continue
    pid=$(cat "$file") port=$(basename "$file" .pid)
    ours "$pid" "$port" || continue
    kill -9 "$pid" 2>/dev/null || true
    for try in $(seq 1 100); do in_use "$port" || break; sleep 0.02; done
  done
  rm -rf "${dir:?}"
}

[ $# -ge 2 ] || { sed -n '2,27p' "$self" | sed 's/^# \{0,1\}//' >&2; exit 2; }
verb=$1 dir=$2
shift 2
masters=3 replicas=1 node_timeout=2000 password="" owner="" host=127.0.0.1 tls="" cli_tls=() acl="" user="" cli_user=() settings=() attempts=0 kind="" node=""
case $verb in
  single) replicas=0 ;;
  start) node=${1:?cluster.sh start DIR PORT}; shift ;;
esac
while [ $# -gt 0 ]; do
  case $1 in
    --masters) masters=$2 ;;
    --replicas) replicas=$2 ;;
    --node-timeout) node_timeout=$2 ;;
    --password) password=$2 ;;
    --acl) acl=$2 ;;
    --user) user=$2 cli_user=(--user "$2") ;;
    --host) host=$2 ;;
    --tls) tls=$2 cli_tls=(--tls --cacert "$2/ca.crt" --cert "$2/server.crt" --key "$2/server.key") ;;
    --owner) owner=$2 ;;
    --set) settings+=("$2") ;;
    *) fail "unknown option $1" ;;
  esac
  shift 2
done
if [ "$verb" = start ] || [ "$verb" = down ]; then # how the nodes were started
  [ ! -e "$dir/reach" ] || . "$dir/reach"
  [ -z "$tls" ] || cli_tls=(--tls --cacert "$tls/ca.crt" --cert "$tls/server.crt" --key "$tls/server.key")
fi
[ -z "$password" ] || export REDISCLI_AUTH=$password
case $verb in
  up | single | spare)
    [ -e "$dir/env" ] && fail "$dir is in use: run cluster.sh down $dir first"
    install_redis
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    printf 'host=%q tls=%q\n' "$host" "$tls" >"$dir/reach"
    trap 'status=$?; [ $status = 0 ] || { trap - EXIT; bash "$self" down "$dir" >/dev/null 2>&1; }' EXIT
    "$verb"
    ;;
  start) dir=$(cd "$dir" && pwd); launch "$node" || fail "node $node does not start; see $dir/$node.log" ;;
  down) down ;;
  *) fail "unknown command $verb" ;;
esac
