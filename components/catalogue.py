"""Read every version that the platform installs on any cluster from catalogue.yaml, the only place that has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from components.images import Reference
from components.tables import Table


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One version of an upstream's manifest file, or of a dashboard.

    name, version, suffix: `<name>-<version>.<suffix>` is the file's name in a mirror.
    url:    where upstream publishes it.
    sha256: digest of the file, hexadecimal. None until a maintainer has verified one.
    images: the images its workloads run, by the name of the container.
    source: the document that names the file and the images.
    """

    name: str
    version: str
    url: str
    sha256: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    source: str
    suffix: str = "yaml"

    @property
    def file(self) -> str:
        """The file's name in a mirror."""
        return f"{self.name}-{self.version}.{self.suffix}"


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One version of an upstream's Helm chart.

    name, version: as the repository has them; `<name>-<version>.tgz` is the file's name in a mirror.
    repository: address of the repository's index, or oci://.
    archive: https address of the archive in the index. None for an OCI registry, or until a maintainer has verified a
        digest.
    sha256: digest of the archive, hexadecimal. None until a maintainer has verified one.
    registries: the chart's values for the location of its images, as paths with dots, and what upstream has there
        behind the registry's host (the chart's values.yaml).
    source: the document that names repository and version.
    """

    name: str
    version: str
    repository: str
    archive: str | None = None
    sha256: str | None = None
    registries: Mapping[str, str]
    source: str

    @property
    def file(self) -> str:
        """The archive's name in a mirror."""
        return f"{self.name}-{self.version}.tgz"


@dataclass(frozen=True, kw_only=True)
class Image:
    """A container image that the platform runs by itself, outside of any upstream manifest.

    reference: with a tag, and the digest that was verified for it.
    """

    reference: str
    source: str

    @property
    def tag(self) -> str:
        """The tag that the reference has."""
        return Reference.parse(self.reference).tag or ""

    def with_tag(self, tag: str) -> str:
        """Return the reference in another tag; in its own with its digest."""
        return str(Reference.parse(self.reference).with_tag(tag))


@dataclass(frozen=True, kw_only=True)
class NicSoftware:
    """What one version of NVIDIA's network operator is released with; a NicClusterPolicy has to name each image.

    operator: version of the chart. driver: the DOCA-OFED driver, whose tag gets the node's system appended by the
    operator, so that no digest is known for it. sriov_plugin, shared_plugin: the two device plugins.
    """

    operator: str
    driver: str
    sriov_plugin: str
    shared_plugin: str
    source: str

    def with_driver(self, version: str | None) -> str:
        """Return the driver's image in another version, or in its default version for None."""
        return self.driver if version is None else str(Reference.parse(self.driver).with_tag(version))


@dataclass(frozen=True, kw_only=True)
class NotebookVersion:
    """A version of the images of notebooks that OpenShift AI brings.

    name: their tag. python: of its programs. since: the first release of OpenShift AI in the catalogue that has it.
    """

    name: str
    python: str
    since: str


