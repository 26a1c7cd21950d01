"""What lives in a stack's cluster against what the stack declares: `mlbatch drift --stack mysite`."""
