#!/usr/bin/env bash
# Builds the container image from what is checked out, with buildah, podman or docker, whichever is there first; where
# none is, buildah is installed through apt. The same commit gives the same layers, whatever the directory.
#
#   scripts/image.sh [NAME]     NAME is localhost/capper:VERSION by default, and localhost/capper:latest beside it, which compose
#                               takes; build/image is what is in it, beside it the SBOM
#
# IMAGE_TOOL names another tool, GOARCH another architecture.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022

fail() { echo "image.sh: error: $*" >&2; exit 1; }

tool=${IMAGE_TOOL:-$(command -v buildah || command -v podman || command -v docker || true)}
if ! command -v "${tool:-buildah}" >/dev/null; then
  [ "${tool:-buildah}" = buildah ] || fail "there is no $tool"
  command -v apt-get >/dev/null || fail "there is no ${tool:-buildah, podman or docker}, and no apt-get to install one"
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "image.sh: installing buildah" >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah ca-certificates >&2
  tool=buildah
fi

version=$(scripts/version.sh version) commit=$(scripts/version.sh commit) date=$(scripts/version.sh date) epoch=$(scripts/version.sh epoch)
name=${1:-localhost/capper:${version//+/-}}
tags=(-t "$name")
[ $# -gt 0 ] || tags+=(-t localhost/capper:latest)
root=build/image
rm -rf "$root"
mkdir -p "$root/usr/bin" "$root/usr/share/doc/capper" "$root/etc/ssl/certs" "$root/etc/capper" "$root/var/lib/capper"

CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags "-s -w $(scripts/version.sh ldflags)" -o "$root/usr/bin/" ./cmd/capper ./cmd/segmentbuild
for certificates in ${CA_CERTIFICATES:-} /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  if [ -s "$certificates" ]; then break; fi
done
[ -s "$certificates" ] || fail "no bundle of root certificates found: install ca-certificates, or name one in CA_CERTIFICATES"
cp "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"
echo 'capper:x:65532:65532:capper:/var/lib/capper:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'capper:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cp LICENSE "$root/usr/share/doc/capper/"
go run ./scripts/sbom -version "$version" -date "$date" "$root/usr/bin/capper" "$root/usr/bin/segmentbuild" >"$root/usr/share/doc/capper/sbom.cdx.json"
chmod -R u=rwX,go=rX "$root"
chmod 0700 "$root/var/lib/capper"
cp "$root/usr/share/doc/capper/sbom.cdx.json" build/image.cdx.json

labels=(
  --label "org.opencontainers.image.title=capper" --label "org.opencontainers.image.description=Frequency capping: decides, before a send, who may still receive a message."
  --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$commit"
  --label "org.opencontainers.image.created=$date" --label "org.opencontainers.image.licenses=Apache-2.0"
)
case ${tool##*/} in
  buildah) options=(bud --isolation chroot --format docker --timestamp "$epoch" --layers=false --identity-label=false) ;; # the OCI format has no health check
  podman) options=(build --format docker --timestamp "$epoch" --layers=false) ;;
  *) options=(build); export SOURCE_DATE_EPOCH=$epoch ;;
esac
architecture=$(go env GOARCH)
"$tool" "${options[@]}" ${GOARCH:+--platform "linux/$architecture"} "${labels[@]}" -f deploy/image/Containerfile "${tags[@]}" "$root" >&2
echo "$name"
