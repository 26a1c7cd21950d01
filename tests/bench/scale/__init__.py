"""`make bench-cluster`: a large simulated cluster under load, the platform side by side with plain Kueue."""
