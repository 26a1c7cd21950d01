"""Every version that the platform installs on any cluster, pinned in one place; what one cloud alone has is beside it.

An entry says where upstream publishes the bytes, which images they run, and where both statements come from. A digest
stands here only once it was verified: `make lock` writes those of files and charts beside their addresses, those of
images into their references, behind the tag. Where it is absent, the bytes are taken as they are served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from components.images import Reference


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One version of an upstream's manifest file, or of a dashboard.

    name, version, suffix: `<name>-<version>.<suffix>` is the file's name in a mirror.
    url:    where upstream publishes it.
    sha256: digest of the file, hexadecimal; None while nobody has verified one.
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
    archive: https address of the archive that the index names, from which it is then read; None in an OCI registry, and
        while nobody has verified a digest.
    sha256: digest of the archive, hexadecimal; None while nobody has verified one.
    registries: the values by which the chart is told where its images are, as paths with dots, and what upstream has
        there behind the registry's host (the chart's values.yaml).
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
        """Return the driver's image in another version, or in its own where that is None."""
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
    kueue: the Kueue that it brings. patched_whole: MLBatch replaces more of its
        operator's manifests than the configurations of Kueue and of the training operator.
    ready_with_errors: its DataScienceCluster calls itself Ready although a component has failed, and tells of each
        component in a condition.
    cluster_digest, initialization_digest: SHA-256 of the definitions of DataScienceCluster and DSCInitialization, to
        which the tests hold what is declared (`config/crd/bases` of the source).
    """

    version: str
    csv: str
    channels: tuple[str, ...]
    openshift: tuple[str, str]
    kueue: str
    patched_whole: bool = False
    ready_with_errors: bool = False
    cluster_digest: str
    initialization_digest: str
    source: str


@dataclass(frozen=True, kw_only=True)
class CertifiedGpuOperator:
    """A release of NVIDIA's GPU operator in OpenShift's catalog of certified operators.

    version: as its chart's. csv: its ClusterServiceVersion. channel: leads to it and to its patches.
    openshift: the first and the last minor version of OpenShift that its bundle names.
    policy_digest: SHA-256 of the definition of ClusterPolicy, to which the tests hold what is declared.
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

    name: of the folder that it is cloned to. content: digest of what is installed of it (components/kubernetes/
    kustomize.py), empty where nothing is.
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

