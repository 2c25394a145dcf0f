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
nl=$'\n' cr=$'\r'
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
in_use() { { :; } 2>/dev/null 3<>"/dev/tcp/$host/$1"; }
free_port() { # sets port
  local try
  for ((try = 0; try < 200; try++)); do
    port=$((12000 + (RANDOM * 32768 + RANDOM) % 10000))
    [ -e "$dir/$port" ] && continue
    in_use "$port" || in_use $((port + 10000)) || return 0
  done
  fail "no free port between 12000 and 21999 after $try attempts"
}

cli() { local port=$1; shift; redis-cli -h "$host" -p "$port" "${cli_tls[@]}" "${cli_user[@]}" "$@" 2>/dev/null; }

# Without TLS, bash itself talks to the nodes: a start of redis-cli costs more processor time than all that is asked.
ask() { # PORT COMMAND…: sets reply to the lines of all answers
  local port=$1 line command
  shift
  reply=$nl
  if [ -n "$tls" ]; then
    for command in "$@"; do reply+=$(cli "$port" $command || true)$nl; done
    reply=${reply//$cr/}
    return
  fi
  [ -z "$password" ] || set -- "AUTH \"${user:-default}\" \"$password\"" "$@"
  {
    printf '%s\r\n' "$@" QUIT >&3
    while IFS= read -r -t 30 line <&3; do reply+=${line%$cr}$nl; done
  } 2>/dev/null 3<>"/dev/tcp/$host/$port" || true
}
field() { # NAME: sets value to what reply tells as NAME:value
  value=""
  case $reply in *"$nl$1:"*) value=${reply#*"$nl$1:"} value=${value%%"$nl"*} ;; esac
}
lines_with() { # WORD…: sets count to the number of the lines of reply that have one of the words
  local rest=$reply line word
  count=0
  while [ -n "$rest" ]; do
    line=${rest%%"$nl"*} rest=${rest#*"$nl"}
    for word in "$@"; do case $line in *"$word"*) count=$((count + 1)) && break ;; esac; done
  done
}

common_config() { # all that the nodes have in common
  cat <<CONF
bind $host
daemonize yes
save ""
appendonly yes
appendfsync everysec
repl-diskless-sync-delay 0
repl-ping-replica-period 1
repl-timeout 10
CONF
  case $("$server" --version) in
    *' v=6'*) # knows neither the newer names nor, in 6.0, channels of users
      printf '%s\n' "hash-max-ziplist-entries 512" "hash-max-ziplist-value 1024"
      sed -n '/^user capper /{s/CHANGE-ME/capper/; s/resetchannels //; s/+acl|dryrun //; p}' "$rights"
      ;;
    *)
      printf '%s\n' "hash-max-listpack-entries 512" "hash-max-listpack-value 1024" "enable-debug-command local"
      [ -n "$acl" ] || sed -n '/^user capper /{s/CHANGE-ME/capper/; p}' "$rights"
      ;;
  esac
  if [ -n "$tls" ]; then
    printf '%s\n' "port 0" "tls-replication yes" "tls-ca-cert-file $tls/ca.crt" \
      "tls-cert-file $tls/server.crt" "tls-key-file $tls/server.key"
    [ "$kind" != cluster ] || echo "tls-cluster yes"
  fi
  [ "$kind" = cluster ] && printf '%s\n' "cluster-enabled yes" "cluster-config-file nodes.conf" \
    "cluster-node-timeout $node_timeout" "cluster-replica-validity-factor 0" "cluster-require-full-coverage no"
  [ -n "$user" ] && echo "masteruser $user"
  [ -n "$password" ] && printf '%s\n' "requirepass \"$password\"" "masterauth \"$password\""
  [ ${#settings[@]} -gt 0 ] && printf '%s\n' "${settings[@]}"
  true
}

write_config() {
  local port=$1
  mkdir -p "$dir/$port"
  {
    printf '%s\n' "dir \"$dir/$port\"" "pidfile \"$dir/$port.pid\"" "logfile \"$dir/$port.log\""
    if [ -z "$tls" ]; then echo "port $port"; else echo "tls-port $port"; fi
    if [ -n "$acl" ]; then
      sed 's/CHANGE-ME/capper/' "$acl" >"$dir/$port/users.acl"
      echo "aclfile \"$dir/$port/users.acl\""
    fi
    echo "$common"
  } >"$dir/$port/redis.conf"
}

launch() { "$server" "$dir/$1/redis.conf" >/dev/null; }
answers() { # PORT: true when the node answers; false when it could not start. Reply has then its INFO.
  local try
  for ((try = 0; try < 200; try++)); do
    ask "$1" ping "info server"
    case $reply in *PONG* | *LOADING* | *NOAUTH*) return 0 ;; esac
    sleep 0.05
  done
  return 1
}

