"""What OpenShift alone has: SecurityContextConstraints."""