_RAY_FILES: Final = "https://github.com/ray-project/kuberay/tree/v1.6.2/ray-operator/config"
ARTIFACTS: Final = (
    Artifact(
        name=KUEUE,
        version="v0.19.2",
        url="https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml",
        images={"manager": "registry.k8s.io/kueue/kueue:v0.19.2"},
        source="https://kueue.sigs.k8s.io/docs/installation/",
    ),
    Artifact(
        name=KUEUE,
        version="v0.18.4",
        url="https://github.com/kubernetes-sigs/kueue/releases/download/v0.18.4/manifests.yaml",
        images={"manager": "registry.k8s.io/kueue/kueue:v0.18.4"},
        source="https://kueue.sigs.k8s.io/docs/installation/",
    ),
    Artifact(
        name=APPWRAPPER,
        version="v1.2.2",
        url="https://github.com/project-codeflare/appwrapper/releases/download/v1.2.2/install.yaml",
        images={"manager": "quay.io/ibm/appwrapper:v1.2.2"},
        source="https://github.com/project-codeflare/appwrapper/blob/v1.2.2/README.md",
    ),
    Artifact(
        name=SCHEDULER_PLUGINS,
        version="v0.34.7",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.34.7/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        sha256="e87980a29866bbf8a4df5452e03d876b6ae952c80b5443abdfaacee3b9adf60c",
        images={
            "scheduler": "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7",
            "controller": "registry.k8s.io/scheduler-plugins/controller:v0.34.7",
        },
        source="https://github.com/kubernetes-sigs/scheduler-plugins/blob/v0.34.7/README.md, Compatibility Matrix",
    ),
    Artifact(
        name=ELASTIC_QUOTAS,
        version="v0.34.7",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.34.7/config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        sha256="485c568dcf5e1b21eae98cac5afa60fade76248f01d1be7c537a1b216e28f657",
        images={},
        source="https://github.com/kubernetes-sigs/scheduler-plugins/tree/v0.34.7/config/crd",
    ),
    Artifact(
        name=SCHEDULER_PLUGINS,
        version="v0.33.5",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.33.5/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        images={
            "scheduler": "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.33.5",
            "controller": "registry.k8s.io/scheduler-plugins/controller:v0.33.5",
        },
        source="https://github.com/kubernetes-sigs/scheduler-plugins/blob/v0.33.5/README.md, Compatibility Matrix",
    ),
    Artifact(
        name=ELASTIC_QUOTAS,
        version="v0.33.5",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.33.5/config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        images={},
        source="https://github.com/kubernetes-sigs/scheduler-plugins/tree/v0.33.5/config/crd",
    ),
    Artifact(
        name=SCHEDULER_PLUGINS,
        version="v0.31.8",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.31.8/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        images={
            "scheduler": "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8",
            "controller": "registry.k8s.io/scheduler-plugins/controller:v0.31.8",
        },
        source="https://github.com/kubernetes-sigs/scheduler-plugins/blob/v0.31.8/README.md, Compatibility Matrix",
    ),
    Artifact(
        name=ELASTIC_QUOTAS,
        version="v0.31.8",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.31.8/config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        images={},
        source="https://github.com/kubernetes-sigs/scheduler-plugins/tree/v0.31.8/config/crd",
    ),
    Artifact(
        name=SCHEDULER_PLUGINS,
        version="v0.29.7",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.29.7/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        images={
            "scheduler": "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.29.7",
            "controller": "registry.k8s.io/scheduler-plugins/controller:v0.29.7",
        },
        source="https://github.com/kubernetes-sigs/scheduler-plugins/blob/v0.29.7/README.md, Compatibility Matrix",
    ),
    Artifact(
        name=ELASTIC_QUOTAS,
        version="v0.29.7",
        url="https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.29.7/config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        images={},
        source="https://github.com/kubernetes-sigs/scheduler-plugins/tree/v0.29.7/config/crd",
    ),
    Artifact(
        name=JOB_SET,
        version="v0.12.0",
        url="https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml",
        images={"manager": "registry.k8s.io/jobset/jobset:v0.12.0"},
        source="https://jobset.sigs.k8s.io/docs/installation/",
    ),
    Artifact(
        name=TRAINING_OPERATOR,
        version="v1.9.4",
        url="https://raw.githubusercontent.com/kubeflow/training-operator/v1.9.4/manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
        sha256="8b8a8a719cc94173169290251e817f7ac2bb425c20b6c2fa813397bcf4e932ed",
        images={"training-operator": "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489"},
        source="https://github.com/kubeflow/training-operator/blob/v1.9.4/manifests/overlays/standalone/"
        "kustomization.yaml",
    ),
    Artifact(
        name=TRAINER_KINDS[0],
        version="v2.3.0",
        url="https://raw.githubusercontent.com/kubeflow/trainer/v2.3.0/manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
        sha256="a742cafc5b5582640c7e0b7467c024fc237256fbca5ba0a9f0531dfb66d64416",
        images={"kubeflow-trainer-controller-manager": "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0"},
        source="https://github.com/kubeflow/trainer/blob/v2.3.0/manifests/overlays/manager/kustomization.yaml",
    ),
    Artifact(
        name=TRAINER_KINDS[1],
        version="v2.3.0",
        url="https://raw.githubusercontent.com/kubeflow/trainer/v2.3.0/manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
        sha256="ec84dc3388fcdbe8c61d3c247a773d14458dd9438e995bea8e50d2a18080eef9",
        images={},
        source="https://github.com/kubeflow/trainer/tree/v2.3.0/manifests/base/crds",
    ),
    Artifact(
        name=TRAINER_KINDS[2],
        version="v2.3.0",
        url="https://raw.githubusercontent.com/kubeflow/trainer/v2.3.0/manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
        sha256="69b8dbdf60a18e28cddcc2b8dfc4ce72a943e14b531b9389d593118faee4919f",
        images={},
        source="https://github.com/kubeflow/trainer/tree/v2.3.0/manifests/base/crds",
    ),
    Artifact(
        name=RAY_KINDS[0],
        version="v1.6.2",
        url="https://raw.githubusercontent.com/ray-project/kuberay/v1.6.2/ray-operator/config/crd/bases/ray.io_rayclusters.yaml",
        images={"kuberay-operator": "quay.io/kuberay/operator:v1.6.2"},
        source=f"{_RAY_FILES}/default/kustomization.yaml",
    ),
    Artifact(
        name=RAY_KINDS[1],
        version="v1.6.2",
        url="https://raw.githubusercontent.com/ray-project/kuberay/v1.6.2/ray-operator/config/crd/bases/ray.io_rayjobs.yaml",
        images={},
        source=f"{_RAY_FILES}/crd",
    ),
    Artifact(
        name=RAY_KINDS[2],
        version="v1.6.2",
        url="https://raw.githubusercontent.com/ray-project/kuberay/v1.6.2/ray-operator/config/crd/bases/ray.io_rayservices.yaml",
        images={},
        source=f"{_RAY_FILES}/crd",
    ),
    Artifact(
        name=RAY_ROLE,
        version="v1.6.2",
        url="https://raw.githubusercontent.com/ray-project/kuberay/v1.6.2/ray-operator/config/rbac/role.yaml",
        images={},
        source=f"{_RAY_FILES}/rbac",
    ),
)