# Another's server may have taken the port. One whose INFO is renamed does not tell.
answers_itself() {
  answers "$1" || return 1
  field process_id
  [ -s "$dir/$1.pid" ] && { [ -z "$value" ] || [ "$value" = "$(<"$dir/$1.pid")" ]; }
}

start_nodes() { # COUNT: sets ports
  local n=$1 port launched
  common=$(common_config)
  ports=()
  while [ ${#ports[@]} -lt "$n" ]; do
    launched=()
    while [ $((${#ports[@]} + ${#launched[@]})) -lt "$n" ]; do
      free_port
      write_config "$port"
      launch "$port" || true
      launched+=("$port")
    done
    for port in "${launched[@]}"; do
      if answers_itself "$port"; then
        ports+=("$port")
      else
        rm -rf "${dir:?}/$port" "$dir/$port.pid"
        attempts=$((attempts + 1))
        [ "$attempts" -lt 20 ] || fail "redis-server does not start; see $dir/*.log"
      fi
    done
  done
}

wait_for() { # COMMAND…: until it is true; it sets unmet
  local try
  for ((try = 0; try < 600; try++)); do
    "$@" && return
    sleep 0.05
  done
  fail "$unmet: not so after 30 s; see $dir/*.log"
}

# The checks of reply. Each one sets unmet to its own description.
serves() { unmet="node $1 serves the cluster"; field cluster_state; [ "$value" = ok ]; }
knows_replicas() {
  unmet="node $1 knows every replica"
  lines_with " slave" ",slave"
  [ "$count" = $((masters * replicas)) ]
}
synced() {
  unmet="node $1 has its data"
  field role
  [ "$value" = master ] || { field master_link_status; [ "$value" = up ]; }
}
feeds() { unmet="replicas of $1 are online"; lines_with state=online; [ "$count" = "$replicas" ]; }

belongs() { # PORT: true when the node has its place in the whole cluster
  ask "$1" "cluster info" "cluster nodes" "info replication"
  serves "$1" && knows_replicas "$1" && synced "$1"
}
replicates() { ask "$1" "info replication"; synced "$1"; }
replicated() { ask "$1" "info replication"; feeds "$1"; }

at() { case $host in *:*) echo "[$host]:$1" ;; *) echo "$host:$1" ;; esac; } # the address of a port
finish() {
  local list="" port
  for port in "${ports[@]}"; do list="$list,$(at "$port")"; done
  echo "CAPPER_TEST_REDIS=${list#,}" >"$dir/env"
  if [ -n "$owner" ]; then
    (trap '' HUP INT TERM; while kill -0 "$owner" 2>/dev/null && [ -e "$dir/env" ]; do sleep 3; done
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
    wait_for belongs "$port"
  done
  for port in "${ports[@]:0:masters}"; do wait_for replicated "$port"; done
  finish
}

single() {
  kind=standalone
  start_nodes $((1 + replicas))
  local port
  for port in "${ports[@]:1}"; do
    cli "$port" replicaof "$host" "${ports[0]}" >/dev/null
    wait_for replicates "$port"
  done
  [ "$replicas" = 0 ] || wait_for replicated "${ports[0]}"
  finish
}

spare() {
  kind=cluster
  start_nodes "$masters"
  finish
}

# A pid file may outlive its process, and its number may be another's by then. So the process has to have the title of
# the node or, where a loader keeps the title from being set, its arguments.
ours() { # PIDS: prints the ports of the nodes that run
  local pid args file port
  ps -o pid= -o args= -p "$1" 2>/dev/null | while read -r pid args; do
    for file in "$dir"/*.pid; do
      port=${file##*/} port=${port%.pid}
      [ "$(<"$file")" = "$pid" ] || continue
      case $args in *-server*":$port"* | *"$dir/$port/redis.conf"*) echo "$port" ;; esac
    done
  done
}
down() {
  [ -d "$dir" ] || return 0
  rm -f "$dir/env"
  local pids="" running file port try
  for file in "$dir"/*.pid; do [ ! -s "$file" ] || pids+=,$(<"$file"); done
  running=$([ -z "$pids" ] || ours "${pids#,}")
  for port in $running; do kill -9 "$(<"$dir/$port.pid")" 2>/dev/null || true; done
  for port in $running; do
    for ((try = 0; try < 100; try++)); do in_use "$port" || break; sleep 0.02; done
  done
  rm -rf "${dir:?}"
}

[ $# -ge 2 ] || { sed -n '2,27p' "$self" | sed 's/^# \{0,1\}//' >&2; exit 2; }
verb=$1 dir=$2
shift 2
masters=3 replicas=1 node_timeout=2000 password="" owner="" host=127.0.0.1 tls="" cli_tls=() acl="" user="" cli_user=() settings=() attempts=0 kind="" common="" node=""
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
  start) dir=$(cd "$dir" && pwd); launch "$node" && answers "$node" || fail "node $node does not start; see $dir/$node.log" ;;
  down) down ;;
  *) fail "unknown command $verb" ;;
esac
