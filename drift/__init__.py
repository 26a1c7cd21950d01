"""What lives in a stack's cluster against what the stack declares: `python -m drift --stack mysite`."""
