#!/bin/sh
# Takes over the time zones of the Go toolchain in use, and the name of their release.
set -eu
from=$(go env GOROOT)/lib/time
cp "$from/zoneinfo.zip" zoneinfo.zip
sed -n 's/^DATA=//p' "$from/update.bash" >version.txt
