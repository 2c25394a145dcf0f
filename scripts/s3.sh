#!/usr/bin/env bash
# An S3 server for tests and demos: versitygw over a directory, on a free loopback port, with random keys.
#
#   scripts/s3.sh up DIR     start one with a bucket "segments"; DIR/env holds what a client needs (source it), DIR/pid its process
#   scripts/s3.sh down DIR   end it and remove what it stored
#
# It keeps connections open between requests, as the servers of other makers do.
#
# VERSITYGW names an existing binary; otherwise build/tools/versitygw is used, installed there when missing.
set -euo pipefail

VERSION=v1.8.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
die() { echo "s3.sh: error: $*" >&2; exit 1; }

binary() {
  if [ -n "${VERSITYGW:-}" ]; then
    [ -x "$VERSITYGW" ] || die "VERSITYGW=$VERSITYGW is not an executable file"
    echo "$VERSITYGW"
    return
  fi
  local tools="$root/build/tools"
  mkdir -p "$tools"
  # Several test packages may ask at once: one installs, the others wait for it.
  (
    if command -v flock >/dev/null; then flock 9; fi
    if [ ! -x "$tools/versitygw" ]; then
      echo "s3.sh: installing versitygw $VERSION into build/tools (once, about two minutes)" >&2
      GOBIN="$tools" GOFLAGS="-mod=mod ${GOFLAGS:--trimpath}" go install "github.com/versity/versitygw/cmd/versitygw@$VERSION" >&2 ||
        die "go install versitygw@$VERSION"
    fi
  ) 9>"$tools/versitygw.lock"
  echo "$tools/versitygw"
}

random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

up() {
  local dir=$1 bin port pid access secret
  [ ! -e "$dir/pid" ] || ! kill -0 "$(cat "$dir/pid")" 2>/dev/null || die "already up in $dir (scripts/s3.sh down $dir)"
  bin=$(binary)
  mkdir -p "$dir/data/segments" # a directory is a bucket
  access="capper$(random_hex 6)"
  secret=$(random_hex 20)
  for _ in 1 2 3 4 5 6 7 8; do
    port=$((20000 + RANDOM % 12000))
    if answers "$port"; then continue; fi
    ROOT_ACCESS_KEY=$access ROOT_SECRET_KEY=$secret \
      nohup "$bin" --port "127.0.0.1:$port" --quiet --keep-alive posix "$dir/data" >"$dir/log" 2>&1 9>&- &
    pid=$!
    for _ in $(seq 100); do
      if ! kill -0 "$pid" 2>/dev/null; then break; fi
      if answers "$port"; then
        echo "$pid" >"$dir/pid"
        write_env "$dir" "$port" "$access" "$secret"
        return
      fi
      sleep 0.05
    done
    kill "$pid" 2>/dev/null || true
  done
  cat "$dir/log" >&2
  die "versitygw did not answer on 127.0.0.1"
}

write_env() {
  umask 077
  cat >"$1/env" <<ENV
export AWS_ENDPOINT_URL_S3=http://127.0.0.1:$2
export AWS_ACCESS_KEY_ID=$3
export AWS_SECRET_ACCESS_KEY=$4
export AWS_REGION=us-east-1
ENV
}

down() {
  local dir=$1 pid
  [ -e "$dir/pid" ] || return 0
  pid=$(cat "$dir/pid")
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 "$pid" 2>/dev/null || true
  rm -rf "$dir/data" "$dir/env" "$dir/pid" "$dir/log"
  rmdir "$dir" 2>/dev/null || true # where something else lies it stays
}

[ $# -eq 2 ] || usage
case $1 in
  up) up "$2" ;;
  down) down "$2" ;;
  *) usage ;;
esac
