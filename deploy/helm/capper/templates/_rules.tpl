{{/* What values must hold together. Each message has the key, the value and the rule. */}}
{{- define "capper.rules" -}}
{{- $v := .Values -}}{{- $server := $v.config.server -}}{{- $store := $v.config.store -}}
{{- $faults := list -}}
{{- if not $v.image.repository -}}{{- $faults = append $faults "image.repository: is required: no image is published; build one (make image) and push it to a registry that the nodes reach" -}}{{- end -}}
{{- if not $v.configuration.existing -}}
{{- if not ((dig "segments" "source" "" $v.config)) -}}{{- $faults = append $faults "config.segments.source: is required: s3://bucket/prefix, where segmentbuild publishes" -}}{{- end -}}
{{- if not $server.api_keys -}}{{- $faults = append $faults "config.server.api_keys: is required: a pod listens beyond loopback (docs/api.md, Who may call)" -}}{{- end -}}
{{- if not $v.config.limits -}}{{- $faults = append $faults "config.limits: is required: default and segments set how many sends a user may get" -}}{{- end -}}
{{- if and (eq $v.configuration.in "ConfigMap") (ne (toString $v.config.console) "false") -}}
{{- $faults = append $faults "configuration.in: ConfigMap: only with config.console: false, as sessions of the console are sealed by sha256 of the keys, which a ConfigMap shows to more people than a Secret" -}}
{{- end -}}
{{- end -}}
{{- range $path, $why := dict
  "server.listen" "service.port" "server.admin_listen" "service.adminPort" "server.tls" "tls.secret"
  "segments.cache_dir" "the volume of the pod" "store.embedded.path" "the volume of the pod" "audit.spool" "the volume of the pod"
  "store.redis.password_file" "redis.passwordSecret" "store.redis.tls.ca_file" "redis.ca"
  "store.redis.tls.cert_file" "redis.clientCertificateSecret" "store.redis.tls.key_file" "redis.clientCertificateSecret" -}}
{{- $at := $v.config -}}
{{- range splitList "." $path -}}
{{- if kindIs "map" $at -}}{{- $at = get $at . -}}{{- else -}}{{- $at = "" -}}{{- end -}}
{{- end -}}
{{- if $at -}}{{- $faults = append $faults (printf "config.%s: %s: must not be given: the chart sets it from %s" $path (toJson $at) $why) -}}{{- end -}}
{{- end -}}
{{- if eq $store.kind "embedded" -}}
{{- if $store.redis -}}{{- $faults = append $faults "config.store.redis: must not be given with config.store.kind: embedded" -}}{{- end -}}
{{- if and (ne (toString $v.replicas) "auto") (ne (int $v.replicas) 1) -}}{{- $faults = append $faults (printf "replicas: %v: must be 1, or left out, with config.store.kind: embedded, as one process owns the store; config.store.kind: redis has more" $v.replicas) -}}{{- end -}}
{{- if $v.autoscaling.enabled -}}{{- $faults = append $faults "autoscaling.enabled: true: only with config.store.kind: redis, as one process owns an embedded store" -}}{{- end -}}
{{- else -}}
{{- if $store.embedded -}}{{- $faults = append $faults "config.store.embedded: must not be given with config.store.kind: redis" -}}{{- end -}}
{{- if not (or $v.configuration.existing (dig "redis" "addrs" "" $store)) -}}{{- $faults = append $faults "config.store.redis.addrs: is required with config.store.kind: redis" -}}{{- end -}}
{{- end -}}
{{- if and $v.redis.ca.secret $v.redis.ca.configMap -}}{{- $faults = append $faults (printf "redis.ca.configMap: %q: must not be given with redis.ca.secret" $v.redis.ca.configMap) -}}{{- end -}}
{{- $delay := include "capper.seconds" (list "config.server.stop_delay" $server.stop_delay) | int64 -}}
{{- if le $delay (int64 $v.stop.loadBalancerNotice) -}}
{{- $faults = append $faults (printf "config.server.stop_delay: %s: must be longer than stop.loadBalancerNotice, %v s: until the load balancer has noticed that /readyz is 503, it sends calls" $server.stop_delay $v.stop.loadBalancerNotice) -}}
{{- end -}}
{{- $stop := include "capper.stop" . | int64 -}}
{{- if lt (include "capper.gracePeriod" . | int64) $stop -}}
{{- $faults = append $faults (printf "stop.gracePeriod: %v: must be at least %v s: config.server.stop_delay %s, stop_timeout %s, the longest call (%s s) and stop.margin (%v s); the pod would be killed in the middle of its stop" $v.stop.gracePeriod $stop $server.stop_delay $server.stop_timeout (include "capper.longestCall" .) $v.stop.margin) -}}
{{- end -}}
{{- $memory := include "capper.memoryNeeded" . | int64 -}}
{{- if lt (include "capper.memory" . | int64) $memory -}}
{{- $faults = append $faults (printf "memory.limit: %s: must be at least %dMi, which config.server.bounds, max_in_flight_users and memory.segments add up to: the pod would be killed under load; make those smaller" $v.memory.limit $memory) -}}
{{- end -}}
{{- range $v.extraEnv -}}
{{- if and (has .name (list "CAPPER_REDIS_PASSWORD" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" "OTEL_EXPORTER_OTLP_HEADERS")) .value -}}
{{- $faults = append $faults (printf "extraEnv: %s: must come from a Secret, by valueFrom.secretKeyRef" .name) -}}
{{- end -}}
{{- end -}}
{{- $room := include "capper.room" . | int64 -}}
{{- $key := ternary "persistence.size" "scratch.sizeLimit" (eq (include "capper.stateful" .) "true") -}}
{{- $size := ternary $v.persistence.size (include "capper.scratch" .) (eq $key "persistence.size") -}}
{{- if lt (include "capper.mib" (list $key $size) | int64) $room -}}
{{- $faults = append $faults (printf "%s: %s: must be at least %dMi: two generations of memory.segments (%s)%s and 256Mi; %s" $key $size $room $v.memory.segments (ternary (printf ", config.audit.max_waiting (%s)" (dig "audit" "max_waiting" "10GiB" $v.config)) "" (eq (include "capper.audits3" .) "true")) (ternary "the volume would be full" "the pod would be evicted" (eq $key "persistence.size"))) -}}
{{- end -}}
{{- if and (eq $key "scratch.sizeLimit") (hasPrefix (include "capper.dataDir" .) (dig "audit" "to" "" $v.config)) -}}
{{- $faults = append $faults (printf "config.audit.to: %q: only with persistence.enabled: true: without a volume what is there grows until the pod is evicted, and goes with it" $v.config.audit.to) -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- $faults = append $faults (printf "autoscaling.minReplicas: %v: must be at most autoscaling.maxReplicas, %v" $v.autoscaling.minReplicas $v.autoscaling.maxReplicas) -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}{{- $faults = append $faults "ingress.hosts: is required with ingress.enabled: true" -}}{{- end -}}
{{- if and $v.metrics.serviceMonitor.enabled (not $v.metrics.keySecret.name) -}}
{{- $faults = append $faults "metrics.keySecret.name: is required with metrics.serviceMonitor.enabled: true: /metrics asks for a key with the scope read" -}}
{{- end -}}
{{- with $v.metrics.serviceMonitor.ca -}}{{- if and .secret .configMap -}}{{- $faults = append $faults (printf "metrics.serviceMonitor.ca.configMap: %q: must not be given with ca.secret" .configMap) -}}{{- end -}}{{- end -}}
{{- if $v.networkPolicy.enabled -}}
{{- if not $v.networkPolicy.api -}}{{- $faults = append $faults "networkPolicy.api: is required with networkPolicy.enabled: true: peers who may call; without any nobody could" -}}{{- end -}}
{{- if and (eq $store.kind "redis") (not $v.networkPolicy.redis) -}}{{- $faults = append $faults "networkPolicy.redis: is required with networkPolicy.enabled: true and config.store.kind: redis: peers where the servers are" -}}{{- end -}}
{{- if eq $store.kind "redis" -}}
{{- if not (include "capper.redisPorts" .) -}}{{- $faults = append $faults "networkPolicy.redisPorts: is required with networkPolicy.enabled: true: config.store.redis.addrs names no port" -}}{{- end -}}
{{- if and (dig "redis" "sentinel_master" "" $store) (not $v.networkPolicy.redisPorts) -}}{{- $faults = append $faults "networkPolicy.redisPorts: is required with networkPolicy.enabled: true and config.store.redis.sentinel_master: addrs are the Sentinels, and the servers listen elsewhere" -}}{{- end -}}
{{- end -}}
{{- if and $v.metrics.serviceMonitor.enabled (not $v.networkPolicy.metrics) -}}{{- $faults = append $faults "networkPolicy.metrics: is required with networkPolicy.enabled: true and metrics.serviceMonitor.enabled: true: peers who may ask for metrics; without any Prometheus could not" -}}{{- end -}}
{{- if and (dig "tracing" "endpoint" "" $v.config) (not $v.networkPolicy.otlp) -}}{{- $faults = append $faults "networkPolicy.otlp: is required with networkPolicy.enabled: true and config.tracing.endpoint: peers that take spans" -}}{{- end -}}
{{- end -}}
{{- if $v.segmentbuild.enabled -}}
{{- if not $v.segmentbuild.build -}}{{- $faults = append $faults "segmentbuild.build: is required with segmentbuild.enabled: true: the build file, as docs/segmentbuild.md has it" -}}{{- end -}}
{{- if not (hasPrefix "s3://" (dig "segments" "source" "" $v.config)) -}}{{- $faults = append $faults (printf "config.segments.source: %q: must be s3://… with segmentbuild.enabled: true, as its pod shares no directory with the service" (dig "segments" "source" "" $v.config)) -}}{{- end -}}
{{- end -}}
{{- if $faults -}}{{- fail (printf "\n  %s" (join "\n  " $faults)) -}}{{- end -}}
{{- end -}}
