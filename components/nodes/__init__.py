"""Machines and what they have."""
