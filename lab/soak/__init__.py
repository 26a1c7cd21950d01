"""A long run of jobs on a local cluster whose nodes and controllers keep failing."""
