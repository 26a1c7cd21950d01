"""The outputs of target `cpouta`: access to the VM, and its costs."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from components import catalogue
from components.images import Reference
from stacks.targets.cpouta.infrastructure import Infrastructure
from stacks.targets.cpouta.interfaces import HOSTS, interfaces
from stacks.targets.cpouta.settings import CpoutaSettings, OpenstackSettings

_NVSHARE: Final = Reference.parse(catalogue.NVSHARE_SCHEDULER.reference)


def outputs(settings: CpoutaSettings, made: Infrastructure) -> Mapping[str, Any]:
    """Return the outputs.

    address: the floating address. sshConfig: for ~/.ssh/config. knownHosts: for ~/.ssh/known_hosts, so that the first
    connection is verified. tunnels: commands that forward a user interface to this machine.
    kubeconfig: of the cluster, a secret. It needs an SSH tunnel. versions: of the software that the first boot and the
    layers install. checks: results of the first boot. volume: its ID. The volume remains when the stack is destroyed.
    billingUnits: per hour, by resource and in total.
    """
    openstack = settings.openstack
    return {
        "address": made.address,
        "sshConfig": made.address.apply(lambda address: ssh_config(openstack, address)),
        "knownHosts": pulumi.Output.format("{0} {1}", made.address, made.host_key.public),
        "tunnels": {name: ui.command for name, ui in interfaces(settings).items()},
        "kubeconfig": made.cluster.kubeconfig,
        "versions": made.cluster.versions.apply(lambda found: {**found, **installed(settings)}),
        "checks": made.cluster.checks,
        "flavor": openstack.machine.name,
        "volume": made.volume_id,
        "billingUnits": billing_units(openstack),
    }


def installed(settings: CpoutaSettings) -> Mapping[str, str]:
    """Return the versions of what shares the GPU in the cluster, and the platform's commit."""
    return {
        **({"gpu-operator": settings.gpu.operator_version} if settings.gpu.operator else {}),
        **({"nvshare": str(_NVSHARE.tag)} if settings.nvshare.enabled else {}),
        **({"mlops-platform": settings.mlops.revision} if settings.mlops.enabled else {}),
    }


def ssh_config(openstack: OpenstackSettings, address: str) -> str:
    """Return a block for each name of the VM in SSH's configuration."""
    return "\n".join(
        f"Host {host}\n"
        f"    Hostname {address}\n"
        f"    User {openstack.user}\n"
        f'    IdentityFile "{openstack.private_key_file}"\n'
        "    StrictHostKeyChecking yes\n"
        for host in HOSTS
    )


def billing_units(openstack: OpenstackSettings) -> Mapping[str, str]:
    """Return CSC's billing units in an hour, with as many digits as they need. Empty on another cloud."""
    rates = openstack.rates
    return {name: _text(rate) for name, rate in {**rates, "total": sum(rates.values())}.items()} if rates else {}


def _text(rate: object) -> str:
    return f"{rate:.3f}".rstrip("0").rstrip(".")
