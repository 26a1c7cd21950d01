"""The configuration of target `openshift`: that of an existing cluster, and what OpenShift's guides add to it."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from components import catalogue
from components.catalogue import CertifiedGpuOperator, OpenShiftAi
from components.nodes import certified_gpu_operator
from components.olm.subscription import CATALOG_NAMESPACE, Source
from components.openshift_ai import installation
from components.storage import nfs
from stacks.config.errors import ConfigError, Path, key, listed
from stacks.settings.gpu import ProvidedGpuSettings
from stacks.settings.model import SettingsModel, choice, form, matching, reject
from stacks.settings.monitoring import TAKEN_PORTS, MonitoringSettings
from stacks.settings.names import LABEL_LENGTH, ClassName, is_host, is_label, label_error, qualified_errors
from stacks.settings.workbench import WorkbenchSettings
from stacks.targets.existing.settings import ExistingSettings

_SERVER: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*")
_SERVERS: Final = "a name or an address, such as nfs.example.org or 192.168.98.96, without a scheme and a path"
_PATHS: Final = "the absolute path of a folder, such as /export/mlbatch, without .. and spaces"
"""Of `/` the provisioner cuts more off a volume's path than it should, and leaves the folder of a deleted claim where
it was (kubernetes-sigs/nfs-subdir-external-provisioner, provisioner.go, Delete)."""


def _server(value: str) -> str:
    if not is_host(value):
        reject(
            "this is not a valid name or address of an NFS server",
            "write only the server here, and the exported folder in path",
            expected=_SERVERS,
        )
    return value


class NfsSettings(SettingsModel):
    """StorageClass for an existing NFS server. Not created without `server`."""

    server: Annotated[str, matching(_server, _SERVER.pattern, _SERVERS)] | None = None
    """Name or address of the server. All nodes must have access."""
    path: (
        Annotated[
            str,
            form(
                r"(?!.*/\.\.(/|$))/[^/\s]+(/[^/\s]+)*",
                _PATHS,
                "this is not a valid path of an export",
                "write it as `showmount --exports <server>` shows it, without a / at its end",
            ),
        ]
        | None
    ) = None
    """Exported path. Each claim gets a folder in it."""
    storage_class: ClassName = "nfs-client"
    """Name of the StorageClass. The stack also uses it if neither `cluster.storageClasses` nor a layer names a class. A
    later change replaces the stack's claims, and deletes their data.
    """
    provisioner_name: str | None = None
    """Provisioner name in the StorageClass, such as k8s-sigs.io/nfs. Default: made from the release. Do not change it
    later: existing volumes would have no provisioner.
    """
    hostmount_anyuid: bool = False
    """Give the provisioner OpenShift's SCC hostmount-anyuid, as in MLBatch's tutorial. Its pod can then mount folders
    of the node. By default it has its own SCC, which allows only NFS.
    """
    release: str = nfs.RELEASE
    """Prefix of the names of the provisioner's objects, and of the default provisionerName."""

    @property
    def enabled(self) -> bool:
        """Whether there is to be a provisioner."""
        return self.server is not None

    @property
    def provisioner(self) -> str:
        """The name under which the provisioner serves the class."""
        return self.provisioner_name or nfs.provisioner_name(self.release)

    def check(self, path: Path) -> Iterator[ConfigError]:
        for name, value, missing, expected in (
            ("server", self.server, "the NFS server", _SERVERS),
            ("path", self.path, "the exported path", _PATHS),
        ):
            if value is None and self.model_fields_set:
                yield ConfigError(
                    (*path, name),
                    f"{missing} is not set",
                    f"set {key((*path, name))}, or remove {key(path)} if the cluster has its own storage classes",
                    expected=expected,
                )
        if self.provisioner_name is not None:
            yield from _provisioner((*path, "provisionerName"), self.provisioner_name)
        if not is_label(self.release) or not is_label(nfs.full_name(self.release)):
            yield ConfigError(
                (*path, "release"),
                "Kubernetes would reject names with this prefix",
                f"remove the key; the default is {nfs.RELEASE}",
                expected=f"at most {LABEL_LENGTH} of a-z, 0-9 and -, with a letter or digit first and last",
            )


