"""The platform's layers, one in each folder. Importing a package imports no modules."""