_RHODS: Final = "https://github.com/red-hat-data-services/rhods-operator/tree"
_RHOAI_KUEUE: Final = (
    "Kueue: https://github.com/red-hat-data-services/kueue, branches rhoai-2.16 to rhoai-2.21, Makefile"
)
OPENSHIFT_AI: Final = (
    OpenShiftAi(
        version="2.19",
        csv="rhods-operator.2.19.0",
        channels=("stable", "stable-2.19", "fast"),
        openshift=("4.14", "4.21"),
        kueue="0.10.1",
        cluster_digest="9052652224bdf68f6e6c4bdf292b6d8c3f71add5d90e51ece031223e1845d964",
        initialization_digest="a6ae4e82f8796c1bfba12e6cc5484c332b7c21f3b5a627f5c6dd288bc3b76ca5",
        source=f"{_RHODS}/b3252434bf17ae8a35ecc6087abbd7ed46e4f870; {_RHOAI_KUEUE}",
    ),
    OpenShiftAi(
        version="2.21",
        csv="rhods-operator.2.21.0",
        channels=("fast",),
        openshift=("4.15", "4.21"),
        kueue="0.10.1",
        cluster_digest="82b9ede10cdd3d963cf71aa98c60d763ee8ad17bbae8884f8f2d24864cc3e39f",
        initialization_digest="71d49282726254597aad26a00eacee4449d08a1ee884e356a0678882cabcd6ca",
        source=f"{_RHODS}/a5f672b1bd04b64a130a1f5e7bdc3ed212d66d87; {_RHOAI_KUEUE}",
    ),
    OpenShiftAi(
        version="2.20",
        csv="rhods-operator.2.20.0",
        channels=("fast",),
        openshift=("4.14", "4.21"),
        kueue="0.10.1",
        cluster_digest="2b57812bffacffdc961f8de0c29860c49d53091ee83167c0346d204c7eec9340",
        initialization_digest="a6ae4e82f8796c1bfba12e6cc5484c332b7c21f3b5a627f5c6dd288bc3b76ca5",
        source=f"{_RHODS}/542cc1e28b4acc10264cef9d7fd85ad6ab09c1b2; {_RHOAI_KUEUE}",
    ),
    OpenShiftAi(
        version="2.16",
        csv="rhods-operator.2.16.0",
        channels=("stable", "stable-2.16", "eus-2.16", "fast"),
        openshift=("4.14", "4.21"),
        kueue="0.8.1",
        patched_whole=True,
        ready_with_errors=True,
        cluster_digest="377121554e8afb33063b40f8a8794ad4da8904a55fa6652faff747f3328f92cc",
        initialization_digest="f8c86dd8896441d132ba80b86120e7e7aeea80b05d7bf62244310c3e24e4f37a",
        source=f"{_RHODS}/07ea18b16136d3bc88778809d2bbc31f3936ad78; {_RHOAI_KUEUE}",
    ),
)
"""Those that MLBatch is set up with, its last stable one first (project-codeflare/mlbatch, `setup.RHOAI-v2.*`). Which
catalogs have them: red-hat-data-services/RHOAI-Build-Config, branches rhoai-2.16 to rhoai-2.25, `catalog/v4.*`."""

