"""The texts that identify a stack's own resources in the project."""

from typing import Final

IMAGE: Final = "mlbatch-image"
"""Key of the VM's metadata with the name of the image that it was made from."""
CLUSTER: Final = "mlbatch-cluster"
"""Key of the VM's and the volume's metadata with the cluster that was asked for, as `cluster_note` writes it."""
SSH_RULE: Final = "SSH from "
"""Start of the descriptions of the firewall rules that let somebody sign in."""
_OWNER: Final = ", of stack "


def cluster_note(kubernetes: str, api_port: int) -> str:
    """Return what distinguishes a cluster from another one on the same volume: what its node cannot change."""
    return f"Kubernetes {kubernetes}, port {api_port}"


def address(name: str) -> str:
    """Return the description of the floating address, which has no name, of a VM."""
    return f"The address of {name}"


def data_volume(name: str) -> str:
    """Return the description that distinguishes the volume of a VM from another one of the same name."""
    return f"Data of {name}"


def firewall(name: str, owner: str) -> str:
    """Return the description of the security group of a VM, which shows the stack that owns it."""
    return f"Who may reach {name}{_OWNER}{owner}"


def firewall_owner(description: str) -> str:
    """Return the stack in a security group's description, empty if it has no stack."""
    return description.partition(_OWNER)[2]
