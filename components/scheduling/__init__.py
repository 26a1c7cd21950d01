"""Priorities and placement of pods."""