_GPU_BUNDLE: Final = "https://github.com/NVIDIA/gpu-operator/tree"
CERTIFIED_GPU_OPERATORS: Final = (
    CertifiedGpuOperator(
        version="v26.3.3",
        csv="gpu-operator-certified.v26.3.3",
        channel="v26.3",
        openshift=("4.14", "4.22"),
        policy_digest="78ace5b0b4ace2acd4e27618bcc67856f0109580fa373875ae58f5f00ddd67a4",
        source=f"{_GPU_BUNDLE}/v26.3.3/bundle",
    ),
    CertifiedGpuOperator(
        version="v26.7.0",
        csv="gpu-operator-certified.v26.7.0",
        channel="v26.7",
        openshift=("4.18", "4.22"),
        policy_digest="fcece7d07504e57fd5815525b3baa1eccc659a2f3b48895578be731dcde4042a",
        source=f"{_GPU_BUNDLE}/v26.7.0/bundle",
    ),
    CertifiedGpuOperator(
        version="v26.3.2",
        csv="gpu-operator-certified.v26.3.2",
        channel="v26.3",
        openshift=("4.14", "4.21"),
        policy_digest="78ace5b0b4ace2acd4e27618bcc67856f0109580fa373875ae58f5f00ddd67a4",
        source=f"{_GPU_BUNDLE}/v26.3.2/bundle",
    ),
)
"""Those of the charts below that hand GPUs out by CDI, the default first (bundle/metadata/annotations.yaml,
bundle/manifests)."""

DASHBOARDS: Final = (
    Artifact(
        name="grafana-dashboard-23123",
        version="1",
        url="https://grafana.com/api/dashboards/23123/revisions/1/download",
        suffix="json",
        source="https://grafana.com/grafana/dashboards/23123-autopilot-metrics/, which IBM/autopilot names, README.md",
    ),
    Artifact(
        name="grafana-dashboard-12239",
        version="2",
        url="https://grafana.com/api/dashboards/12239/revisions/2/download",
        suffix="json",
        source="https://grafana.com/grafana/dashboards/12239-nvidia-dcgm-exporter-dashboard/",
    ),
)
"""Dashboards that others publish, by their id and revision at grafana.com."""

_NETWORK_OPERATOR: Final = {
    "operator.repository": "nvidia/cloud-native",
    "operator.ofedDriver.initContainer.repository": "nvidia/mellanox",
}
"""As NVIDIA's hack/release.yaml fills them in."""
_GPU_OPERATOR: Final = {
    "operator.repository": "nvidia",
    "validator.repository": "nvidia",
    "driver.repository": "nvidia",
    "driver.manager.repository": "nvidia/cloud-native",
    "toolkit.repository": "nvidia/k8s",
    "devicePlugin.repository": "nvidia",
    "gfd.repository": "nvidia",
    "dcgmExporter.repository": "nvidia/k8s",
}
"""Of the parts that the platform switches on."""

