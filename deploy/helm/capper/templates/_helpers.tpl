{{- define "capper.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 39 letters, as names of parts get up to 11 behind it, and a CronJob's may have 52. A Service's begins
     with a letter and has no dot. What is cut or changed for that ends with a sum of the whole: no two are alike. */}}
{{- define "capper.fullname" -}}
{{- $whole := printf "%s-%s" .Release.Name (include "capper.name" .) -}}
{{- if .Values.fullnameOverride -}}
{{- $whole = .Values.fullnameOverride -}}
{{- else if contains (include "capper.name" .) .Release.Name -}}
{{- $whole = .Release.Name -}}
{{- end -}}
{{- $name := replace "." "-" $whole -}}
{{- if not (regexMatch "^[a-z]" $name) -}}{{- $name = printf "capper-%s" $name -}}{{- end -}}
{{- if or (ne $name $whole) (gt (len $name) 39) -}}
{{- printf "%s-%s" ($name | trunc 30 | trimSuffix "-") (sha256sum $whole | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{- define "capper.selector" -}}
app.kubernetes.io/name: {{ include "capper.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: service
{{- end -}}

{{- define "capper.labels" -}}
app.kubernetes.io/name: {{ include "capper.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "capper.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "capper.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "capper.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "capper.buildServiceAccount" -}}
{{- $account := .Values.segmentbuild.serviceAccount -}}
{{- $account.name | default (ternary (printf "%s-build" (include "capper.fullname" .)) "default" $account.create) -}}
{{- end -}}

{{/* The StatefulSet keeps what lies on a volume; over Redis without one, pods need no identity. */}}
{{- define "capper.stateful" -}}
{{- if or (eq .Values.config.store.kind "embedded") .Values.persistence.enabled -}}true{{- end -}}
{{- end -}}

{{/* Seconds of a duration such as 90s, 2m or 1m30s. list KEY VALUE */}}
{{- define "capper.seconds" -}}
{{- $key := index . 0 -}}{{- $value := index . 1 | toString -}}
{{- if not (regexMatch "^([0-9]+m)?([0-9]+s)?$" $value | and (ne $value "")) -}}
{{- fail (printf "%s: %q: the chart works out times in whole seconds and minutes, such as 20s or 1m30s" $key $value) -}}
{{- end -}}
{{- $minutes := regexFind "^[0-9]+m" $value | trimSuffix "m" | default "0" | int -}}
{{- $seconds := regexFind "[0-9]+s$" $value | trimSuffix "s" | default "0" | int -}}
{{- add (mul 60 $minutes) $seconds -}}
{{- end -}}

{{/* MiB of a size such as 512MiB or 2GiB, of the configuration or of Kubernetes. list KEY VALUE */}}
{{- define "capper.mib" -}}
{{- $key := index . 0 -}}{{- $value := index . 1 | toString -}}
{{- if not (regexMatch "^[0-9]{1,9}(Mi|Gi|Ti)B?$" $value) -}}
{{- fail (printf "%s: %q: the chart works out sizes in whole MiB or GiB, such as 512MiB" $key $value) -}}
{{- end -}}
{{- mul (get (dict "M" 1 "G" 1024 "T" 1048576) (regexFind "[MGT]" $value)) (regexFind "^[0-9]+" $value | int64) -}}
{{- end -}}

{{- define "capper.memory" -}}
{{- if .Values.memory.limit -}}
{{- include "capper.mib" (list "memory.limit" .Values.memory.limit) -}}
{{- else -}}
{{- include "capper.memoryNeeded" . -}}
{{- end -}}
{{- end -}}

{{/* The formula of docs/operating.md, Memory, in MiB. */}}
{{- define "capper.memoryNeeded" -}}
{{- $server := .Values.config.server -}}
{{- $body := include "capper.mib" (list "config.server.bounds.body_bytes" $server.bounds.body_bytes) | int -}}
{{- $answer := include "capper.mib" (list "config.server.bounds.answer_bytes" $server.bounds.answer_bytes) | int -}}
{{- $users := div (add (mul 64 (int64 $server.max_in_flight_users)) 1048575) 1048576 -}}
{{- $segments := mul (int .Values.memory.generations) (include "capper.mib" (list "memory.segments" .Values.memory.segments) | int) -}}
{{- $cache := 0 -}}
{{- if eq .Values.config.store.kind "embedded" -}}
{{- $embedded := .Values.config.store.embedded | default dict -}}
{{- $cache = add 200 (include "capper.mib" (list "config.store.embedded.cache_size" ($embedded.cache_size | default "512MiB")) | int) -}}
{{- end -}}
{{- $connections := div (mul 104 (int ($server.bounds.connections | default 16384))) 16384 -}}
{{- add (mul 2 $body) (mul 2 $answer) $users 150 $segments $cache $connections -}}
{{- end -}}

{{/* What the pod's directory may come to hold, in MiB: two generations while one replaces the other,
     records of the audit that wait while S3 is away, and 256 for what is small. */}}
{{- define "capper.room" -}}
{{- $waiting := 0 -}}
{{- if include "capper.audits3" . -}}
{{- $waiting = include "capper.mib" (list "config.audit.max_waiting" (.Values.config.audit.max_waiting | default "10GiB")) | int64 -}}
{{- end -}}
{{- add (mul 2 (include "capper.mib" (list "memory.segments" .Values.memory.segments) | int64)) $waiting 256 -}}
{{- end -}}

{{/* How much of it there may be without a volume: beyond it the kubelet evicts the pod. */}}
{{- define "capper.scratch" -}}
{{- .Values.scratch.sizeLimit | default (printf "%dMi" (max 2048 (include "capper.room" . | int64))) -}}
{{- end -}}

{{/* How long the longest call may be in the store and wait before, in seconds. */}}
{{- define "capper.longestCall" -}}
{{- $server := .Values.config.server -}}
{{- $timeout := include "capper.seconds" (list "config.server.call_timeout" $server.call_timeout) | int64 -}}
{{- $users := $server.max_bitmap_users | default 1000000 | int64 -}}
{{- add (mul 2 $timeout) (div (add (mul $timeout $users) 249999) 250000) -}}
{{- end -}}

{{/* What a stop takes at the longest, in seconds; terminationGracePeriodSeconds must not be less. */}}
{{- define "capper.stop" -}}
{{- $server := .Values.config.server -}}
{{- $delay := include "capper.seconds" (list "config.server.stop_delay" $server.stop_delay) | int64 -}}
{{- $timeout := include "capper.seconds" (list "config.server.stop_timeout" $server.stop_timeout) | int64 -}}
{{- add $delay $timeout (include "capper.longestCall" . | int64) (int64 .Values.stop.margin) -}}
{{- end -}}

{{- define "capper.gracePeriod" -}}
{{- .Values.stop.gracePeriod | int64 | default (include "capper.stop" . | int64) -}}
{{- end -}}

{{/* Where what is mounted lies in the pod. */}}
{{- define "capper.configDir" -}}/etc/capper{{- end -}}
{{- define "capper.tlsDir" -}}/etc/capper-tls{{- end -}}
{{- define "capper.redisDir" -}}/etc/capper-redis{{- end -}}
{{- define "capper.dataDir" -}}/var/lib/capper{{- end -}}

{{- define "capper.audits3" -}}
{{- with .Values.config.audit -}}{{- if hasPrefix "s3://" (.to | default "") -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* capper.yaml: config, and what the chart knows. */}}
{{- define "capper.configuration" -}}
{{- $config := deepCopy .Values.config -}}
{{- $server := $config.server -}}
{{- $_ := set $server "listen" ":8080" -}}
{{- $_ := set $server "admin_listen" ":9090" -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $server "tls" (dict "cert_file" (printf "%s/tls.crt" (include "capper.tlsDir" .)) "key_file" (printf "%s/tls.key" (include "capper.tlsDir" .))) -}}
{{- end -}}
{{- $_ := set $server "max_in_flight_users" (int64 $server.max_in_flight_users) -}}
{{- $segments := $config.segments | default dict -}}
{{- $_ := set $segments "cache_dir" (printf "%s/cache" (include "capper.dataDir" .)) -}}
{{- $_ := set $config "segments" $segments -}}
{{- if eq $config.store.kind "embedded" -}}
{{- $embedded := $config.store.embedded | default dict -}}
{{- $_ := set $embedded "path" (printf "%s/log.db" (include "capper.dataDir" .)) -}}
{{- $_ := set $config.store "embedded" $embedded -}}
{{- else -}}
{{- $redis := $config.store.redis | default dict -}}
{{- if and .Values.redis.passwordSecret.name (eq .Values.redis.passwordSecret.as "file") -}}
{{- $_ := set $redis "password_file" (printf "%s/password/%s" (include "capper.redisDir" .) .Values.redis.passwordSecret.key) -}}
{{- end -}}
{{- $tls := $redis.tls | default dict -}}
{{- if or .Values.redis.ca.secret .Values.redis.ca.configMap -}}
{{- $_ := set $tls "ca_file" (printf "%s/ca/%s" (include "capper.redisDir" .) .Values.redis.ca.key) -}}
{{- end -}}
{{- if .Values.redis.clientCertificateSecret -}}
{{- $_ := set $tls "cert_file" (printf "%s/client/tls.crt" (include "capper.redisDir" .)) -}}
{{- $_ := set $tls "key_file" (printf "%s/client/tls.key" (include "capper.redisDir" .)) -}}
{{- end -}}
{{- if $tls -}}{{- $_ := set $redis "tls" (set $tls "enabled" true) -}}{{- end -}}
{{- $_ := set $config.store "redis" $redis -}}
{{- end -}}
{{- if include "capper.audits3" . -}}
{{- $_ := set $config.audit "spool" (printf "%s/audit" (include "capper.dataDir" .)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
