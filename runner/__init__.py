"""Runs this program's stacks with the Pulumi command, and reports what a cluster holds of the platform.

The emulator's command line and the review stand on it; `mlbatch status` reports on any cluster.
"""
