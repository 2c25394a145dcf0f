#!/usr/bin/env bash
# The chart by the whole of helm: lint, strictly, template, and kubeconform, under each file of values in its
# folder ci. Helm takes minutes to compile, once; what CI runs is go test ./internal/deploytest/charts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test ./internal/deploytest/charts -run 'TestSchemas$' # writes the schemas
helm=$(scripts/kubernetes.sh helm)
{ read -r engine; read -r kubeconform; read -r _; read -r _; read -r schemas; } < <(scripts/kubernetes.sh)
version=$(basename "$schemas") # of Kubernetes and the operator; helm that Go installs takes 1.20 for the cluster's
version=${version%%-*}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
lines() { grep -v -e '^ *$' -e '^---' -e '^# Source' "$1" | sort; } # helm orders objects by kind, the engine files by name
for values in deploy/helm/capper/ci/*-values.yaml; do
  "$helm" lint deploy/helm/capper --strict --quiet --kube-version "$version" --values "$values"
  "$helm" template prod deploy/helm/capper --namespace messaging --kube-version "$version" --values "$values" >"$dir/helm.yaml"
  "$kubeconform" -strict -summary -schema-location "$schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json" "$dir/helm.yaml"
  "$engine" deploy/helm/capper prod messaging "$values" >"$dir/engine.yaml"
  diff <(lines "$dir/helm.yaml") <(lines "$dir/engine.yaml") # what CI looks at is what helm installs
done
