"""Volumes, and the drivers behind them."""