CHARTS: Final[tuple[Chart, ...]] = (
    Chart(
        name="node-feature-discovery",
        version="0.18.3",
        repository="oci://registry.k8s.io/nfd/charts",
        registries={"image.repository": "nfd/node-feature-discovery"},
        source="https://github.com/kubernetes-sigs/node-feature-discovery/blob/v0.18.3/docs/deployment/helm.md; the "
        "version that NVIDIA/gpu-operator v26.3.3 depends on, deployments/gpu-operator/Chart.yaml",
    ),
    Chart(
        name="network-operator",
        version="26.1.0",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_NETWORK_OPERATOR,
        source="https://github.com/Mellanox/network-operator/blob/v26.1.0/deployment/network-operator/Chart.yaml",
    ),
    Chart(
        name="network-operator",
        version="26.1.2",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_NETWORK_OPERATOR,
        source="https://github.com/Mellanox/network-operator/blob/v26.1.2/deployment/network-operator/Chart.yaml",
    ),
    Chart(
        name="network-operator",
        version="26.4.0",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_NETWORK_OPERATOR,
        source="https://github.com/Mellanox/network-operator/blob/v26.4.0/deployment/network-operator/Chart.yaml",
    ),
    Chart(
        name="gpu-operator",
        version="v26.3.3",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_GPU_OPERATOR,
        source="https://github.com/NVIDIA/gpu-operator/tree/v26.3.3/deployments/gpu-operator",
    ),
    Chart(
        name="gpu-operator",
        version="v26.7.0",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_GPU_OPERATOR,
        source="https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/deployments/gpu-operator",
    ),
    Chart(
        name="gpu-operator",
        version="v26.3.2",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries=_GPU_OPERATOR,
        source="https://github.com/NVIDIA/gpu-operator/tree/v26.3.2/deployments/gpu-operator",
    ),
    Chart(
        name="gpu-operator",
        version="v24.9.0",
        repository="https://helm.ngc.nvidia.com/nvidia",
        registries={**_GPU_OPERATOR, "validator.repository": "nvidia/cloud-native"},
        source="https://github.com/NVIDIA/gpu-operator/tree/v24.9.0/deployments/gpu-operator",
    ),
    Chart(
        name="kube-prometheus-stack",
        version="88.6.1",
        repository="https://prometheus-community.github.io/helm-charts",
        registries={"global.imageRegistry": ""},
        source="https://github.com/prometheus-community/helm-charts/tree/main/charts/kube-prometheus-stack",
    ),
    Chart(
        name="volcano",
        version="1.15.0",
        repository="https://volcano-sh.github.io/helm-charts",
        registries={"basic.image_registry": ""},
        source="https://github.com/volcano-sh/helm-charts/blob/main/index.yaml",
    ),
    Chart(
        name="volcano",
        version="1.14.2",
        repository="https://volcano-sh.github.io/helm-charts",
        registries={"basic.image_registry": ""},
        source="https://github.com/volcano-sh/helm-charts/blob/main/index.yaml",
    ),
)


NIC_SOFTWARE: Final = (
    NicSoftware(
        operator="26.1.0",
        driver="nvcr.io/nvidia/mellanox/doca-driver:doca3.3.0-26.01-1.0.0.0-0",
        sriov_plugin="nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v26.1.0",
        shared_plugin="nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.1.0",
        source="https://github.com/Mellanox/network-operator/blob/v26.1.0/hack/release.yaml",
    ),
    NicSoftware(
        operator="26.1.2",
        driver="nvcr.io/nvidia/mellanox/doca-driver:doca3.3.0-26.01-1.0.0.0-0",
        sriov_plugin="nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v26.1.2",
        shared_plugin="nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.1.2",
        source="https://github.com/Mellanox/network-operator/blob/v26.1.2/hack/release.yaml",
    ),
    NicSoftware(
        operator="26.4.0",
        driver="nvcr.io/nvidia/mellanox/doca-driver:doca3.4.0-26.04-0.8.6.0-0",
        sriov_plugin="nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v26.4.0",
        shared_plugin="nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.4.0",
        source="https://github.com/Mellanox/network-operator/blob/v26.4.0/hack/release.yaml",
    ),
)

GPU_DRIVERS: Final[Mapping[str, str]] = {
    "v26.3.3": "580.126.20",
    "v26.7.0": "595.91.07",
    "v26.3.2": "580.126.20",
    "v24.9.0": "550.127.05",
}
"""The NVIDIA driver that each version of the GPU operator installs unless told otherwise (NVIDIA/gpu-operator,
deployments/gpu-operator/values.yaml)."""