def _provisioner(path: Path, name: str) -> Iterator[ConfigError]:
    """Yield a name that Kubernetes refuses, or keeps for volumes that it makes itself: no claim would ever be bound."""
    if name.startswith("kubernetes.io/"):
        yield ConfigError(
            path,
            "Kubernetes reserves this prefix for its own provisioners",
            "use a prefix with your own domain, or remove the key",
            expected="a name with another prefix, such as k8s-sigs.io/nfs",
        )
        return
    yield from qualified_errors(path, name, name)


class Operators(StrEnum):
    """Where Kueue, AppWrapper, KubeRay and the training operator come from.

    plain: upstream's manifests. openshift-ai: OpenShift AI, which the Operator Lifecycle Manager installs.
    """

    PLAIN = "plain"
    OPENSHIFT_AI = "openshift-ai"


_VERSIONS: Final = tuple(release.version for release in catalogue.OPENSHIFT_AI)


class OperatorsSettings(SettingsModel):
    """Operators that run jobs: the platform's or those of OpenShift AI. A workbench needs OpenShift AI."""

    operators: Operators = Operators.PLAIN
    """`plain`: Kueue, AppWrapper, KubeRay and the training operator from upstream manifests, as in `queueing`.
    `openshift-ai`: those of OpenShift AI, installed by Operator Lifecycle Manager. With version 2.x it brings Kueue and
    AppWrapper, with MLBatch's changes. With version 3.x, Red Hat build of Kueue is installed with it.
    """
    version: Annotated[str, choice("OpenShift AI version", _VERSIONS)] = _VERSIONS[0]
    """Version of OpenShift AI."""
    channel: str | None = None
    """Channel of the catalog that has this version. Default: the first one in docs/openshift.md."""
    catalog: str = installation.CATALOG
    """Name of the CatalogSource with OpenShift AI, such as a mirror."""
    catalog_namespace: str = CATALOG_NAMESPACE
    """Namespace of the CatalogSource."""
    approve: bool = True
    """Approve the InstallPlan for this version, and no other. If false, the update waits until an administrator
    approves it.
    """
    install_minutes: Annotated[int, Field(ge=5, le=120)] = 30
    """Maximum minutes to wait for the operator, and again for its components."""
    open_to_all: bool = False
    """From 2.25 on: let all pods of the cluster connect to OpenShift AI's operators, like MLBatch's NetworkPolicy. If
    false, the stack's own NetworkPolicy admits only the API server, OpenShift's Prometheus and the operators. OpenShift
    AI's NetworkPolicy `redhat-ods-applications` admits all pods in either case.
    """

    @property
    def release(self) -> OpenShiftAi:
        return catalogue.entry(catalogue.OPENSHIFT_AI, version=self.version)

    @property
    def chosen_channel(self) -> str:
        """The channel that the settings name, else the catalogue's first."""
        return self.channel or self.release.channels[0]

    @property
    def source(self) -> Source:
        return Source(channel=self.chosen_channel, catalog=self.catalog, catalog_namespace=self.catalog_namespace)

    def check(self, path: Path) -> Iterator[ConfigError]:
        if self.operators is Operators.PLAIN:
            yield from self.unused(
                path,
                sorted(self.model_fields_set - {"operators"}),
                "this key is for OpenShift AI, but the stack installs the platform's own operators",
                f"remove the key, or set {key((*path, 'operators'))} to {Operators.OPENSHIFT_AI}",
            )
        elif self.chosen_channel not in self.release.channels:
            yield ConfigError(
                (*path, "channel"),
                f"this is not a catalog channel with OpenShift AI {self.version}",
                f"remove the key; the default is {self.release.channels[0]}",
                expected=listed(self.release.channels),
            )
        elif self.open_to_all and self.release.patched_whole:
            yield ConfigError(
                (*path, "openToAll"),
                f"OpenShift AI {self.version} has no NetworkPolicies that this key could open",
                "remove the key",
                expected="no key before 2.25",
            )
        for name, value in (("catalog", self.catalog), ("catalogNamespace", self.catalog_namespace)):
            yield from label_error((*path, name), value)


