#!/usr/bin/env bash
# Installs Prometheus and promtool, which tests of alerts and dashboards use, where there are none: through apt or brew.
set -euo pipefail

fail() { echo "prometheus.sh: error: $*" >&2; exit 1; }

found() { command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; }

found && exit
echo "prometheus.sh: installing prometheus" >&2
sudo=""
if command -v brew >/dev/null 2>&1; then
  brew install --quiet prometheus >&2
elif command -v apt-get >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || sudo="sudo"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # RUNLEVEL=1: Debian would also start a server of its own.
  $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends prometheus >&2
else
  fail "prometheus is missing, and there is neither apt-get nor brew to install it"
fi
found || fail "prometheus is still missing after its installation"
