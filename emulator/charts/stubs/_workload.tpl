{{- /* Pods that show where upstream's run, and by whose labels the rest of the emulation sees that they do. */ -}}
{{- define "stub.workload" }}
{{- $labels := dict "app.kubernetes.io/name" .chart.Chart.Name "app.kubernetes.io/instance" .chart.Release.Name }}
{{- $_ := set $labels "app.kubernetes.io/component" .name }}
---
apiVersion: apps/v1
kind: {{ .kind }}
metadata: {name: {{ .name }}, namespace: {{ .chart.Release.Namespace }}, labels: {{ toJson $labels }}}
spec:
  selector: {matchLabels: {{ toJson $labels }}}
  template:
    metadata: {labels: {{ toJson $labels }}}
    spec:
      {{- range $key, $value := .pod }}
      {{ $key }}: {{ toJson $value }}
      {{- end }}
      nodeSelector: {{ toJson .place.nodeSelector }}
      tolerations: {{ toJson .place.tolerations }}
      containers: [{name: main, image: {{ .image }}}]
{{- end }}
