"""Quotas, teams and what their members may do."""
