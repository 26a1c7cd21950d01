"""Values that follow from the settings: node pools, quotas, limits."""
