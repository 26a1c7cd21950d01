"""All panels of all dashboards, queried from a real Prometheus and drawn into one HTML file: `make dashboards`."""
