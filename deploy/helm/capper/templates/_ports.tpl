{{/* Ports that a network policy opens towards others: those that the configuration names, and further ones. */}}
{{- define "capper.tcp" -}}
ports: [{{ range $i, $port := splitList " " . | uniq }}{{ if $i }}, {{ end }}{port: {{ $port }}, protocol: TCP}{{ end }}]
{{- end -}}

{{/* Of a URL; a proxy's may have no scheme. */}}
{{- define "capper.portOf" -}}
{{- $host := regexFind "^([a-z0-9]+://)?[^/?#]+" . -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default (ternary "443" "80" (hasPrefix "https://" $host)) -}}
{{- end -}}

{{/* The value of a variable in extraEnv. list ROOT NAME */}}
{{- define "capper.env" -}}
{{- range (index . 0).Values.extraEnv -}}{{- if eq .name (index $ 1) -}}{{- .value | default "" -}}{{- end -}}{{- end -}}
{{- end -}}

{{- define "capper.redisPorts" -}}
{{- $ports := list -}}
{{- range dig "redis" "addrs" list .Values.config.store -}}{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":") -}}{{- end -}}
{{- range .Values.networkPolicy.redisPorts -}}{{- $ports = append $ports (toString .) -}}{{- end -}}
{{- compact $ports | join " " -}}
{{- end -}}

{{/* Of the endpoint, that of AWS unless one is named, and of proxies. */}}
{{- define "capper.s3Ports" -}}
{{- $endpoint := dig "segments" "s3" "endpoint" "" .Values.config | default (include "capper.env" (list . "AWS_ENDPOINT_URL_S3")) | default (include "capper.env" (list . "AWS_ENDPOINT_URL")) | default "https://aws" -}}
{{- $ports := list (include "capper.portOf" $endpoint) -}}
{{- $root := . -}}
{{- range list "HTTPS_PROXY" "https_proxy" "HTTP_PROXY" "http_proxy" -}}
{{- with include "capper.env" (list $root .) -}}{{- $ports = append $ports (include "capper.portOf" .) -}}{{- end -}}
{{- end -}}
{{- with .Values.networkPolicy.s3Port -}}{{- $ports = append $ports (toString .) -}}{{- end -}}
{{- join " " $ports -}}
{{- end -}}

{{/* Of the endpoint; without one in config, which may be kept elsewhere, that of OTLP over HTTP. */}}
{{- define "capper.otlpPorts" -}}
{{- $ports := list -}}
{{- with dig "tracing" "endpoint" "" .Values.config -}}{{- $ports = append $ports (include "capper.portOf" .) -}}{{- end -}}
{{- with .Values.networkPolicy.otlpPort -}}{{- $ports = append $ports (toString .) -}}{{- end -}}
{{- join " " $ports | default "4318" -}}
{{- end -}}
