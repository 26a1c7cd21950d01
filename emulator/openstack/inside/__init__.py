"""What runs in the Python environment of OpenStack's packages, and imports them."""