NVSHARE_LIBRARY: Final = Image(
    reference="docker.io/grgalex/nvshare:libnvshare-v0.1-8c2f5b90",
    source="https://github.com/grgalex/nvshare/blob/1a8f211ae45a8aded4f54d0e1832c6073a4f19ef/kubernetes/manifests/"
    "device-plugin.yaml",
)
NVSHARE_PLUGIN: Final = Image(
    reference="docker.io/grgalex/nvshare:nvshare-device-plugin-v0.1-8c2f5b90",
    source="https://github.com/grgalex/nvshare/blob/1a8f211ae45a8aded4f54d0e1832c6073a4f19ef/kubernetes/manifests/"
    "device-plugin.yaml",
)
NVSHARE_SCHEDULER: Final = Image(
    reference="docker.io/grgalex/nvshare:nvshare-scheduler-v0.1-8c2f5b90",
    source="https://github.com/grgalex/nvshare/blob/1a8f211ae45a8aded4f54d0e1832c6073a4f19ef/kubernetes/manifests/"
    "scheduler.yaml",
)
NVSHARE_MATMUL: Final = Image(
    reference="docker.io/grgalex/nvshare:tf-matmul-v0.1-f654c296",
    source="https://github.com/grgalex/nvshare/blob/1a8f211ae45a8aded4f54d0e1832c6073a4f19ef/tests/kubernetes/"
    "manifests/nvshare-tf-pod-1.yaml",
)

PYTHON: Final = Image(
    reference="docker.io/library/python:3.12.13-slim-bookworm",
    source="https://github.com/docker-library/python/blob/master/versions.json",
)
SAKKARA: Final = Image(
    reference="quay.io/ibm/sakkara-scheduler:v0.0.1",
    source="https://github.com/project-codeflare/mlbatch/blob/main/tools/sakkara-deploy/sakkara-scheduler/values.yaml",
)
NFS_PROVISIONER: Final = Image(
    reference="registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2",
    source="https://github.com/kubernetes-sigs/nfs-subdir-external-provisioner/blob/master/charts/"
    "nfs-subdir-external-provisioner/values.yaml, chart 4.0.18",
)
BUSYBOX: Final = Image(
    reference="docker.io/library/busybox:1.36.1",
    source="https://hub.docker.com/_/busybox",
)
ALPINE: Final = Image(
    reference="docker.io/library/alpine:3.10.9",
    source="https://github.com/kubeflow/trainer/blob/v1.9.3/pkg/config/config.go: workers of a PyTorchJob look their "
    "master up by a name without a dot, for which nslookup of BusyBox 1.31 and later always fails in a pod",
)
AUTOPILOT: Final = Image(
    reference="quay.io/autopilot/autopilot:v2.1.3",
    source="https://github.com/IBM/autopilot/blob/autopilot-v2.1.3/.github/workflows/publish-release.yml: the image's "
    "tag is the version of helm-charts/autopilot/Chart.yaml; the chart itself runs latest",
)
PYTORCH: Final = Image(
    reference="nvcr.io/nvidia/pytorch:23.10-py3",
    source="https://github.com/edwardsp/ai-on-aks/blob/main/examples/jupyterlab/values.yaml",
)
VLLM: Final = Image(
    reference="docker.io/vllm/vllm-openai:v0.31.0",
    source="https://docs.vllm.ai/en/v0.31.0/deployment/docker/; commands: https://docs.vllm.ai/en/v0.31.0/cli/. The "
    "tutorial of MLBatch has v0.7.3, which has no `vllm bench`",
)
RAY: Final = Image(
    reference="docker.io/rayproject/ray:2.23.0-py39-cu121",
    source="https://docs.ray.io/en/releases-2.23.0/ray-overview/installation.html; as in the notebooks of "
    "2024.1: a client is of the same Ray and the same Python as its cluster",
)
RAY_PYTHON: Final = "3.9"
"""That of the image: Ray lets in no client of another one (python/ray/util/client/__init__.py, _check_versions)."""
RAY_TRAIN: Final = Image(
    reference="quay.io/rhoai/ray:2.35.0-py311-cu121-torch24-fa26",
    source="https://github.com/project-codeflare/mlbatch/blob/main/setup.KubeConEU25/README.md, Fine-Tuning with Ray",
)
RAY_TRAIN_PACKAGES: Final = ("transformers==4.46.3", "peft==0.13.2", "datasets==4.8.5")
"""What fine-tuning needs beside Ray and PyTorch of that image: Granite is in transformers since 4.45."""
HUB_COMMITS: Final[Mapping[str, str]] = {
    "ibm-granite/granite-3.1-2b-instruct": "bbc2aed595bd38bd770263dc3ab831db9794441d",
    "ibm-granite/granite-3.2-8b-instruct": "610d8c6ee9c84ce51f6dfd7bc5c0215d95d49695",
    "openai/gsm8k": "740312add88f781978c0658806c59bc2815b9866",
}
"""Of models and data sets on Hugging Face's hub, by name: what a commit holds is the same for good."""
HUB_BRANCH: Final = "main"
"""What the hub gives of another one, unless it is told."""
DEMO_PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "jobtest": ("torchvision==0.19.1",),
    "interactivetest": ("transformers==4.46.3", "datasets==4.8.5", "accelerate==1.1.1"),
    "tunecluster": ("xgboost==2.0.3",),
}
"""What the workbench's demos need beside them, by cluster. Ray 2.35 does not go with XGBoost 2.1 and later
(ray-project/ray#46476); the trainer of transformers asks for accelerate."""
SEAWEEDFS: Final = Image(
    reference="docker.io/chrislusf/seaweedfs:4.00",
    source="https://github.com/kubeflow/pipelines/tree/master/manifests/kustomize/third-party/seaweedfs/single-pod",
)
MINIO: Final = Image(
    reference="quay.io/minio/minio:RELEASE.2024-04-18T19-09-19Z",
    source="https://github.com/redhat-na-ssa/hobbyist-guide-to-rhoai/tree/main/configs/08/minio; no longer renewed: "
    "https://github.com/minio/minio/issues/21714",
)

