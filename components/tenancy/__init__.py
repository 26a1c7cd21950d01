"""Quotas, teams and the rights of their members."""
