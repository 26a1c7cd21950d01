"""Health checks of GPU nodes, and how other components get their results."""
