"""Storage classes for any cluster, for existing servers."""
