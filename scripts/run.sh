#!/usr/bin/env bash
# A service on the embedded store at $LISTEN with the sample segments, and a first campaign, decided
# through the API. Serves until Ctrl-C. Everything it writes is below build/run, which it empties first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LISTEN=${LISTEN:-127.0.0.1:8080}
dir=build/run
url=http://$LISTEN
fail() { echo "run.sh: error: $*" >&2; exit 1; }

# Nothing is deleted from under a service that is up.
[[ $LISTEN =~ ^(\[[0-9a-fA-F:]+\]|[^:]+):[0-9]+$ ]] || fail "LISTEN must be host:port, got $LISTEN"
running=$(cat "$dir/pid" 2>/dev/null || true)
[ -z "$running" ] || ! kill -0 "$running" 2>/dev/null || fail "$dir is in use by another run, process $running"
! (host=${LISTEN%:*} && exec 3<>"/dev/tcp/${host//[][]/}/${LISTEN##*:}") 2>/dev/null || fail "LISTEN: something listens on $LISTEN already"
rm -rf "$dir"
mkdir -p "$dir"
echo $$ >"$dir/pid"

say() { printf '\n== %s\n' "$*"; }

say "publish the sample segments and sets into $dir/segments"
build/bin/segmentbuild build --to "$dir/segments" \
  --segment new=testdata/segments/new.csv --segment active=testdata/segments/active.txt \
  --segment lapsed=testdata/segments/lapsed.txt --segment vip=testdata/segments/vip.csv \
  --set opted-out=testdata/sets/opted-out.txt --only-grows opted-out \
  --set-table country/=testdata/sets/countries.csv --set-table tz/=testdata/sets/timezones.csv

say "serve on $url (log: $dir/capper.log)"
sed "s|^  listen: 127.0.0.1:8080 |  listen: \"$LISTEN\" |" testdata/capper.yaml >"$dir/capper.yaml"
build/bin/capper check-config "$dir/capper.yaml"
build/bin/capper serve --config "$dir/capper.yaml" 2>"$dir/capper.log" &
pid=$!
stop() { kill "$pid" 2>/dev/null && wait "$pid" || true; }
trap stop EXIT
trap 'echo; exit 0' INT TERM

for _ in $(seq 200); do
  kill -0 "$pid" 2>/dev/null || { cat "$dir/capper.log" >&2; exit 1; }
  build/bin/capper status --url "$url" >"$dir/status" 2>/dev/null && break
  sleep 0.05
done
cat "$dir/status"

for campaign in welcome reminder; do
  say "campaign $campaign: capper filter --message-id $campaign --channel push testdata/audience.txt"
  build/bin/capper filter --url "$url" --message-id "$campaign" --channel push testdata/audience.txt \
    --allowed "$dir/$campaign.txt" --denied-dir "$dir/$campaign-denied"
done

say "why was user 42 capped, and user 13 not sent to at all?"
build/bin/capper explain 42 --url "$url"
build/bin/capper explain 13 --url "$url"

say "an audience by expression: capper filter --audience 'engaged - country/us' --message-id spring --channel email"
build/bin/capper filter --url "$url" --message-id spring --channel email --audience 'engaged - country/us' --allowed "$dir/spring.txt"

say "the console, with the campaigns above: $url/console"

say "serving on $url until Ctrl-C; try:"
cat <<TRY
curl -s $url/v1/filter -H 'Content-Type: application/json' -d '{"message_id": "mine", "channel": "push", "user_ids": [7, 42, 99]}'
TRY
wait "$pid"
