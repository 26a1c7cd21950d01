"""What is made in an OpenStack project, and in the VM that it holds."""
