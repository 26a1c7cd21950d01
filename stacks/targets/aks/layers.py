"""What the platform has on AKS alone: labels of physical hosts, blob containers as volumes, Azure's node checks."""

from collections.abc import Mapping
from dataclasses import replace

import pulumi

from components import catalogue
from components.azure.baselines import BASELINES
from components.azure.blob_driver import BlobDriver, BlobDriverArgs
from components.azure.blob_volume import (
    Access,
    BlobVolume,
    BlobVolumeArgs,
    BlockCache,
    ManagedIdentity,
    SasToken,
    WorkloadIdentity,
)
from components.azure.catalogue import CHARTS
from components.azure.node_check import NCCL_PROGRAM, NODE_CHECK, SHARED_MEMORY, NodeCheck, NodeCheckArgs
from components.azure.node_labeler import NodeLabeler, NodeLabelerArgs
from components.azure.storage_classes import StorageClasses, StorageClassesArgs
from components.catalogue import find_chart
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import Namespace
from components.layer import Layer
from components.nodes.nvme_scratch import POOL_LABEL
from stacks.config.inputs import StackInputs
from stacks.config.secrets import BLOB_SAS_TOKEN
from stacks.layers import health
from stacks.layers.site import Namespaces, SiteLayers
from stacks.targets.aks.infrastructure import Infrastructure
from stacks.targets.aks.settings import AksSettings
from stacks.targets.aks.settings.storage import VolumeSettings


class AksLayers(SiteLayers):
    """The layers of AKS, each where the settings switch it on."""

    def __init__(self, inputs: StackInputs[AksSettings], azure: Infrastructure, cluster: Cluster) -> None:
        self._inputs, self._azure, self._cluster = inputs, azure, cluster
        self.has_node_agents = inputs.settings.gpu.node_labels
        self.own_checks = (NODE_CHECK,)
        self.gate_program = NCCL_PROGRAM
        self.scratch_nodes = replace(cluster.placement.gpus, node_selector=POOL_LABEL, any_of=())

    def node_agents(self, namespace: Namespace) -> None:
        if self._inputs.settings.gpu.node_labels:
            image = self._inputs.mirror.image(catalogue.PYTHON.reference)
            nodes = self.kept_usable(self._cluster.placement.gpus)
            args = NodeLabelerArgs(namespace=namespace.name, image=image, nodes=nodes)
            NodeLabeler("node-labeler", args, self._cluster.options())

    def volumes(self, namespaces: Namespaces) -> Mapping[str, pulumi.Input[str]]:
        """Register classes, the Blob driver where a volume needs it, and the volumes. Return all claims."""
        settings, options = self._inputs.settings.storage, self._cluster.options
        azure = self._inputs.settings.azure
        classes = StorageClassesArgs(
            network=azure.cluster_name,
            resource_group=azure.resource_group,
            blob=bool(settings.volumes),
            reclaim=settings.files.reclaim,
        )
        StorageClasses("classes", classes, options())
        found: dict[str, pulumi.Input[str]] = {claim.name: claim.name for claim in settings.claims}
        if not settings.volumes:
            return found
        chart = self._inputs.mirror.chart(find_chart("blob-csi-driver", settings.blob_driver.version, CHARTS))
        driver = BlobDriver(
            "blob-driver", BlobDriverArgs(chart=chart, blobfuse=settings.blob_driver.blobfuse), options()
        )
        for volume in settings.volumes:
            namespace = volume.home(self._inputs.settings.workloads)
            args = BlobVolumeArgs(
                claim=volume.name,
                namespace=namespace,
                account=volume.account or self._azure.account or "",
                container=volume.container,
                access=self._access(volume, namespace),
                read_only=volume.read_only,
                capacity=volume.capacity,
                cache=BlockCache(block_kib=volume.block_kib),
            )
            identity = [self._azure.identities[namespace]] if volume.uses_namespace else []
            needs = options(driver, *identity, *self._azure.storage, namespaces.find(namespace))
            found[volume.name] = BlobVolume(volume.name, args, needs).claim
        return found

    def _access(self, volume: VolumeSettings, namespace: str) -> Access:
        if volume.uses_token:
            return SasToken(token=self._inputs.secrets[BLOB_SAS_TOKEN])
        if volume.uses_namespace:
            return WorkloadIdentity(client_id=self._azure.identities[namespace].client)
        return ManagedIdentity(client_id=self._azure.kubelet_client)

    def checks(self, reporter: Layer) -> None:
        check, image = self._inputs.settings.health.node_check, self._inputs.resolved.gate_image
        if not check.enabled or image is None:
            return
        checker = self._inputs.mirror.image(image)
        args = NodeCheckArgs(
            check=health.check_args(self._inputs, self._cluster, self, check, checker, SHARED_MEMORY),
            baseline=BASELINES[self._cluster.pool.shape.instance_type],
            kernel_log=check.kernel_log,
        )
        NodeCheck(NODE_CHECK.name, args, self._cluster.options(reporter))
