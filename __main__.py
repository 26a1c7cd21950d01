"""The platform as a Pulumi program: read the stack's settings, deploy the target, export its outputs."""

import gc

import pulumi

from stacks.config.inputs import load
from stacks.deploy import deploy

# Most objects exist until the end of a run. Garbage collection at its default frequency takes an eighth of the time.
gc.set_threshold(100_000)

for name, value in deploy(load()).items():
    pulumi.export(name, value)
