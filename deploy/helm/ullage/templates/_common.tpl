{{- define "ullage.labels" -}}
app.kubernetes.io/name: ullage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ullage.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "ullage.env" -}}
- name: ULLAGE_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.secret | quote }}
      key: {{ .Values.store.key | quote }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "ullage.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: ["ALL"]}
{{- end }}
