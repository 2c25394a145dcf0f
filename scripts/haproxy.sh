#!/usr/bin/env bash
# Installs haproxy, which the drills balance calls with, where there is none: through apt or brew.
set -euo pipefail

fail() { echo "haproxy.sh: error: $*" >&2; exit 1; }

command -v haproxy >/dev/null 2>&1 && exit
echo "haproxy.sh: installing haproxy" >&2
sudo=""
if command -v brew >/dev/null 2>&1; then
  brew install --quiet haproxy >&2
elif command -v apt-get >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || sudo="sudo"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # Without RUNLEVEL Debian would also start a server of its own.
  $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends haproxy >&2
else
  fail "haproxy is missing, and there is neither apt-get nor brew to install it"
fi
command -v haproxy >/dev/null 2>&1 || fail "haproxy is still missing after its installation"
