"""Stacks: from settings to the composition of layers for each target."""
