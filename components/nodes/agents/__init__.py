"""Programs that run on every node of a pool; standard library only."""
