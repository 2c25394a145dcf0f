#!/usr/bin/env bash
# Tries the Debian package.
#
#   scripts/deb-test.sh check    what it holds, its units under systemd-analyze, that two builds are the same bytes
#   scripts/deb-test.sh boot     the same, then a Debian is made with debootstrap below build/deb/root and booted by
#                                systemd-nspawn: installed, started, reloaded, upgraded, installed again, purged; needs root
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "deb-test: error: $*" >&2; exit 1; }
ok() { echo "deb-test: $*"; }
need() { # need PROGRAM PACKAGE
  ! command -v "$1" >/dev/null || return 0
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >&2
}

check() {
  need dpkg-deb dpkg
  need systemd-analyze systemd
  package=$(scripts/deb.sh)
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  dpkg-deb --extract "$package" "$dir/root"
  dpkg-deb --control "$package" "$dir/control"
  [ "$(cat "$dir/control/conffiles")" = $'/etc/capper/capper.yaml\n/etc/default/capper' ] || [ "$(sort "$dir/control/conffiles")" = $'/etc/capper/capper.yaml\n/etc/default/capper' ] || fail "conffiles are $(cat "$dir/control/conffiles")"
  for file in usr/bin/capper usr/bin/segmentbuild lib/systemd/system/capper.service usr/share/doc/capper/copyright usr/share/doc/capper/LICENSE usr/share/doc/capper/sbom.cdx.json usr/share/doc/capper/docs/operating.md \
    usr/share/doc/capper/deploy/{redis.acl,redis-backup.sh,haproxy/haproxy.cfg,prometheus/capper.rules.yaml,grafana/capper-service.json,helm/capper/rules/capper.rules.yaml}; do
    [ -s "$dir/root/$file" ] || fail "the package lacks $file"
  done
  [ "$(stat -c %a "$dir/root/etc/default/capper")" = 640 ] || fail "/etc/default/capper is readable by others"
  [ -x "$dir/root/usr/share/capper/deploy/redis-backup.sh" ] || fail "redis-backup.sh cannot be run"
  links "$dir/root/usr/share/doc/capper"
  local said
  said=$("$dir/root/usr/bin/capper" version)
  [[ $said == "capper $(scripts/version.sh version) "* ]] || fail "the program says $said"
  "$dir/root/usr/bin/capper" check-config "$dir/root/etc/capper/capper.yaml" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
  for script in postinst prerm postrm; do sh -n "$dir/control/$script" || fail "$script"; done
  ok "$package: contents, modes, conffiles, configuration"

  local unit
  for unit in capper.service capper-{segments-build,audit-verify}.{service,timer}; do
    sed -E "s,/usr/bin/(capper|segmentbuild),$dir/root&," "$dir/root/lib/systemd/system/$unit" >"$dir/$unit"
  done
  said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --recursive-errors=no "$dir"/capper*.service "$dir"/capper*.timer 2>&1) || fail "systemd-analyze verify: $said"
  for unit in capper capper-segments-build capper-audit-verify; do
    said=$(systemd-analyze security --offline=true --threshold=20 "$dir/$unit.service" | tail -n 1) || fail "systemd-analyze security: $said"
    ok "systemd-analyze: ${said#→ }"
  done

  mkdir "$dir/elsewhere"
  git ls-files -z | xargs -0 cp --parents -t "$dir/elsewhere"
  local again
  again=$(version=$(scripts/version.sh version) commit=$(scripts/version.sh commit) date=$(scripts/version.sh date)
    cd "$dir/elsewhere" && CAPPER_VERSION=$version CAPPER_COMMIT=$commit CAPPER_DATE=$date NFPM=$OLDPWD/build/tools/$(cd "$OLDPWD/build/tools" && ls -d nfpm-v* | tail -n 1) scripts/deb.sh)
  cmp "$package" "$dir/elsewhere/$again" || fail "two builds differ"
  ok "two builds from two directories are the same $(stat -c %s "$package") bytes"
}

links() { # links DIR: every relative link of a page there leads to what is there
  local page link broken="" all=0
  while IFS=: read -r page link; do
    all=$((all + 1))
    [ -e "$(dirname "$page")/$link" ] || broken+=" ${page#"$1"/} -> $link"
  done < <(cd "$1" && grep -rRoP --include='*.md' '\]\((?!http|#)\K[^)#]+' . | sed "s,^,$1/,")
  [ -z "$broken" ] || fail "links that lead nowhere:$broken"
  [ "$all" -gt 100 ] || fail "$all links were found"
  ok "$all links between the pages lead to what is there"
}

