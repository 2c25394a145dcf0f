{{/* What a pod may do: nothing but run one program that is not root. */}}
{{- define "capper.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "capper.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "capper.awsEnv" -}}
{{- with .Values.s3.region }}
- {name: AWS_REGION, value: {{ . | quote }}}
{{- end }}
{{- with .Values.s3.credentialsSecret }}
{{- if .name }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .accessKeyID | quote }}}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .secretAccessKey | quote }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "capper.probe" -}}
{{- $root := index . 0 -}}
httpGet: {path: {{ index . 1 }}, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne $root.Values.tls.secret "") }}}
{{ toYaml (index . 2) }}
{{- end -}}

{{- define "capper.spread" -}}
{{- $root := . -}}
{{- range $key, $how := dict "topology.kubernetes.io/zone" .Values.spread.zones "kubernetes.io/hostname" .Values.spread.hosts }}
{{- if ne $how "off" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: {{ $how }}
  labelSelector:
    matchLabels: {{- include "capper.selector" $root | nindent 6 }}
  {{- if not (include "capper.stateful" $root) }}
  matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "capper.pod" -}}
metadata:
  labels:
    {{- include "capper.labels" . | nindent 4 }}
    app.kubernetes.io/component: service
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{- end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "capper.serviceAccount" . | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "capper.gracePeriod" . }}
  securityContext: {{- include "capper.podSecurity" . | nindent 4 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "capper.spread" . | trim }}
  topologySpreadConstraints: {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: capper
      image: {{ include "capper.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, {{ include "capper.configDir" . }}/capper.yaml]
      securityContext: {{- include "capper.containerSecurity" . | nindent 8 }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        - {name: admin, containerPort: 9090, protocol: TCP}
      {{- $memory := include "capper.memory" . | int64 }}
      resources:
        requests:
          cpu: {{ .Values.cpu.request | quote }}
          memory: {{ $memory }}Mi
          {{- if not (include "capper.stateful" .) }}
          ephemeral-storage: {{ include "capper.scratch" . }} # a full node evicts first who uses more than this
          {{- end }}
        limits:
          {{- with .Values.cpu.limit }}
          cpu: {{ . | quote }}
          {{- end }}
          memory: {{ $memory }}Mi
      env:
        - {name: GOMEMLIMIT, value: {{ printf "%dMiB" (div (mul 9 $memory) 10) | quote }}}
        {{- if and (eq .Values.config.store.kind "redis") .Values.redis.passwordSecret.name (eq .Values.redis.passwordSecret.as "environment") }}
        - name: CAPPER_REDIS_PASSWORD
          valueFrom: {secretKeyRef: {name: {{ .Values.redis.passwordSecret.name | quote }}, key: {{ .Values.redis.passwordSecret.key | quote }}}}
        {{- end }}
        {{- with include "capper.awsEnv" . | trim }}{{ . | nindent 8 }}{{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{- end }}
      startupProbe: {{- include "capper.probe" (list . "/healthz" .Values.probes.startup) | nindent 8 }}
      livenessProbe: {{- include "capper.probe" (list . "/healthz" .Values.probes.liveness) | nindent 8 }}
      readinessProbe: {{- include "capper.probe" (list . "/readyz" .Values.probes.readiness) | nindent 8 }}
      volumeMounts:
        # The whole directory, never a subPath: the kubelet swaps a symlink in it, which the service sees.
        - {name: config, mountPath: {{ include "capper.configDir" . | quote }}, readOnly: true}
        - {name: data, mountPath: {{ include "capper.dataDir" . | quote }}}
        {{- if .Values.tls.secret }}
        - {name: tls, mountPath: {{ include "capper.tlsDir" . | quote }}, readOnly: true}
        {{- end }}
        {{- with include "capper.redisMounts" . | trim }}{{ . | nindent 8 }}{{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{- end }}
  volumes:
    - name: config
      {{- if eq .Values.configuration.in "Secret" }}
      secret: {secretName: {{ .Values.configuration.existing | default (include "capper.fullname" .) | quote }}, defaultMode: 0440}
      {{- else }}
      configMap: {name: {{ .Values.configuration.existing | default (include "capper.fullname" .) | quote }}, defaultMode: 0440}
      {{- end }}
    {{- if not (include "capper.stateful" .) }}
    - name: data
      emptyDir: {sizeLimit: {{ include "capper.scratch" . }}}
    {{- end }}
    {{- with .Values.tls.secret }}
    - name: tls
      secret: {secretName: {{ . | quote }}, defaultMode: 0440}
    {{- end }}
    {{- with include "capper.redisVolumes" . | trim }}{{ . | nindent 4 }}{{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{- end }}
{{- end -}}

{{- define "capper.redisMounts" -}}
{{- if eq .Values.config.store.kind "redis" }}
{{- if and .Values.redis.passwordSecret.name (eq .Values.redis.passwordSecret.as "file") }}
- {name: redis-password, mountPath: {{ include "capper.redisDir" . }}/password, readOnly: true}
{{- end }}
{{- if or .Values.redis.ca.secret .Values.redis.ca.configMap }}
- {name: redis-ca, mountPath: {{ include "capper.redisDir" . }}/ca, readOnly: true}
{{- end }}
{{- if .Values.redis.clientCertificateSecret }}
- {name: redis-client, mountPath: {{ include "capper.redisDir" . }}/client, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "capper.redisVolumes" -}}
{{- if eq .Values.config.store.kind "redis" }}
{{- if and .Values.redis.passwordSecret.name (eq .Values.redis.passwordSecret.as "file") }}
- name: redis-password
  secret: {secretName: {{ .Values.redis.passwordSecret.name | quote }}, defaultMode: 0440}
{{- end }}
{{- with .Values.redis.ca }}
{{- if .secret }}
- name: redis-ca
  secret: {secretName: {{ .secret | quote }}, defaultMode: 0440}
{{- else if .configMap }}
- name: redis-ca
  configMap: {name: {{ .configMap | quote }}}
{{- end }}
{{- end }}
{{- with .Values.redis.clientCertificateSecret }}
- name: redis-client
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end -}}
