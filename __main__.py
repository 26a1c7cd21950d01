"""The platform as a Pulumi program: reads the stack's settings, deploys its target, exports what stands."""

import pulumi

from stacks import deploy
from stacks.inputs import load

for name, value in deploy(load()).items():
    pulumi.export(name, value)
