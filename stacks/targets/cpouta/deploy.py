"""Target `cpouta`: a VM on OpenStack, and the platform on it."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.placement import Placement
from components.kubernetes.provider import kubernetes_provider
from components.passwords import MLOPS, password
from stacks import platform
from stacks.config.inputs import StackInputs
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.layers.releases import Releases
from stacks.targets.cpouta import infrastructure
from stacks.targets.cpouta.outputs import outputs
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import CpoutaSettings
from stacks.targets.cpouta.target import KIND_CLASS


def deploy(inputs: StackInputs[CpoutaSettings], releases: Releases) -> Mapping[str, Any]:
    """Register what OpenStack gives and the platform on it; return the stack's outputs.

    The cluster is on the volume, so a replaced VM keeps it. Objects in the cluster also remain when the stack is
    destroyed: deleted claims would delete the data of the platform's pods, and the volume is protected.
    docs/cpouta.md describes how the next update adopts the cluster.
    """
    resolved = inputs.resolved
    facts = inputs.site if isinstance(inputs.site, ProjectFacts) else None
    made = infrastructure.create(inputs.settings, facts)
    cluster = Cluster(
        provider=kubernetes_provider(
            "cluster",
            kubeconfig=made.cluster.kubeconfig,
            identifier=made.volume_id,
            limits=inputs.settings.kubernetes.client.limits,
        ),
        pools=resolved.pools,
        placement=Placement(gpus=resolved.gpu_nodes),
        fabric=resolved.fabric,
        gpu_resource=resolved.gpu_resource,
        storage=StorageClasses(block=KIND_CLASS, files=KIND_CLASS, logs=KIND_CLASS, shared=inputs.target.shared_access),
        has_admission_policies=resolved.has_admission_policies,
        kept=True,
        data_password=_data_password(inputs),
        ready=[made.cluster],
    )
    own = outputs(inputs.settings, made)
    return {**platform.install(inputs, releases, cluster), **own, MLOPS_PASSWORD: cluster.data_password}


def _data_password(inputs: StackInputs[CpoutaSettings]) -> pulumi.Output[str]:
    """Return the password of the data on the volume.

    It is protected like the volume, and always created: the databases accept no other password, and a stack that was
    destroyed and deployed again needs the same one.
    """
    made = password(MLOPS, opts=pulumi.ResourceOptions(protect=inputs.settings.openstack.volume.protect))
    given = inputs.secrets.get(MLOPS_PASSWORD)
    return made if given is None else pulumi.Output.secret(given)
