{{- define "fila.labels" -}}
app.kubernetes.io/name: fila
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "fila.selector" -}}
app.kubernetes.io/name: fila
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fila.name" -}}
{{ if contains "fila" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-fila{{ end }}
{{- end }}
