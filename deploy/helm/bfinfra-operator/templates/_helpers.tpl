{{- define "operator.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "operator.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "operator.name" .) }}{{ else }}{{ required "serviceAccount.name: which one, as none is created?" .Values.serviceAccount.name }}{{ end -}}
{{- end }}

{{- define "operator.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "operator.selector" -}}
app.kubernetes.io/name: bfinfra
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* of pods too: what changes with each chart would restart them */}}
{{- define "operator.podLabels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/part-of: bfinfra
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "operator.labels" -}}
{{ include "operator.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{/* of watchers: the same but for the component */}}
{{- define "watcher.selector" -}}
{{ include "operator.selector" . | replace "component: operator" "component: watcher" }}
{{- end }}

{{- define "watcher.podLabels" -}}
{{ include "operator.podLabels" . | replace "component: operator" "component: watcher" }}
{{- end }}

{{- define "watcher.labels" -}}
{{ include "operator.labels" . | replace "component: operator" "component: watcher" }}
{{- end }}

{{/* who is given a role */}}
{{- define "operator.subjects" -}}
- {kind: ServiceAccount, name: {{ include "operator.account" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}
