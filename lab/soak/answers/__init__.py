"""Compares the answers about jobs before submission with their actual outcomes."""