_NOTEBOOK_VERSIONS: Final = (
    NotebookVersion(name="2025.1", python="3.11", since="2.19"),
    NotebookVersion(name="2024.2", python="3.11", since="2.16"),
    NotebookVersion(name="2024.1", python="3.9", since="2.16"),
    NotebookVersion(name="2023.2", python="3.9", since="2.16"),
)
"""As the image streams of each release say; the guide has 2024.1."""
NOTEBOOK_IMAGES: Final = tuple(
    NotebookImage(
        name=name,
        stream=stream,
        versions=_NOTEBOOK_VERSIONS,
        source=f"https://github.com/red-hat-data-services/notebooks/blob/rhoai-2.21/manifests/base/{file}, and of the "
        "branches rhoai-2.16 to rhoai-2.20",
    )
    for name, stream, file in (
        (
            "Standard Data Science",
            "s2i-generic-data-science-notebook",
            "jupyter-datascience-notebook-imagestream.yaml",
        ),
        ("Minimal Python", "s2i-minimal-notebook", "jupyter-minimal-notebook-imagestream.yaml"),
        ("PyTorch", "pytorch", "jupyter-pytorch-notebook-imagestream.yaml"),
    )
)
DEMOS: Final = Repository(
    name="codeflare-sdk",
    url="https://github.com/redhat-na-ssa/codeflare-sdk",
    commit="fd8442d467c13372b578f767d31e868496aefa4e",
    source="https://github.com/redhat-na-ssa/hobbyist-guide-to-rhoai/blob/main/docs/10-demo-distributed_workloads.md",
)

