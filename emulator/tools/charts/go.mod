module mlbatch/tools/charts

go 1.24.0

require (
	github.com/prometheus-community/helm-charts v0.0.0-20260828105119-ed5d7d9b5933
	sigs.k8s.io/node-feature-discovery v0.18.3
)
