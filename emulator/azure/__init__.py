"""The emulated Azure Resource Manager, behind the protocol of the provider plugins azure-native and random.

`python -m emulator.azure serve --port PORT` serves the engine's provider protocol on loopback. The engine connects with
`PULUMI_DEBUG_PROVIDERS=azure-native:PORT,random:PORT`. The subscription is stored in `<state>/azure`, across runs and
for any number of engines.

Sources of its behaviour:

- The SDK `pulumi_azure_native` defines resources, functions, properties, types and enums (`schema`, `validation`).
- The official provider defines what an update replaces, what a preview knows and what a refresh reports as drift
  (`projection`, `lifecycle`).
- Azure Resource Manager defines which requests are rejected and what reads back (`services`), with the facts of
  `facts.yaml`. Operations take time (`arm`) and fail on demand (`faults`).
- The only managed cluster is the local cluster; its nodes follow the agent pools (`nodes`, `local_cluster`).

What is not emulated is an error that names it: types, inputs and functions that the platform does not use, API versions
other than the SDK's defaults, generated names, resources of pulumi-random other than RandomPassword. The contents of
resources are not emulated: images cannot be pushed to a registry, blobs cannot be written to a container, and a pool
with autoscaling keeps its count. Permissions are not checked.

Known differences, by design:

- A preview also rejects errors that ARM reports only for a PUT, such as an enum's value, if the inputs show them.
- A refresh reports a resource in state Failed as not ready, so that the next update sends it again. The official
  provider accepts such a resource.
- Every subscription id that a program names is the one emulated subscription.
- Each new resource keeps the URN and inputs of its creation until an engine shows that it has recorded the resource
  (`orphans`). With this, a test can find what a killed engine left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.paths import Paths
    from emulator.plugin.provider import Found

VERSIONS = {"azure-native": "3.29.0", "random": "4.21.4"}
"""The emulated releases of the plugins."""


def orphans(paths: Paths) -> Mapping[str, Found]:
    """Return the resources, by URN, that were created and that no engine has shown to have recorded since.

    An update that was killed, or that has just ended, created them. Waits for running operations.
    """
    # Imported here because most commands do not use Azure.
    from emulator.azure.lifecycle import Lifecycle
    from emulator.azure.local_cluster import subscription

    return Lifecycle(subscription(paths)).orphans()


def report(paths: Paths) -> str:
    """Return a description of the emulated subscription: resources, and pools with their counts. Empty without any."""
    from emulator.azure.overview import describe

    return describe(paths)