_GPU_OPERATORS: Final = tuple(release.version for release in catalogue.CERTIFIED_GPU_OPERATORS)
_OF_OPERATOR: Final = (
    "operator_version",
    "catalog",
    "catalog_namespace",
    "approve",
    "install_minutes",
    "install_driver",
    "install_toolkit",
    "drain_for_drivers",
)


class OpenShiftGpuSettings(ProvidedGpuSettings):
    """Drivers and device plugins of the GPU nodes."""

    operator: bool = False
    """Install NVIDIA's GPU operator with Operator Lifecycle Manager, and its ClusterPolicy. Needs Node Feature
    Discovery. Set to false if the cluster has the operator.
    """
    operator_version: Annotated[str, choice("certified GPU operator version", _GPU_OPERATORS)] = _GPU_OPERATORS[0]
    """Version of NVIDIA's GPU operator, in the catalog of certified operators."""
    catalog: str = certified_gpu_operator.CATALOG
    """Name of the CatalogSource with the operator, such as a mirror."""
    catalog_namespace: str = CATALOG_NAMESPACE
    """Namespace of the CatalogSource."""
    approve: bool = True
    """Approve the InstallPlan for this version, and no other. If false, the update waits until an administrator
    approves it.
    """
    install_minutes: Annotated[int, Field(ge=5, le=180)] = 60
    """Maximum minutes to wait for the operator, and again for the drivers of all nodes."""

    @property
    def release(self) -> CertifiedGpuOperator:
        return catalogue.entry(catalogue.CERTIFIED_GPU_OPERATORS, version=self.operator_version)

    @property
    def brings_metrics(self) -> bool:
        """No: OpenShift's own Prometheus finds them, and another one reads them by the operator's namespace."""
        return False

    @property
    def source(self) -> Source:
        return Source(channel=self.release.channel, catalog=self.catalog, catalog_namespace=self.catalog_namespace)

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.operator:
            yield from self.unused(
                path,
                _OF_OPERATOR,
                "this key is for a GPU operator that the stack installs, but the cluster's own is used",
                f"remove the key, or set {key((*path, 'operator'))} to true",
            )
        if self.driver_version is not None:
            yield ConfigError(
                (*path, "driverVersion"),
                "a certified GPU operator installs only its certified driver",
                f"remove the key, and choose {key((*path, 'operatorVersion'))}",
            )
        for name, value in (("catalog", self.catalog), ("catalogNamespace", self.catalog_namespace)):
            yield from label_error((*path, name), value)


_OPENSHIFTS_PORTS: Final[Mapping[int, str]] = {
    1936: "the router of OpenShift",
    9099: "the version operator of OpenShift",
    9100: "the node exporter of OpenShift",
    9101: "the node exporter of OpenShift",
    22623: "the machine config server of OpenShift",
}
"""Ports of nodes by who listens there (docs.openshift.com, "Networking requirements for user-provisioned
infrastructure")."""


class OpenShiftMonitoringSettings(MonitoringSettings):
    """Prometheus, Alertmanager and Grafana."""

    taken_ports: ClassVar[Mapping[int, str]] = {**TAKEN_PORTS, **_OPENSHIFTS_PORTS}

    enabled: bool = False
    definitions: bool = False
    node_exporter_port: Annotated[int, Field(ge=1024, le=65535)] = 9110
    gpu_operator_namespace: str | None = "nvidia-gpu-operator"
    privileged_accounts: bool = False
    """Let the chart's seven service accounts run privileged pods, as in MLBatch's tutorial. If false, each gets only
    the rights that its pods use: its own user, and access to the node for the node exporter.
    """

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from super().check(path)
        if self.enabled and self.definitions:
            yield ConfigError(
                (*path, "definitions"),
                "OpenShift has its own version of these definitions and reverts changes",
                "remove the key",
            )


class OpenShiftSettings(ExistingSettings):
    """Configuration of a stack on OpenShift."""

    openshift: OperatorsSettings = OperatorsSettings()
    gpu: OpenShiftGpuSettings = OpenShiftGpuSettings()
    nfs: NfsSettings = NfsSettings()
    monitoring: OpenShiftMonitoringSettings = OpenShiftMonitoringSettings()
    workbench: WorkbenchSettings = WorkbenchSettings()
