"""The programs of the guide's demos, as jobs on Ray clusters.

What they do: redhat-na-ssa/codeflare-sdk, demo-notebooks/guided-demos. Each runs as well on a Ray of one machine.
"""
