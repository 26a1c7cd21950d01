"""Tests on a new local cluster, with the real engine, API server, Kueue and AppWrapper."""
