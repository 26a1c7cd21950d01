"""A cluster as a picture: one HTML file that answers first questions. It needs no network and runs no script."""
