"""The local OpenStack as text, for `make status`."""

from __future__ import annotations

from emulator.openstack.deployment import Deployment
from emulator.openstack.facts import facts
from emulator.openstack.faults import Faults
from emulator.openstack.folder import Folder
from emulator.paths import Paths
from runner.report import table

_TITLE = "OpenStack (real services; hypervisor, network and storage are simulated)"


def report(paths: Paths) -> str:
    """Return the tables of the project's resources and of planned faults, empty without an OpenStack."""
    folder = Deployment(paths).folder
    if not folder.ports_file.exists():
        return ""
    faults = [(each.service, each.call, each.kind, each.times) for each in Faults(folder.faults_file).planned()]
    found = [table(_TITLE, ["TYPE", "NAME", "STATE", "WHAT"], _resources(folder))]
    found += [table("Planned faults of OpenStack", ["SERVICE", "CALL", "KIND", "TIMES"], faults)] if faults else []
    return "\n\n".join(found)


def _resources(folder: Folder) -> list[tuple[str, str, str, str]]:
    # Imported here because OpenStack's SDK is slow to import and most environments do not need it.
    from openstack.exceptions import SDKException

    from emulator.openstack.seed import administrator

    try:
        cloud = administrator(folder)
        servers = [(each.name, each.status, each.flavor.name) for each in cloud.compute.servers(all_projects=True)]
        volumes = [
            (each.name or each.id, each.status, f"{each.size} GiB, {each.volume_type}")
            for each in cloud.block_storage.volumes(all_projects=True)
        ]
        addresses = [
            (each.floating_ip_address, each.status, f"to {each.fixed_ip_address or 'no port'}")
            for each in cloud.network.ips()
        ]
    except SDKException as error:
        return [("project", str(facts()["project"]), "does not answer", str(error))]
    return [
        ("project", str(facts()["project"]), "enabled", f"availability zone {facts()['availability_zone']}"),
        *(("server", *each) for each in servers),
        *(("volume", *each) for each in volumes),
        *(("floating IP", *each) for each in addresses),
    ]
