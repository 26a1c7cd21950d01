"""Every panel of every dashboard, asked of a real Prometheus and drawn into one HTML file: `make dashboards`."""
