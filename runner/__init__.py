"""Run this program's stacks with the Pulumi command, and report the platform's objects on a cluster.

The emulator's command line and the review use it. `mlbatch status` reports on any cluster.
"""