@dataclass(frozen=True, kw_only=True)
class NotebookImage:
    """An image of notebooks that OpenShift AI brings, as an ImageStream in its namespace of applications.

    name: as the dashboard shows it. stream: the ImageStream. versions: those of its tags that notebooks are made of,
    newest first.
    """

    name: str
    stream: str
    versions: tuple[NotebookVersion, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class OpenShiftAi:
    """A release of OpenShift AI, which OpenShift's Operator Lifecycle Manager installs from a catalog.

    version: minor. csv: its ClusterServiceVersion. channels: those that lead to it, the one that MLBatch takes first.
    openshift: the first and the last minor version of OpenShift whose catalog has it.
    kueue: the Kueue that it brings, or that Red Hat build of Kueue contains (brings_kueue is then false).
    flavors: ResourceFlavors that its operator creates. support: until when Red Hat supports it.
    patched_whole: MLBatch replaces more of its
        operator's manifests than the configurations of Kueue and of the training operator.
    ready_with_errors: its DataScienceCluster reports Ready although a component has failed, and has a condition for
        each component.
    cluster_digest, initialization_digest: SHA-256 of the definitions of DataScienceCluster and DSCInitialization, to
        which the tests hold what is declared (`config/crd/bases` of the source).
    """

    version: str
    csv: str
    channels: tuple[str, ...]
    openshift: tuple[str, str]
    kueue: str
    brings_kueue: bool = True
    flavors: tuple[str, ...] = ()
    support: str
    patched_whole: bool = False
    ready_with_errors: bool = False
    cluster_digest: str
    initialization_digest: str
    source: str


@dataclass(frozen=True, kw_only=True)
class RedHatOperator:
    """An operator in OpenShift's catalog of Red Hat's operators.

    csv: its ClusterServiceVersion. channel: leads to it. namespace: where it is installed.
    watches_own: its OperatorGroup has only its own namespace. Otherwise all.
    """

    package: str
    csv: str
    channel: str
    namespace: str
    watches_own: bool
    source: str


@dataclass(frozen=True, kw_only=True)
class CertifiedGpuOperator:
    """A release of NVIDIA's GPU operator in OpenShift's catalog of certified operators.

    version: as its chart's. csv: its ClusterServiceVersion. channel: leads to it and to its patches.
    openshift: the first and the last minor version of OpenShift that its bundle names.
    policy_digest: SHA-256 of the definition of ClusterPolicy. The tests check the declared object against it.
    """

    version: str
    csv: str
    channel: str
    openshift: tuple[str, str]
    policy_digest: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A Git repository at a commit.

    name: of the folder that it is cloned to. content: digest of its installed part (components/kubernetes/
    kustomize.py), empty if no part is installed.
    """

    name: str
    url: str
    commit: str
    content: str = ""
    source: str

    @property
    def archive(self) -> Artifact:
        """The archive of its files, as GitHub makes one of any commit; its packing may change."""
        url = f"{self.url}/archive/{self.commit}.tar.gz"
        return Artifact(name=self.name, version=self.commit, url=url, suffix="tar.gz", source=self.source)


KUEUE: Final = "kueue"
APPWRAPPER: Final = "appwrapper"
SCHEDULER_PLUGINS: Final = "scheduler-plugins"
"""The definition of PodGroup, and the images."""
ELASTIC_QUOTAS: Final = "scheduler-plugins-elasticquotas"
"""The definition of ElasticQuota, which the controller of scheduler-plugins cannot start without."""

JOB_SET: Final = "jobset"
TRAINING_OPERATOR: Final = "training-operator"
"""The definition of PyTorchJob, and the image."""
TRAINER_KINDS: Final = ("trainer-trainjobs", "trainer-clustertrainingruntimes", "trainer-trainingruntimes")
"""The definitions of Trainer's kinds; the first one has the image of Trainer."""
RAY_KINDS: Final = ("kuberay-rayclusters", "kuberay-rayjobs", "kuberay-rayservices")
"""The definitions of Ray's kinds; the first one has the image of KubeRay."""
RAY_ROLE: Final = "kuberay-role"
"""What KubeRay may do."""


class _Catalogue(Table):
    artifacts: tuple[Artifact, ...]
    openshift_ai: tuple[OpenShiftAi, ...]
    red_hat_operators: tuple[RedHatOperator, ...]
    certified_gpu_operators: tuple[CertifiedGpuOperator, ...]
    dashboards: tuple[Artifact, ...]
    charts: tuple[Chart, ...]
    nic_software: tuple[NicSoftware, ...]
    gpu_drivers: Mapping[str, str]
    images: Mapping[str, Image]
    ray_python: str
    ray_train_packages: tuple[str, ...]
    hub_commits: Mapping[str, str]
    demo_packages: Mapping[str, tuple[str, ...]]
    notebook_images: tuple[NotebookImage, ...]
    repositories: Mapping[str, Repository]
    moved_images: Mapping[str, str]


_CATALOGUE: Final = _Catalogue.load(__name__)
ARTIFACTS: Final = _CATALOGUE.artifacts
OPENSHIFT_AI: Final = _CATALOGUE.openshift_ai
RED_HAT_OPERATORS: Final = _CATALOGUE.red_hat_operators
CERTIFIED_GPU_OPERATORS: Final = _CATALOGUE.certified_gpu_operators
DASHBOARDS: Final = _CATALOGUE.dashboards
CHARTS: Final = _CATALOGUE.charts
NIC_SOFTWARE: Final = _CATALOGUE.nic_software
GPU_DRIVERS: Final = _CATALOGUE.gpu_drivers
IMAGES: Final = _CATALOGUE.images
NVSHARE_LIBRARY: Final = IMAGES["nvshare_library"]
NVSHARE_PLUGIN: Final = IMAGES["nvshare_plugin"]
NVSHARE_SCHEDULER: Final = IMAGES["nvshare_scheduler"]
NVSHARE_MATMUL: Final = IMAGES["nvshare_matmul"]
PYTHON: Final = IMAGES["python"]
SAKKARA: Final = IMAGES["sakkara"]
NFS_PROVISIONER: Final = IMAGES["nfs_provisioner"]
BUSYBOX: Final = IMAGES["busybox"]
ALPINE: Final = IMAGES["alpine"]
AUTOPILOT: Final = IMAGES["autopilot"]
PYTORCH: Final = IMAGES["pytorch"]
NCCL_TESTS: Final = IMAGES["nccl_tests"]
"""The base of images/nccltest."""
VLLM: Final = IMAGES["vllm"]
RAY: Final = IMAGES["ray"]
RAY_TRAIN: Final = IMAGES["ray_train"]
SEAWEEDFS: Final = IMAGES["seaweedfs"]
MINIO: Final = IMAGES["minio"]
MINIO_ENTRYPOINT: Final = "/usr/bin/docker-entrypoint.sh"
"""The program of that image that starts the server. The image has no program `minio`."""
RAY_PYTHON: Final = _CATALOGUE.ray_python
RAY_TRAIN_PACKAGES: Final = _CATALOGUE.ray_train_packages
HUB_COMMITS: Final = _CATALOGUE.hub_commits
HUB_BRANCH: Final = "main"
"""The branch that Hugging Face's hub serves by default."""
DEMO_PACKAGES: Final = _CATALOGUE.demo_packages
NOTEBOOK_IMAGES: Final = _CATALOGUE.notebook_images
REPOSITORIES: Final = _CATALOGUE.repositories
DEMOS: Final = REPOSITORIES["demos"]
MLOPS: Final = REPOSITORIES["mlops"]
PIPELINES: Final = REPOSITORIES["pipelines"]
MOVED_IMAGES: Final = _CATALOGUE.moved_images


Entry = TypeVar("Entry")


def entry(entries: Iterable[Entry], **wanted: str) -> Entry:
    """Return the first entry whose fields have these values. Raises KeyError if no entry has them."""
    for each in entries:
        if all(getattr(each, name) == value for name, value in wanted.items()):
            return each
    raise KeyError(f"{' '.join(wanted.values())} is not in the catalogue")


def versions(name: str, artifacts: Sequence[Artifact] = ARTIFACTS) -> tuple[str, ...]:
    """Return the versions of an upstream that a catalogue knows, newest first."""
    return tuple(artifact.version for artifact in artifacts if artifact.name == name)


def find(name: str, version: str, artifacts: Sequence[Artifact] = ARTIFACTS) -> Artifact:
    """Return the entry of an upstream's version. Raises KeyError if it does not exist."""
    return entry(artifacts, name=name, version=version)


def chart_versions(name: str, charts: Sequence[Chart] = CHARTS) -> tuple[str, ...]:
    """Return the versions of a chart that a catalogue knows, the default one first."""
    return tuple(chart.version for chart in charts if chart.name == name)


def find_chart(name: str, version: str | None = None, charts: Sequence[Chart] = CHARTS) -> Chart:
    """Return the entry of a chart, by default of its default version. Raises KeyError if it does not exist."""
    return entry(charts, name=name, **({"version": version} if version is not None else {}))


def hub_revision(name: str) -> str:
    """Return the default revision of a model or data set: its pinned commit, or the default branch."""
    return HUB_COMMITS.get(name, HUB_BRANCH)
