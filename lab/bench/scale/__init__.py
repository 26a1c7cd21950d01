"""`make bench-cluster`: a large simulated cluster under load, compared with plain Kueue."""
