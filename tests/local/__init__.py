"""Tests against a local cluster of their own: the real engine, API server, Kueue and AppWrapper."""
