"""Programs that run in the Python environment of OpenStack's packages, and import them."""
