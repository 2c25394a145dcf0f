#!/usr/bin/env bash
# Installs the Chromium that tests of the console use, where there is none: through apt or brew.
set -euo pipefail

fail() { echo "browser.sh: error: $*" >&2; exit 1; }

# The names are those that internal/console/browsertest looks for.
found() {
  for name in chromium chromium-browser google-chrome /Applications/Chromium.app/Contents/MacOS/Chromium; do
    if command -v "$name" >/dev/null 2>&1; then return; fi
  done
  return 1
}

found && exit
echo "browser.sh: installing chromium" >&2
sudo=""
if command -v brew >/dev/null 2>&1; then
  brew install --quiet --cask chromium >&2
elif command -v apt-get >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || sudo="sudo"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # The fonts too: a page without any has no text to look at.
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
else
  fail "chromium is missing, and there is neither apt-get nor brew to install it"
fi
found || fail "chromium is still missing after its installation"
