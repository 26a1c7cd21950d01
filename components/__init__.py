"""The platform's layers. Each folder is one layer; importing a package imports nothing else."""
