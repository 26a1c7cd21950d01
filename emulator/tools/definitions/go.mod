module mlbatch/tools/definitions

go 1.25.0

require (
	github.com/cert-manager/cert-manager v1.19.4
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
