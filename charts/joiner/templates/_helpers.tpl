{{- /* The name that Karpenter's charts give their objects; ours have it with compat.karpenter, since the selector of a
Deployment cannot be changed. */}}
{{- define "joiner.own" -}}
{{ if .Values.compat.karpenter }}karpenter{{ else }}joiner{{ end }}
{{- end }}

{{- define "joiner.name" -}}
{{ trimSuffix "-" (trunc 63 (default (include "joiner.own" .) .Values.nameOverride)) }}
{{- end }}

{{- /* Without compat.karpenter, nameOverride and fullnameOverride objects are called joiner, in every release. */}}
{{- define "joiner.fullname" -}}
{{- $name := include "joiner.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ trimSuffix "-" (trunc 63 .Values.fullnameOverride) }}
{{- else if not (or .Values.compat.karpenter .Values.nameOverride) -}}
joiner
{{- else if contains $name .Release.Name -}}
{{ trimSuffix "-" (trunc 63 .Release.Name) }}
{{- else -}}
{{ trimSuffix "-" (trunc 63 (printf "%s-%s" .Release.Name $name)) }}
{{- end }}
{{- end }}

{{- define "joiner.selector" -}}
app.kubernetes.io/name: {{ include "joiner.name" . }}
{{- if .Values.compat.karpenter }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{- /* The labels that objects have in common, as a map in YAML. */}}
{{- define "joiner.labels" -}}
{{- $labels := fromYaml (include "joiner.selector" .) }}
{{- $_ := set $labels "app.kubernetes.io/instance" .Release.Name }}
{{- range $name, $value := .Values.additionalLabels }}
{{- $_ := set $labels $name $value }}
{{- end }}
{{- toYaml $labels }}
{{- end }}

{{- /* Merges several maps into one in YAML; for equal keys the last map wins. Empty if all maps are empty. */}}
{{- define "joiner.merged" -}}
{{- $all := dict }}
{{- range $from := . }}
{{- range $name, $value := $from }}
{{- $_ := set $all $name $value }}
{{- end }}
{{- end }}
{{- if $all }}
{{- toYaml $all }}
{{- end }}
{{- end }}

{{- define "joiner.account" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create -}}
{{ include "joiner.fullname" . }}
{{- else -}}
default
{{- end }}
{{- end }}

{{- define "joiner.image" -}}
{{- $image := .Values.controller.image }}
{{- if .Values.image -}}
{{ .Values.image }}
{{- else -}}
{{- $text := required "image: want the image of joiner, or controller.image.repository" $image.repository }}
{{- $text }}{{ if $image.tag }}:{{ $image.tag }}{{ end }}{{ if $image.digest }}@{{ $image.digest }}{{ end }}
{{- end }}
{{- end }}

{{- /* The affinity. Terms between pods that have no labelSelector select our own pods. */}}
{{- define "joiner.affinity" -}}
{{- $own := dict "matchLabels" (fromYaml (include "joiner.selector" .)) }}
{{- $affinity := deepCopy .Values.affinity }}
{{- range $kind, $between := $affinity }}
{{- if ne $kind "nodeAffinity" }}
{{- range $when, $terms := $between }}
{{- range $term := $terms }}
{{- if hasKey $term "podAffinityTerm" }}
{{- if not (hasKey $term.podAffinityTerm "labelSelector") }}
{{- $_ := set $term.podAffinityTerm "labelSelector" $own }}
{{- end }}
{{- else if not (hasKey $term "labelSelector") }}
{{- $_ := set $term "labelSelector" $own }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- /* The spread constraints. Those without a labelSelector select our own pods. Karpenter's chart for AWS demands a
spread over zones, its chart for KWOK only prefers one. */}}
{{- define "joiner.spread" -}}
{{- $own := dict "matchLabels" (fromYaml (include "joiner.selector" .)) }}
{{- $constraints := list }}
{{- range $given := .Values.topologySpreadConstraints }}
{{- $constraint := deepCopy $given }}
{{- if not (hasKey $constraint "labelSelector") }}
{{- $_ := set $constraint "labelSelector" $own }}
{{- end }}
{{- if and $.Values.compat.kwok (eq $constraint.topologyKey "topology.kubernetes.io/zone") }}
{{- $_ := set $constraint "whenUnsatisfiable" "ScheduleAnyway" }}
{{- end }}
{{- $constraints = append $constraints $constraint }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}

{{- /* The list for FEATURE_GATES. A release of Karpenter's charts keeps their defaults. */}}
{{- define "joiner.gates" -}}
{{- $parts := list }}
{{- range $gate := (fromYaml (.Files.Get "files/karpenter.yaml")).gates }}
{{- $value := index $.Values.settings.featureGates $gate.key }}
{{- if has (printf "%v" $value) (list "" "<nil>") }}
{{- $value = "" }}
{{- if $.Values.compat.karpenter }}
{{- $value = $gate.default }}
{{- end }}
{{- end }}
{{- if ne (printf "%v" $value) "" }}
{{- $parts = append $parts (printf "%s=%v" $gate.name $value) }}
{{- end }}
{{- end }}
{{- join "," $parts }}
{{- end }}

{{- /* The name of the cluster for the provider for EC2. Settings of EC2 may be in aws or in settings, not in both: aws
becomes flags, which would win over the variables made from settings. */}}
{{- define "joiner.cluster" -}}
{{- if .Values.aws.clusterName }}
{{- range $key, $name := (fromYaml (.Files.Get "files/karpenter.yaml")).ec2 }}
{{- if not (has (printf "%v" (index $.Values.settings $key)) (list "" "<nil>")) }}
{{- fail (printf "settings.%s: want it empty where aws.clusterName is given, or settings.clusterName in its place" $key) }}
{{- end }}
{{- end }}
{{- .Values.aws.clusterName }}
{{- else }}
{{- .Values.settings.clusterName }}
{{- end }}
{{- end }}

{{- /* The list for AWS_FEATURE_GATES: gates of Karpenter's provider for AWS. */}}
{{- define "joiner.gatesOfAWS" -}}
{{- $parts := list }}
{{- range $name, $value := .Values.settings.awsFeatureGates }}
{{- $parts = append $parts (printf "%s%s=%v" (upper (trunc 1 $name)) (substr 1 100 $name) $value) }}
{{- end }}
{{- join "," $parts }}
{{- end }}

{{- define "joiner.container" -}}
{{ default (default "joiner" (and .Values.compat.karpenter "controller")) .Values.controller.containerName }}
{{- end }}

{{- /* The environment, as a list. Settings become variables, so that controller.env and env win over them, as in
Karpenter's charts. No variable appears twice: the API server takes the last one, and Helm 4 refuses duplicates. */}}
{{- define "joiner.env" -}}
{{- $own := fromYaml (.Files.Get "files/karpenter.yaml") }}
{{- $all := list (dict "name" "LOG_LEVEL" "value" .Values.logLevel) }}
{{- if .Values.compat.karpenter }}
{{- $all = append $all (dict "name" "KARPENTER_SERVICE" "value" (include "joiner.fullname" .)) }}
{{- end }}
{{- $all = append $all (dict "name" "METRICS_PORT" "value" (toJson .Values.controller.metrics.port)) }}
{{- $all = append $all (dict "name" "HEALTH_PROBE_PORT" "value" (toJson .Values.controller.healthProbe.port)) }}
{{- $limit := dict "containerName" (include "joiner.container" .) "resource" "limits.memory" }}
{{- $all = append $all (dict "name" "MEMORY_LIMIT" "valueFrom" (dict "resourceFieldRef" $limit)) }}
{{- $all = append $all (dict "name" "LOG_OUTPUT_PATHS" "value" (join "," .Values.logOutputPaths)) }}
{{- $all = append $all (dict "name" "LOG_ERROR_OUTPUT_PATHS" "value" (join "," .Values.logErrorOutputPaths)) }}
{{- range $variables := list $own.variables $own.ec2 }}
{{- range $key, $name := $variables }}
{{- $all = append $all (dict "name" $name "value" (index $.Values.settings $key)) }}
{{- end }}
{{- end }}
{{- $all = append $all (dict "name" "FEATURE_GATES" "value" (include "joiner.gates" .)) }}
{{- $all = append $all (dict "name" "AWS_FEATURE_GATES" "value" (include "joiner.gatesOfAWS" .)) }}
{{- $all = append $all (dict "name" "METRICS_DETAIL" "value" .Values.settings.metricsDetail) }}
{{- $all = append $all (dict "name" "REPAIR_VETO" "value" .Values.settings.repairVeto) }}
{{- $all = append $all (dict "name" "TAKEOVER_GRACE" "value" .Values.settings.takeover.grace) }}
{{- $all = append $all (dict "name" "AWS_REGION" "value" .Values.aws.region) }}
{{- $env := list }}
{{- range $variable := $all }}
{{- if or (hasKey $variable "valueFrom") (not (has (printf "%v" (index $variable "value")) (list "" "<nil>"))) }}
{{- $env = append $env $variable }}
{{- end }}
{{- end }}
{{- range $given := list .Values.controller.env .Values.env }}
{{- range $variable := $given }}
{{- $env = append $env $variable }}
{{- end }}
{{- end }}
{{- $last := dict }}
{{- range $i, $variable := $env }}
{{- $_ := set $last $variable.name $i }}
{{- end }}
{{- $kept := list }}
{{- range $i, $variable := $env }}
{{- if eq $i (index $last $variable.name) }}
{{- $kept = append $kept $variable }}
{{- end }}
{{- end }}
{{- toJson (dict "env" $kept) }}{{/* YAML would lose the newline at the end of the last value */}}
{{- end }}
