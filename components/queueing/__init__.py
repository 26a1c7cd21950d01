"""Kueue and AppWrapper, configured as MLBatch does."""
