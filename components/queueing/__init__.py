"""Kueue and AppWrapper in MLBatch's configuration."""
