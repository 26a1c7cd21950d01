"""The platform as a Pulumi program: reads the stack's settings, deploys its target, exports what stands."""

import gc

import pulumi

from stacks.config.inputs import load
from stacks.deploy import deploy

# What a run makes lives until its end: looking for cycles in it as often as by default takes an eighth of the time.
gc.set_threshold(100_000)

for name, value in deploy(load()).items():
    pulumi.export(name, value)