MLOPS: Final = Repository(
    name="oss-mlops-platform",
    url="https://github.com/OSS-MLOPS-PLATFORM/oss-mlops-platform",
    commit="087a88b2fd8b7c38f349b85efa222b671840ce3b",
    content="h1:rkms0hNUegZs6Qo7XoIzMFJBpZvtYV8sokvZlvwBUHA=",
    source="https://github.com/OSS-MLOPS-PLATFORM/oss-mlops-platform/tree/mvp-cloud-hpc-integration: of the repository "
    "that the tutorial clones the branch studying is not public, and the setup of its main branch does not parse",
)
PIPELINES: Final = Repository(
    name="kubeflow-manifests",
    url="https://github.com/kubeflow/manifests",
    commit="d8d643f1a736b28c525bd9b8ee5c9b2f4a661b39",
    content="h1:tbacpKB/01ApodHZpBIoDIC8MQiLsuchb4XsUMCSRY4=",
    source="https://github.com/kubeflow/manifests/tree/v1.10.2/applications/pipeline: Kubeflow Pipelines 2.5.0, which "
    "the OSS MLOps platform took over in its commit 295c746",
)
"""Kubeflow Pipelines of the OSS MLOps platform (see `components.mlops.pipelines`)."""
MOVED_IMAGES: Final[Mapping[str, str]] = {
    "gcr.io/kubebuilder/kube-rbac-proxy:v0.13.1": "quay.io/brancz/kube-rbac-proxy:v0.13.1",
    "gcr.io/kubebuilder/kube-rbac-proxy:v0.8.0": "quay.io/brancz/kube-rbac-proxy:v0.8.0",
    "gcr.io/ml-pipeline/minio:RELEASE.2019-08-14T20-37-41Z-license-compliance": (
        "docker.io/minio/minio:RELEASE.2019-08-14T20-37-41Z"
    ),
    "gcr.io/ml-pipeline/mysql:8.0.26": "docker.io/library/mysql:8.0.26",
}
"""Images that the OSS MLOps platform names where they no longer are, and the same release where it is.

As OSS-MLOPS-PLATFORM/oss-mlops-platform has them since b706950 (MinIO) and 295c746 (kube-rbac-proxy); MySQL is Docker's
official image, which Kubeflow went over to. Nobody has verified their digests yet.
"""


def versions(name: str, artifacts: Sequence[Artifact] = ARTIFACTS) -> tuple[str, ...]:
    """Return the versions of an upstream that a catalogue knows, newest first."""
    return tuple(artifact.version for artifact in artifacts if artifact.name == name)


def find(name: str, version: str, artifacts: Sequence[Artifact] = ARTIFACTS) -> Artifact:
    """Return the entry of an upstream's version; raises KeyError when there is none."""
    for artifact in artifacts:
        if (artifact.name, artifact.version) == (name, version):
            return artifact
    raise KeyError(f"{name} {version} is not in the catalogue")


def chart_versions(name: str, charts: Sequence[Chart] = CHARTS) -> tuple[str, ...]:
    """Return the versions of a chart that a catalogue knows, the default one first."""
    return tuple(chart.version for chart in charts if chart.name == name)


def find_chart(name: str, version: str | None = None, charts: Sequence[Chart] = CHARTS) -> Chart:
    """Return the entry of a chart, the default version's unless one is named; raises KeyError when there is none."""
    for chart in charts:
        if chart.name == name and version in (None, chart.version):
            return chart
    raise KeyError(f"the chart {name} {version or ''} is not in the catalogue")


def hub_revision(name: str) -> str:
    """Return which state of a model or data set jobs take that are told none: a commit, where one is known."""
    return HUB_COMMITS.get(name, HUB_BRANCH)


def find_openshift_ai(version: str) -> OpenShiftAi:
    """Return a release of OpenShift AI; raises KeyError for one that is not in the catalogue."""
    for release in OPENSHIFT_AI:
        if release.version == version:
            return release
    raise KeyError(f"OpenShift AI {version} is not in the catalogue")


def find_certified_gpu_operator(version: str) -> CertifiedGpuOperator:
    """Return a certified release of the GPU operator; raises KeyError for one that is not in the catalogue."""
    for release in CERTIFIED_GPU_OPERATORS:
        if release.version == version:
            return release
    raise KeyError(f"no certified bundle of GPU operator {version} is in the catalogue")


def find_nic_software(operator: str) -> NicSoftware:
    """Return what a version of the network operator is released with; raises KeyError when it is not known."""
    for software in NIC_SOFTWARE:
        if software.operator == operator:
            return software
    raise KeyError(f"the images of network operator {operator} are not in the catalogue")
