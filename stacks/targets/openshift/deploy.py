"""Target `openshift`: its storage, and the platform on the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi

from components import catalogue
from components.kubernetes.cluster import Cluster, StorageClasses
from components.layer import Layer
from components.nodes import certified_gpu_operator
from components.nodes.certified_gpu_operator import CertifiedGpuOperatorArgs, CertifiedOperator
from components.olm.steps import Installer
from components.openshift_ai import installation, version_3
from components.openshift_ai.configuration import Configuration
from components.openshift_ai.installation import OpenShiftAiArgs, OpenShiftAiOperators
from components.openshift_ai.version_3 import OpenShiftAi3, OperatorsArgs, RedHatKueue
from components.queueing.fault_tolerance import FaultTolerance
from components.storage.nfs import NfsProvisioner, NfsProvisionerArgs
from stacks import platform
from stacks.config.inputs import StackInputs
from stacks.config.secrets import OBJECT_STORE_SECRET_KEY
from stacks.layers import workbench
from stacks.layers.releases import Releases
from stacks.layers.scheduling import Scheduling
from stacks.targets.existing.deploy import ExistingLayers, cluster_of
from stacks.targets.openshift import operators
from stacks.targets.openshift.settings import OpenShiftSettings, Operators


class OpenShiftLayers(ExistingLayers):
    """Claims that are there already, and the workbench."""

    def __init__(self, inputs: StackInputs[OpenShiftSettings], cluster: Cluster) -> None:
        super().__init__(list(inputs.resolved.volumes))
        self._inputs, self._cluster = inputs, cluster
        self.privileged_monitoring = inputs.settings.monitoring.privileged_accounts

    def operators(self, scheduling: Scheduling, fault_tolerance: FaultTolerance) -> Layer | None:
        """Register OpenShift AI where it brings the operators."""
        settings, cluster = self._inputs.settings, self._cluster
        if self._inputs.resolved.installs_operators:
            return None
        configuration = Configuration(
            release=settings.openshift.release,
            scheduler=scheduling.scheduler,
            binds_gangs=scheduling.has_pod_groups,
            start_seconds=settings.recovery.start_timeout_minutes * 60,
            fault_tolerance=fault_tolerance,
        )
        args = OpenShiftAiArgs(
            configuration=configuration,
            source=settings.openshift.source,
            installer=self._installer(installation.OPERATOR_NAMESPACE),
            approve=settings.openshift.approve,
            minutes=settings.openshift.install_minutes,
            workbenches=settings.workbench.enabled,
            open_to_all=settings.openshift.open_to_all,
        )
        return OpenShiftAiOperators("openshift-ai", args, cluster.options(*scheduling.ready))

    def kueue(self, definitions: Sequence[pulumi.Resource]) -> Layer | None:
        """Register Red Hat build of Kueue for OpenShift AI 3."""
        if not self._inputs.resolved.brings:
            return None
        return RedHatKueue("red-hat-kueue", self._red_hats(), self._cluster.options(*definitions))

    def job_operators(self, kueue: Sequence[Layer]) -> Layer | None:
        """Register OpenShift AI 3."""
        if not self._inputs.resolved.brings:
            return None
        return OpenShiftAi3("openshift-ai", self._red_hats(), self._cluster.options(*kueue))

    def _red_hats(self) -> OperatorsArgs:
        settings = self._inputs.settings.openshift
        return OperatorsArgs(
            release=settings.release,
            source=settings.source,
            installer=self._installer,
            approve=settings.approve,
            minutes=settings.install_minutes,
            existing=operators.existing(self._inputs.require_cluster().facts),
            open_to_all=settings.open_to_all,
        )

    def gpu_operator(self) -> Layer | None:
        gpu, cluster = self._inputs.settings.gpu, self._cluster
        if not gpu.operator:
            return None
        args = CertifiedGpuOperatorArgs(
            release=gpu.release,
            source=gpu.source,
            installer=self._installer(certified_gpu_operator.NAMESPACE),
            nodes=self.kept_usable(cluster.placement.gpus),
            approve=gpu.approve,
            minutes=gpu.install_minutes,
            brings_driver=gpu.install_driver,
            brings_toolkit=gpu.install_toolkit,
            drain=gpu.drain_for_drivers,
        )
        return CertifiedOperator("gpu-operator", args, cluster.options(gpus=True))

    def _installer(self, namespace: str) -> Installer:
        """Return what takes the steps of an installation by OLM."""
        return Installer(
            namespace=namespace,
            image=self._inputs.mirror.image(catalogue.PYTHON.reference),
            nodes=self._cluster.placement.system,
            pod_security=self._cluster.pod_security,
        )

    def applications(self, queues: Sequence[Layer], flavor: pulumi.Input[str] | None) -> None:
        workbench.install(
            self._inputs.settings.workbench,
            self._cluster,
            self._inputs.mirror,
            flavor=flavor,
            secret_key=self._inputs.secrets.get(OBJECT_STORE_SECRET_KEY),
            protect=self._inputs.settings.tenancy.protect,
            needs=queues,
        )


def deploy(inputs: StackInputs[OpenShiftSettings], releases: Releases) -> Mapping[str, Any]:
    """Register the storage and the platform; return the stack's outputs.

    leftByOlm: how to find what `pulumi destroy` cannot remove, to be asked for before; absent without OLM.
    """
    cluster = cluster_of(inputs)
    if inputs.settings.nfs.enabled:
        cluster = _with_nfs(inputs, cluster)
    outputs = platform.install(inputs, releases, cluster, OpenShiftLayers(inputs, cluster))
    left = _left_by_olm(inputs)
    return {**outputs, "leftByOlm": left} if left else outputs


def _left_by_olm(inputs: StackInputs[OpenShiftSettings]) -> Sequence[str]:
    settings = inputs.settings
    by_operators: Sequence[str] = ()
    if settings.openshift.operators is Operators.OPENSHIFT_AI:
        existing = operators.existing(inputs.require_cluster().facts)
        by_operators = installation.LEFT if settings.openshift.release.brings_kueue else version_3.left(existing)
    return [*by_operators, *(certified_gpu_operator.LEFT if settings.gpu.operator else ())]


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
