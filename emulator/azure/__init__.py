"""The emulated Azure Resource Manager: it answers as the provider plugins azure-native and random.

`python -m emulator.azure serve --port PORT` serves the engine's provider protocol on loopback; the engine attaches with
`PULUMI_DEBUG_PROVIDERS=azure-native:PORT,random:PORT`. The subscription lives in `<state>/azure`, between runs and
under any number of engines.

What it follows:

- The SDK `pulumi_azure_native` says which resources and functions there are, with which properties, types and enums
  (`schema`, `validation`).
- The official provider decides between update and replacement, what a preview knows, what a refresh takes for drift
  (`projection`, `lifecycle`).
- Azure Resource Manager refuses, and reads back (`services`), by the facts of `facts.yaml`; its operations take time
  (`arm`) and can be told to fail (`faults`).
- The one managed cluster is the local cluster: the nodes of its pools come and go there (`nodes`, `local_cluster`).

What it does not emulate is an error that names it, never a silent success: other resource types, inputs and functions
than the platform uses, other API versions than the SDK's defaults, names that are made up, other resources of
pulumi-random than RandomPassword. Nothing is emulated of what happens inside the resources: no image can be pushed to a
registry, no blob be written to a container; a pool with autoscaling keeps its count. Who may do what is not checked.

Known differences, by design:

- What ARM only refuses in a PUT, an enum's value for one, a preview refuses too where the inputs show it.
- A refresh reports a resource in state Failed as not ready, so that the next update sends it anew. The official
  provider takes such a resource as it is.
- Every subscription id that a program names is the one emulated subscription.
- It keeps for which resource of a program, with which inputs, it has created each of its own until an engine shows that
  it knows it (`orphans`), so that a test can tell what a killed engine has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.paths import Paths
    from emulator.plugin.provider import Found

VERSIONS = {"azure-native": "3.29.0", "random": "4.21.4"}
"""The releases whose plugins this emulates."""


def orphans(paths: Paths) -> Mapping[str, Found]:
    """Return the resources that were created and that no engine has shown to know since, by URN.

    They are what an update has created that was killed, or that has ended just now. Waits for what is still going on.
    """
    # Most commands have nothing to do with Azure, and need not wait for these.
    from emulator.azure.lifecycle import Lifecycle
    from emulator.azure.local_cluster import subscription

    return Lifecycle(subscription(paths)).orphans()


def report(paths: Paths) -> str:
    """Describe the emulated subscription: its resources, the pools with their counts; empty when there is nothing."""
    from emulator.azure.overview import describe

    return describe(paths)
