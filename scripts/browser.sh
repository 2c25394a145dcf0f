#!/usr/bin/env bash
# Installs the browser of the console's tests, where there is none: Chromium's headless shell, or Chromium itself where
# the shell is not packaged. The shell takes less than half of the processor time of Chromium.
set -euo pipefail

fail() { echo "browser.sh: error: $*" >&2; exit 1; }

# The names are those that internal/console/browsertest looks for.
shell=chromium-headless-shell
found() {
  for name in $shell chromium chromium-browser google-chrome /Applications/Chromium.app/Contents/MacOS/Chromium; do
    if command -v "$name" >/dev/null 2>&1; then return; fi
  done
  return 1
}

command -v $shell >/dev/null 2>&1 && exit
# Root needs no password: it installs the shell beside a Chromium, too.
found && { [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; } && exit
echo "browser.sh: installing a browser" >&2
if command -v brew >/dev/null 2>&1; then
  brew install --quiet --cask chromium >&2
elif command -v apt-get >/dev/null 2>&1; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  # install PACKAGE… with the fonts: a page without any has no text to look at.
  install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" fonts-dejavu-core >&2; }
  { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 && install $shell; } || found || install chromium
else
  fail "chromium is missing, and there is neither apt-get nor brew to install it"
fi
found || fail "chromium is still missing after its installation"
