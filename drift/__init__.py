"""Compare a stack's cluster with what the stack declares: `mlbatch drift --stack mysite`."""
