"""What a killed engine has left in an OpenStack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.openstack_provider import cloud, schema
from emulator.openstack_provider.cloud import Cloud
from emulator.openstack_provider.journal import Journal
from emulator.openstack_provider.kinds import KINDS
from emulator.openstack_provider.plugin import journal
from emulator.openstack_provider.resources import OpenStackResources
from emulator.paths import Paths
from emulator.plugin.host import Host
from emulator.plugin.operation import Operation
from emulator.plugin.wire import Properties, strip_secrets


@dataclass(frozen=True, slots=True)
class Read:
    """A resource as it is: its ID, its properties, and the inputs that it was created with."""

    id: str
    outputs: dict[str, Any]
    inputs: dict[str, Any]


def orphans(paths: Paths, variables: Mapping[str, str]) -> dict[str, Read]:
    """Return the resources that were created and that no engine has shown to know since, by URN.

    One whose creation has told nobody its ID is looked for by its inputs.

    variables: the environment of the engine, with its credentials. Raises ProviderError where the OpenStack cannot be
    asked for one.
    """
    found = {}
    nothing = Journal(None)
    for entry in Journal(journal(paths)).entries():
        of = Cloud(cloud.settings(entry.provider, variables))
        resources = OpenStackResources(of, schema.resources()[entry.token], KINDS[entry.token], nothing)
        inputs = dict(entry.inputs)
        identifier = entry.identifier or resources.find(inputs, entry.begun)
        if identifier is None:
            continue
        state = resources.recorded(inputs)
        operation = Operation(entry.urn, Host(""))
        read = resources.read(identifier, Properties.of(state), Properties.of(inputs), operation)
        if read is not None:
            found[entry.urn] = Read(identifier, strip_secrets(read.state), inputs)
    return found
