"""How pods are ranked and placed."""