root=$PWD/build/deb/root
inside() { nsenter --target "$leader" --mount --uts --ipc --net --pid --cgroup --root --wd=/ -- /usr/bin/env -i --chdir=/ PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
settled() { # settled MESSAGE COMMAND…: until it succeeds
  local message=$1
  shift
  for _ in $(seq 300); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  inside journalctl -u capper -n 30 --no-pager >&2 || true
  fail "$message"
}

boot() {
  need debootstrap debootstrap
  need systemd-nspawn systemd-container
  if [ ! -e "$root.made" ]; then
    rm -rf "$root"
    local mirror
    mirror=$(sed -nE 's/^URIs: *(\S+).*/\1/p; s/^deb +(\[[^]]*\] +)?(\S+).*/\2/p' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | head -n 1 || true) # either of them may be missing
    debootstrap --variant=minbase --include=systemd,dbus,adduser,ca-certificates,curl bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || fail "debootstrap: $(tail -n 3 "$root.log")"
    touch "$root.made"
  fi
  machine=$(mktemp -d)
  cp -a --reflink=auto "$root" "$machine/root"
  systemd-nspawn --quiet --directory "$machine/root" --boot --register=no --keep-unit --private-network --machine capper-deb-test >"$machine/console" 2>&1 &
  nspawn=$!
  trap 'halt' EXIT
  settled "the machine does not boot: $(tail -n 3 "$machine/console")" booted
  leader=$(pgrep -P "$nspawn" | head -n 1)
  settled "systemd is not up" inside systemctl is-active multi-user.target
  ok "a Debian $(cat "$machine/root/etc/debian_version") is up, with systemd as its process 1"
}
booted() { [ "$(cat "/proc/$(pgrep -P "$nspawn" | head -n 1)/comm")" = systemd ]; }
halt() {
  kill -TERM "$nspawn" 2>/dev/null || true
  for _ in $(seq 100); do kill -0 "$nspawn" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$nspawn" 2>/dev/null || true
  rm -rf "$machine" "$dir"
}

filter() { # filter MESSAGE USER: the answer
  inside curl -s http://127.0.0.1:8080/v1/filter -H 'Content-Type: application/json' -d "{\"message_id\": \"$1\", \"channel\": \"push\", \"user_ids\": [$2]}"
}
main_pid() { inside systemctl show -P MainPID capper; }

installed() {
  cp "$package" "$machine/root/root/one.deb"
  inside dpkg -i /root/one.deb >"$machine/dpkg" 2>&1 || fail "dpkg -i: $(tail -n 5 "$machine/dpkg")"
  grep -q 'systemctl start capper' "$machine/dpkg" || fail "the installation does not tell what is next"
  [ "$(inside systemctl is-enabled capper)" = enabled ] || fail "it is not enabled"
  [ "$(inside stat -c '%U:%G %a' /etc/default/capper /var/lib/capper | xargs)" = "root:capper 640 capper:capper 750" ] || fail "owners: $(inside stat -c '%U:%G %a' /etc/default/capper /var/lib/capper)"
  [ "$(inside stat -c '%U:%G %a' /etc/capper/capper.yaml)" = "root:capper 640" ] || fail "owner of the configuration: $(inside stat -c '%U:%G %a' /etc/capper/capper.yaml)"
  inside test -s /usr/share/doc/capper/deploy/redis.acl -a -s /usr/share/capper/docs/operating.md || fail "the links to deploy and docs lead nowhere"
  ok "installed, enabled, not started: $(tail -n 1 "$machine/dpkg")"
  inside sh -c 'seq 1 10 >/tmp/new.txt; chmod 644 /tmp/new.txt'
  inside setpriv --reuid capper --regid capper --clear-groups segmentbuild build --to /var/lib/capper/segments --segment new=/tmp/new.txt >"$machine/build" 2>&1 || fail "$(cat "$machine/build")"
  inside systemctl start capper || fail "systemctl start: $(inside journalctl -u capper -n 20 --no-pager)"
  [ "$(inside curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/readyz)" = 200 ] || fail "systemctl start returns before it is ready"
  [ "$(inside stat -c %U "/proc/$(main_pid)")" = capper ] || fail "it does not run as capper"
  [[ $(filter first 7) == *'"allowed":[7]'* ]] || fail "filter"
  [[ $(filter second 7) == *'"allowed":[]'* ]] || fail "a second send is allowed"
  inside env CAPPER_CONFIG=/etc/capper/capper.yaml capper healthcheck >/dev/null || fail "healthcheck"
  ok "systemctl start: ready when it returns, runs as capper, decides; the log is in the journal: $(inside journalctl -u capper -n 1 -o cat --no-pager)"
}

reloaded() {
  local before
  before=$(main_pid)
  inside sed -i 's/default: {daily: 1, weekly: 3}/default: {daily: 2, weekly: 3}/' /etc/capper/capper.yaml
  inside systemctl reload capper || fail "systemctl reload: $(inside journalctl -u capper -n 20 --no-pager)"
  settled "no second send is allowed after the reload" sh_allowed third 7
  settled "the log says nothing of the reload" sh_logged 'configuration in force'
  inside systemctl reload capper
  settled "the log says nothing of a reload without a change" sh_logged 'configuration unchanged'
  inside cp /etc/capper/capper.yaml /tmp/good.yaml
  inside sh -c 'echo "limitz: 3" >>/etc/capper/capper.yaml'
  if inside systemctl reload capper 2>/dev/null; then fail "systemctl reload accepts a faulty file"; fi
  settled "the log says nothing of the fault" sh_logged 'limitz: is not a known key'
  [ "$(main_pid)" = "$before" ] || fail "a faulty file restarts the service"
  [[ $(filter third 7) == *'"allowed":[7]'* ]] || fail "a faulty file changes what is in force"
  inside env CAPPER_CONFIG=/etc/capper/capper.yaml capper healthcheck >/dev/null || fail "the health check fails for a faulty file"
  inside cp /tmp/good.yaml /etc/capper/capper.yaml
  inside systemctl reload capper || fail "systemctl reload: $(inside journalctl -u capper -n 20 --no-pager)"
  settled "it stays in 'reloading'" inside systemctl is-active capper
  ok "systemctl reload: a change is in force, a faulty file fails it and changes nothing"
}
sh_allowed() { [[ $(filter "$1" "$2") == *"\"allowed\":[$2]"* ]]; }
sh_logged() { inside journalctl -u capper -o cat --no-pager | grep "$1" >/dev/null; } # grep -q ends before journalctl, which then fails

upgraded() {
  local before newer
  before=$(main_pid)
  newer=$(CAPPER_VERSION=v9.9.9 scripts/deb.sh "$machine")
  cp "$newer" "$machine/root/root/two.deb"
  inside sh -c 'rm /etc/default/capper; chown capper:adm /etc/capper/capper.yaml; chmod 0440 /etc/capper/capper.yaml'
  inside dpkg -i /root/two.deb >"$machine/dpkg" 2>&1 || fail "upgrade: $(tail -n 5 "$machine/dpkg")"
  settled "it is not restarted" inside systemctl is-active capper
  [ "$(main_pid)" != "$before" ] || fail "the upgrade does not restart it"
  inside curl -s http://127.0.0.1:8080/metrics | grep 'capper_build_info.*version="v9.9.9"' >/dev/null || fail "another version runs"
  inside grep -q 'daily: 2' /etc/capper/capper.yaml || fail "the administrator's configuration is gone"
  inside test ! -e /etc/default/capper || fail "a file that the administrator deleted is back"
  [ "$(inside stat -c '%U:%G %a' /etc/capper/capper.yaml)" = "capper:adm 440" ] || fail "the administrator's owner and mode are gone: $(inside stat -c '%U:%G %a' /etc/capper/capper.yaml)"
  [[ $(filter fourth 7) == *'"allowed":[]'* ]] || fail "recorded sends are gone"
  ok "upgraded to v9.9.9: restarted, the administrator's configuration, its owner and mode are kept, a deleted file stays away, what was recorded still denies"
  inside dpkg -i --force-downgrade /root/one.deb >"$machine/dpkg" 2>&1 || fail "roll-back: $(tail -n 5 "$machine/dpkg")"
  settled "it is not restarted" inside systemctl is-active capper
  [[ $(filter fourth 7) == *'"allowed":[]'* ]] || fail "recorded sends are gone"
  ok "and back"
}

stopped() {
  inside systemctl stop capper
  [ "$(inside systemctl show -P Result capper)" = success ] || fail "systemctl stop ends with $(inside systemctl show -P Result capper)"
  inside sh -c 'chown -R root:root /var/lib/capper/log.db; chmod -R go= /var/lib/capper/log.db'
  if inside systemctl start capper 2>/dev/null; then fail "it starts on a store that it cannot read"; fi
  settled "the log does not tell why" sh_logged 'permission denied'
  inside sh -c 'systemctl stop capper; systemctl reset-failed capper; chown -R capper:capper /var/lib/capper/log.db'
  inside systemctl start capper || fail "systemctl start"
  ok "stopped with success; a store that it may not read is refused, with the reason in the log"
}

reinstalled() {
  inside systemctl enable capper-segments-build.timer 2>/dev/null
  again
  inside test ! -L /etc/systemd/system/capper.service || fail "the removal's mask stays"
  [ "$(inside systemctl is-enabled capper capper-segments-build.timer | xargs)" = "enabled enabled" ] || fail "after a removal and an installation: $(inside systemctl is-enabled capper capper-segments-build.timer | xargs)"
  inside systemctl start capper || fail "systemctl start: $(inside journalctl -u capper -n 20 --no-pager)"
  [[ $(filter fourth 7) == *'"allowed":[]'* ]] || fail "recorded sends are gone"
  inside systemctl disable capper 2>/dev/null
  again
  [ "$(inside systemctl is-enabled capper || true)" = disabled ] || fail "what an administrator disabled is $(inside systemctl is-enabled capper || true)"
  inside systemctl enable --now capper 2>/dev/null || fail "systemctl enable --now"
  ok "removed and installed again: enabled as before, or disabled as before"
}
again() {
  inside dpkg -r capper >"$machine/dpkg" 2>&1 || fail "dpkg -r: $(tail -n 5 "$machine/dpkg")"
  inside dpkg -i /root/one.deb >"$machine/dpkg" 2>&1 || fail "dpkg -i: $(tail -n 5 "$machine/dpkg")"
}

removed() {
  inside dpkg -r capper >"$machine/dpkg" 2>&1 || fail "dpkg -r: $(tail -n 5 "$machine/dpkg")"
  if inside systemctl is-active capper >/dev/null; then fail "it still runs after its removal"; fi
  inside test -e /etc/capper/capper.yaml -a -e /var/lib/capper/log.db || fail "the removal takes configuration or data"
  inside test ! -e /usr/bin/capper || fail "the removal leaves the program"
  inside dpkg -P capper >"$machine/dpkg" 2>&1 || fail "dpkg -P: $(tail -n 5 "$machine/dpkg")"
  inside test ! -e /etc/capper/capper.yaml -a ! -e /etc/default/capper -a ! -e /var/cache/capper || fail "the purge leaves the configuration"
  local left
  left=$(inside find /etc/systemd /var/lib/systemd -name 'capper*' -not -path '*/timers/*')
  [ -z "$left" ] || fail "the purge leaves $left"
  inside test -e /var/lib/capper/log.db || fail "the purge takes the recorded sends"
  grep -q 'holds recorded sends and stays' "$machine/dpkg" || fail "the purge does not say what stays"
  ok "removed: configuration and data stay; purged: $(grep 'recorded sends' "$machine/dpkg")"
  inside dpkg-statoverride --add root adm 0600 /etc/default/capper
  inside dpkg -i /root/one.deb >"$machine/dpkg" 2>&1 || fail "dpkg -i after the purge: $(tail -n 5 "$machine/dpkg")"
  [ "$(inside stat -c '%U:%G %a' /etc/default/capper /etc/capper/capper.yaml | xargs)" = "root:adm 600 root:capper 640" ] || fail "owners after the purge: $(inside stat -c '%U:%G %a' /etc/default/capper /etc/capper/capper.yaml | xargs)"
  [ "$(inside systemctl is-enabled capper)" = enabled ] || fail "after the purge it is not enabled"
  ok "installed after the purge: enabled; the owner that dpkg-statoverride names stays"
}

case ${1:-} in
  check) check ;;
  boot)
    [ "$(id -u)" = 0 ] || fail "needs root: sudo make deb-test"
    check
    boot
    for part in installed reloaded upgraded stopped reinstalled removed; do $part; done ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
