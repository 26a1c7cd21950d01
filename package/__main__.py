"""The Pulumi plugin, as the engine starts it from PulumiPlugin.yaml."""

from pulumi_mlbatch.provider import main

main()
