{{- define "murmurate.selector" -}}
app.kubernetes.io/name: murmurate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "murmurate.labels" -}}
{{ include "murmurate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "murmurate.name" -}}
{{ if contains "murmurate" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-murmurate" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "murmurate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
