#!/usr/bin/env bash
# Other engines than the system's redis-server, for tests: Valkey, and newer and older Redis.
#
#   scripts/engines.sh list             the names, and from which release of Debian each one comes
#   scripts/engines.sh get NAME         print the path of the engine's server, installed first when missing
#   scripts/engines.sh test NAME…       run the tests of the store, storms and failovers too, on the engines; without a
#                                       name on all of them. RUN=PATTERN runs those tests only. Some ten minutes each.
#
# An engine is taken from the Debian mirror that apt uses on this machine, with the libraries that its own
# release has, into build/tools/engines/NAME. Nothing is installed into the system, and its lists of packages
# stay as they are. CAPPER_TEST_REDIS_SERVER names a server's binary to scripts/cluster.sh and to the tests.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
engines=$root/build/tools/engines
die() { echo "engines.sh: error: $*" >&2; exit 1; }

# NAME  release  package with the server  the server's name
table="valkey-9.1 sid valkey-tools valkey-server
valkey-8.1 trixie valkey-tools valkey-server
valkey-8.0 bookworm-backports valkey-tools valkey-server
redis-8.0 trixie redis-tools redis-server
redis-6.0 bullseye redis-tools redis-server"

# All that any of the servers is linked with; a release has its own names for some.
libraries="libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libssl3 libssl1.1 libsystemd0 libcap2
  libzstd1 liblzma5 liblz4-1 libgcrypt20 libgpg-error0 zlib1g liblua5.1-0 lua-bitop lua-cjson"

# apt of a directory of our own, which knows one release and no installed package.
own_apt() {
  local program=$1 home=$2
  shift 2
  "$program" -o Dir::Etc::SourceList="$home/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$home/state" \
    -o Dir::State::status="$home/status" -o Dir::Cache="$home/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

mirror() {
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 2>/dev/null | grep -m1 '/debian/\?$') ||
    die "apt knows no mirror of Debian on this machine: name a server's binary in CAPPER_TEST_REDIS_SERVER instead"
  echo "$uri"
}

fetch() { # NAME RELEASE PACKAGE SERVER: into $engines/NAME
  local name=$1 release=$2 package=$3 server=$4 home part file loader paths
  home=$(mktemp -d)
  mkdir -p "$home/state/lists/partial" "$home/cache/archives/partial" "$home/files"
  : >"$home/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $release main" >"$home/sources.list"
  case $release in *-backports) sed 'p;s/-backports / /' "$home/sources.list" >"$home/both" && mv "$home/both" "$home/sources.list" ;; esac
  own_apt apt-get "$home" update -qq >&2 || die "the mirror does not have Debian's $release"
  part=$(own_apt apt-cache "$home" pkgnames | grep -xF -f <(printf '%s\n' $libraries))
  (cd "$home/files" && own_apt apt-get "$home" download -qq "$package/$release" $part >&2) || die "$release has no $package"
  mkdir -p "$home/root"
  for file in "$home"/files/*.deb; do dpkg-deb -x "$file" "$home/root"; done
  for part in lib lib64; do # an older release's packages have them beside usr
    [ ! -d "$home/root/$part" ] || { mkdir -p "$home/root/usr/$part" && cp -a "$home/root/$part/." "$home/root/usr/$part/"; }
  done
  rm -rf "${engines:?}/$name"
  mkdir -p "$engines"
  mv "$home/root" "$engines/$name"
  rm -rf "$home"
  loader=$(find "$engines/$name/usr" -name 'ld-linux*.so.*' | head -n1)
  paths=$(find "$engines/$name/usr/lib" -maxdepth 2 -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
  ln -sf "${server%-server}-check-rdb" "$engines/$name/usr/bin/$server" # one program, which it is by its name
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$paths" "$engines/$name/usr/bin/$server" >"$engines/$name/$server"
  chmod +x "$engines/$name/$server"
  "$engines/$name/$server" --version >&2 || die "$name does not run here"
}

get() { # NAME
  local line
  line=$(grep "^$1 " <<<"$table") || die "$1: no such engine; there are: $(cut -d' ' -f1 <<<"$table" | paste -sd' ')"
  set -- $line
  mkdir -p "$engines"
  (
    if command -v flock >/dev/null; then flock 9; fi
    [ -x "$engines/$1/$4" ] || { echo "engines.sh: fetching $1 into build/tools (once)" >&2; fetch "$@"; }
  ) 9>"$engines/$1.lock"
  echo "$engines/$1/$4"
}

run_tests() { # NAME
  local server
  server=$(get "$1")
  echo "== $1: $("$server" --version | cut -d' ' -f1-3)"
  (cd "$root" && env -u CAPPER_TEST_REDIS CAPPER_TEST_REDIS_SERVER="$server" \
    go test -tags storms -count=1 -timeout 40m -run "${RUN:-.}" ./internal/capping/redisstore/... ./internal/testkit/ | grep -v 'no test files')
}

case ${1:-} in
  list) cut -d' ' -f1,2 <<<"$table" ;;
  get) get "${2:?engines.sh get NAME}" ;;
  test)
    shift
    [ $# -gt 0 ] || set -- $(cut -d' ' -f1 <<<"$table")
    status=0
    for name; do run_tests "$name" || status=1; done
    exit $status
    ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
