#!/usr/bin/env bash
# What tests of the chart need, below build: it installs what is missing and prints five paths, one a line:
# the renderer (Helm's engine, scripts/helm), kubeconform, the sources of Kubernetes and of the Prometheus
# operator (for their schemas), and the folder where the schemas lie or are to be written.
#
#   scripts/kubernetes.sh         as said
#   scripts/kubernetes.sh helm    the whole of helm, which takes minutes to compile; prints its path
set -euo pipefail

HELM=v3.22.0 # also in scripts/helm/go.mod
KUBECONFORM=v0.8.0
KUBERNETES=v1.34.2
OPERATOR=v0.85.0

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools="$root/build/tools"
mkdir -p "$tools"

install() { # PACKAGE VERSION: build/tools/NAME-VERSION
  local name
  name=$(basename "$1")
  if [ ! -x "$tools/$name-$2" ]; then
    echo "kubernetes.sh: installing $name $2 into build/tools (once)" >&2
    mkdir -p "$tools/.$name"
    GOBIN="$tools/.$name" GOFLAGS="-mod=mod ${GOFLAGS:--trimpath}" go install "$1@$2" >&2
    mv "$tools/.$name/$name" "$tools/$name-$2"
    rmdir "$tools/.$name"
  fi
  echo "$tools/$name-$2"
}

source_of() { # MODULE VERSION: where it lies
  go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

(
  if command -v flock >/dev/null; then flock 9; fi # several test packages may ask at once
  cd "$tools"
  if [ "${1:-}" = helm ]; then
    install helm.sh/helm/v3/cmd/helm "$HELM"
    exit
  fi
  (cd "$root/scripts/helm" && GOGC=400 go build -o "$tools/helm-engine-$HELM" . >&2) # Go knows whether there is anything to do
  echo "$tools/helm-engine-$HELM"
  install github.com/yannh/kubeconform/cmd/kubeconform "$KUBECONFORM"
  source_of k8s.io/kubernetes "$KUBERNETES"
  source_of github.com/prometheus-operator/prometheus-operator "$OPERATOR"
  echo "$root/build/kubernetes/$KUBERNETES-$OPERATOR"
) 9>"$tools/kubernetes.lock"
