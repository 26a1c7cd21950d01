"""Target `simulated`: the platform on a cluster whose GPU nodes are simulated."""
