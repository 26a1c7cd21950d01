"""Volumes that any cluster can offer, from servers that are there."""
