#!/usr/bin/env bash
# Builds the image and tries what its document promises. Needs root, for a root file system that is really read-only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "image-test: error: $*" >&2; [ -z "${dir:-}" ] || tail -n 20 "$dir"/*.log >&2 2>/dev/null || true; exit 1; }
ok() { echo "image-test: $*"; }
[ "$(id -u)" = 0 ] || fail "needs root: sudo make image-test"

name=localhost/capper:image-test
export IMAGE_TOOL=buildah # which image.sh installs where it is not
scripts/image.sh "$name" >/dev/null
dir=$(mktemp -d) pid="" container=""
stop() {
  [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
  [ -z "$container" ] || buildah rm "$container" >/dev/null || true
  rm -rf "$dir"
}
trap stop EXIT
container=$(buildah from "$name")
layers() { buildah inspect --format '{{.FromImage}} {{range .OCIv1.RootFS.DiffIDs}}{{.}} {{end}}' --type image "$1" | cut -d' ' -f2-; }

# What the image says of itself.
version=$(scripts/version.sh version)
config=$(buildah inspect --type image --format '{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Cmd}} {{.Docker.Config.Healthcheck.Test}} {{index .Docker.Config.Labels "org.opencontainers.image.version"}} {{index .Docker.Config.Labels "org.opencontainers.image.licenses"}} {{len .Docker.Config.Volumes}}' "$name")
[ "$config" = "65532:65532 [/usr/bin/capper] [serve] [CMD /usr/bin/capper healthcheck] $version Apache-2.0 1" ] || fail "the image's configuration is $config"
ok "user, entrypoint, health check, labels and volume are $config"
for program in capper segmentbuild; do
  said=$(buildah run --isolation chroot "$container" -- "/usr/bin/$program" version)
  [[ $said == "$program $version (commit $(scripts/version.sh commit), "* ]] || fail "$program says $said"
  ok "buildah run: $said"
done

# The container's root file system read-only, its volume writable, as the image's user: what an engine does.
root=$(buildah mount "$container")
mkdir -p "$dir/volume" "$dir/etc"
install -d -o 65532 -g 65532 -m 0700 "$dir/volume"
inside() { # inside rw|ro PROGRAM ARGUMENT…: of the volume
  local mode=$1
  shift
  exec unshare --mount --pid --fork --kill-child=SIGTERM sh -c '
    set -e
    mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"
    mount --bind "$2" "$1/etc/capper"; mount -o remount,bind,ro "$1/etc/capper"
    mount --bind "$3" "$1/var/lib/capper"; [ "$4" = rw ] || mount -o remount,bind,ro "$1/var/lib/capper"
    root=$1; shift 4
    exec chroot --userspec=65532:65532 "$root" "$@"' sh "$root" "$dir/etc" "$dir/volume" "$mode" "$@"
}
run() { (export PATH=/usr/bin:/bin:/usr/sbin:/sbin CAPPER_CONFIG=/etc/capper/capper.yaml; inside "$@"); }

# Without a configuration it says what is missing.
if said=$(run rw /usr/bin/capper serve 2>&1); then fail "it starts without a configuration"; fi
[[ $said == *"/etc/capper/capper.yaml: no such file"*CAPPER_CONFIG* ]] || fail "without a configuration it says: $said"
ok "without a configuration: $said"

secret=crm-1.$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
hash=$(printf %s "$secret" | sha256sum | cut -d' ' -f1)
port=$((20000 + RANDOM % 10000))
sed -e "s/0000000000000000000000000000000000000000000000000000000000000000/$hash/" -e "s/0.0.0.0:8080 /0.0.0.0:$port /" deploy/image/capper.yaml >"$dir/etc/capper.yaml"
cat >>"$dir/etc/capper.yaml" <<'YAML'
  segments: {new: [{name: day, max: 1, calendar: day, timezone: Asia/Singapore}]}
YAML
[[ $(run rw /usr/bin/capper check-config /etc/capper/capper.yaml) == *"day 1 per day in Asia/Singapore"* ]] || fail "check-config"
ok "check-config knows the zone Asia/Singapore"
mkdir "$dir/volume/input"
cp testdata/segments/new.csv "$dir/volume/input/"
chown -R 65532:65532 "$dir/volume"
run rw /usr/bin/segmentbuild build --to /var/lib/capper/segments --segment new=/var/lib/capper/input/new.csv 2>"$dir/build.log" >&2 || fail "segmentbuild"

serve() { # serve rw|ro, in the background; $pid is the service
  (export PATH=/usr/bin:/bin:/usr/sbin:/sbin CAPPER_CONFIG=/etc/capper/capper.yaml; inside "$1" /usr/bin/capper serve) >"$dir/serve.log" 2>&1 &
  job=$!
}
serve rw
answers() { curl -s -o "$dir/answer" -w '%{http_code}' "http://127.0.0.1:$port$1" "${@:2}"; }
for _ in $(seq 300); do
  [ "$(answers /readyz || true)" != 200 ] || break
  kill -0 "$job" 2>/dev/null || fail "it does not start"
  sleep 0.1
done
[ "$(answers /readyz)" = 200 ] || fail "it is not ready: $(cat "$dir/answer")"
pid=$(pgrep -P "$job" | head -n 1)
[ "$(awk '/^Uid:/ {print $2 $3}' "/proc/$pid/status")" = 6553265532 ] || fail "it does not run as 65532"
[ "$(awk '/^CapEff:/ {print $2}' "/proc/$pid/status")" = 0000000000000000 ] || fail "it has capabilities"
ok "ready, as user 65532 without capabilities"
[ "$(answers /v1/filter -H "Authorization: Bearer $secret" -H 'Content-Type: application/json' -d '{"message_id": "promo", "channel": "push", "user_ids": [7]}')" = 200 ] || fail "filter: $(cat "$dir/answer")"
grep -q '"allowed":\[7\]' "$dir/answer" || fail "filter: $(cat "$dir/answer")"
ok "a filter call: $(cat "$dir/answer")"
[ "$(answers /v1/filter -H 'Content-Type: application/json' -d '{"message_id": "promo", "channel": "push", "user_ids": [7]}')" = 401 ] || fail "a call without a key is answered"
said=$(run rw /usr/bin/capper healthcheck) || fail "the health check says $said"
ok "health check: $said"
if run rw /usr/bin/segmentbuild build --to /srv/segments --segment new=/var/lib/capper/input/new.csv >"$dir/write.log" 2>&1; then fail "it writes outside of the volume"; fi
grep -q 'read-only file system' "$dir/write.log" || fail "writing outside of the volume ends otherwise"
ok "outside of the volume: $(tail -n 1 "$dir/write.log")"
openssl verify -CAfile "$root/etc/ssl/certs/ca-certificates.crt" "$root/etc/ssl/certs/ca-certificates.crt" >/dev/null || fail "no root certificates"
[ "$(grep -c 'BEGIN CERTIFICATE' "$root/etc/ssl/certs/ca-certificates.crt")" -gt 100 ] || fail "few root certificates"
for program in capper segmentbuild; do
  go version -m "$root/usr/bin/$program" | awk '$1 == "dep" && $2 !~ /\/client$/ {print $2 " " $3}'
done | sort -u >"$dir/modules"
[ -s "$dir/modules" ] || fail "go version -m lists no modules"
while read -r module release; do
  grep -qF "\"pkg:golang/$module@${release//+/%2B}\"" "$root/usr/share/doc/capper/sbom.cdx.json" || fail "the bill of materials lacks $module $release"
done <"$dir/modules"
ok "the bill of materials lists all $(wc -l <"$dir/modules") modules"

kill -TERM "$pid"
status=0
wait "$job" || status=$?
pid=""
[ "$status" = 0 ] || fail "SIGTERM ends it with $status"
if said=$(run rw /usr/bin/capper healthcheck 2>&1); then fail "the health check says well of what is stopped"; fi
ok "SIGTERM ends it with 0, then the health check says: $said"

# What must be refused, with a reason: a volume that cannot be written, a port of the system's.
for mode in ro foreign; do
  [ "$mode" = ro ] || chown -R 0:0 "$dir/volume"
  if said=$(run "${mode/foreign/rw}" /usr/bin/capper serve 2>&1); then fail "it starts on a volume that cannot be written"; fi
  [[ $said == *"error:"*"/var/lib/capper/"*"read-only file system"* || $said == *"error:"*"/var/lib/capper/"*"permission denied"* ]] || fail "on such a volume it says: $said"
  ok "on a volume that cannot be written: ${said##*capper: error: }"
done
chown -R 65532:65532 "$dir/volume"
if [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 81 ]; then
  sed -i "s/0.0.0.0:$port /0.0.0.0:81 /" "$dir/etc/capper.yaml"
  if said=$(run rw /usr/bin/capper serve 2>&1); then fail "it listens on port 81"; fi
  [[ $said == *"listen on 0.0.0.0:81"*"permission denied"*"hint:"* ]] || fail "on port 81 it says: $said"
  ok "on port 81: ${said##*capper: error: }"
fi

# The same commit gives the same layers from another directory.
first=$(layers "$name")
mkdir "$dir/elsewhere"
git ls-files -z | xargs -0 cp --parents -t "$dir/elsewhere"
(cd "$dir/elsewhere" && CAPPER_VERSION=$version CAPPER_COMMIT=$(cd "$OLDPWD" && scripts/version.sh commit) CAPPER_DATE=$(cd "$OLDPWD" && scripts/version.sh date) scripts/image.sh "$name-again" >/dev/null)
[ "$first" = "$(layers "$name-again")" ] || fail "two builds differ: $first and $(layers "$name-again")"
ok "two builds from two directories have the same layers: $first"
