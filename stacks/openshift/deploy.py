"""Target `openshift`: its storage, and the platform on the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components import catalogue
from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.security import PodSecurity
from components.storage.nfs import NfsProvisioner, NfsProvisionerArgs
from stacks import platform
from stacks.existing.deploy import ExistingLayers, cluster_of
from stacks.inputs import StackInputs
from stacks.layers.releases import Releases
from stacks.openshift.settings import OpenShiftSettings


def deploy(inputs: StackInputs[OpenShiftSettings], releases: Releases) -> Mapping[str, Any]:
    """Register the storage and the platform; return the stack's outputs."""
    cluster = replace(cluster_of(inputs), pod_security=PodSecurity.SCC)
    if inputs.settings.nfs.enabled:
        cluster = _with_nfs(inputs, cluster)
    return platform.install(inputs, releases, cluster, ExistingLayers(list(inputs.resolved.volumes)))


def _with_nfs(inputs: StackInputs[OpenShiftSettings], cluster: Cluster) -> Cluster:
    """Register the NFS provisioner; return the cluster with its class for what no other one is named for."""
    settings, own = inputs.settings.nfs, cluster.storage
    args = NfsProvisionerArgs(
        release=settings.release,
        server=settings.server or "",
        path=settings.path or "",
        storage_class=settings.storage_class,
        provisioner=settings.provisioner,
        image=inputs.mirror.image(catalogue.NFS_PROVISIONER.reference),
        nodes=cluster.placement.system,
        pod_security=cluster.pod_security,
        hostmount=settings.hostmount_anyuid,
    )
    provisioner = NfsProvisioner("nfs", args, cluster.options())
    made = settings.storage_class
    classes = StorageClasses(block=own.block or made, files=own.files or made, logs=own.logs or made)
    return replace(cluster, storage=classes, ready=[*cluster.ready, provisioner])
