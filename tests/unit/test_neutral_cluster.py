"""Layers do not depend on a cloud: not in their words, and all of them install on a cluster without a cloud."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

import components
from components import catalogue, names
from components.artifacts import LocatedChart, Mirror, Release
from components.health.autopilot import Autopilot, AutopilotArgs
from components.health.check_job import CheckArgs, GateArgs
from components.health.nccl_gate import NcclGate, NcclGateArgs
from components.health.reporter import Reporter, ReporterArgs
from components.health.thresholds import Scope, Threshold
from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.fabric import Fabric
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.network import Network, NetworkBoundary, NetworkBoundaryArgs
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import NodeGroup, Placement
from components.kubernetes.provider import ClientLimits, kubernetes_provider
from components.kubernetes.quantity import Quantity
from components.layer import Layer
from components.mlops.platform import MlopsArgs, MlopsPlatform
from components.nodes.certified_gpu_operator import CertifiedGpuOperatorArgs, CertifiedOperator
from components.nodes.feature_discovery import FeatureDiscovery, FeatureDiscoveryArgs
from components.nodes.gpu_operator import GpuOperator, GpuOperatorArgs
from components.nodes.machines import H100_SXM5
from components.nodes.network_operator import NetworkOperator, NetworkOperatorArgs, NicImages
from components.nodes.nvme_scratch import NvmeScratch, NvmeScratchArgs
from components.nodes.nvshare import Nvshare, NvshareArgs, NvshareImages
from components.nodes.nvshare_verification import NvshareVerification, NvshareVerificationArgs
from components.nodes.simulated import SimulatedNodes, SimulatedNodesArgs
from components.observability.alerts import Alerts, AlertsArgs
from components.observability.dashboards import Dashboards, DashboardsArgs
from components.observability.gpu_operator import GpuOperatorMonitors, GpuOperatorMonitorsArgs
from components.observability.prometheus import (
    MONITOR_LABELS,
    AppWrapperMonitor,
    KueueMonitor,
    Monitoring,
    MonitoringArgs,
    SlackMonitor,
)
from components.olm.steps import Installer
from components.olm.subscription import Source
from components.openshift_ai.configuration import Configuration
from components.openshift_ai.installation import OpenShiftAiArgs, OpenShiftAiOperators
from components.queueing import trainer
from components.queueing.appwrapper import AppWrappers, AppWrappersArgs
from components.queueing.jobset import JobSets, JobSetsArgs
from components.queueing.kuberay import KubeRay, KubeRayArgs
from components.queueing.kueue import Kueue, KueueArgs
from components.queueing.migration import StoredVersions, StoredVersionsArgs
from components.queueing.network import OperatorsNetwork, OperatorsNetworkArgs
from components.queueing.trainer import Trainer, TrainerArgs
from components.queueing.training_operator import TrainingOperator, TrainingOperatorArgs
from components.scheduling.coscheduling import Coscheduling, CoschedulingArgs
from components.scheduling.priorities import Priorities, PrioritiesArgs
from components.scheduling.sakkara import Sakkara, SakkaraArgs
from components.scheduling.sakkara import Topology as SakkaraTopology
from components.scheduling.topology import Topology, TopologyArgs
from components.scheduling.volcano import Volcano, VolcanoArgs
from components.storage.nfs import NfsProvisioner, NfsProvisionerArgs
from components.storage.simulated import SimulatedVolumes
from components.tenancy import pod_policy
from components.tenancy.boundary import Boundary, BoundaryArgs
from components.tenancy.editor import EditorRole, EditorRoleArgs
from components.tenancy.flavor import Flavor, FlavorArgs
from components.tenancy.pod_policy import PodRules
from components.tenancy.quota import FlavorQuota
from components.tenancy.slack import SlackController, SlackControllerArgs, SlackQueue, SlackQueueArgs
from components.tenancy.team import Team, TeamArgs
from components.workbench import demos
from components.workbench.notebook import NotebookArgs
from components.workbench.object_store import ObjectStore, ObjectStoreArgs, StoreKind
from components.workbench.queue import QueueArgs
from components.workbench.workbench import Connection, Workbench, WorkbenchArgs
from components.workloads import training
from components.workloads.aim import Aim
from components.workloads.finetuning import Finetuning, FinetuningArgs
from components.workloads.gang import Gang, GangArgs
from components.workloads.interface import Exposure, LogViewerArgs, LogVolume, LogVolumeArgs, Reach
from components.workloads.jupyterlab import JupyterLab, JupyterLabArgs
from components.workloads.metaseq import SIZES, Metaseq, MetaseqArgs
from components.workloads.nccl import Nccl, NcclArgs
from components.workloads.olmo import Olmo, OlmoArgs
from components.workloads.pods import NodePods
from components.workloads.pretraining import Pretraining, PretrainingArgs
from components.workloads.submission import Submission, SubmissionMode
from components.workloads.synthetic import Failure, SyntheticJob, SyntheticLoad, SyntheticLoadArgs
from components.workloads.tensorboard import TensorBoard
from components.workloads.vllm import Vllm, VllmArgs
from tests.unit.harness import Record, Registered, build, strings
from tests.unit.test_aks_safety import pods_of

COMPONENTS = Path(components.__file__).parent
SYSTEM = NodeGroup(
    node_selector={"lab.example/role": "services"},
    tolerations=[{"key": "lab.example/services", "operator": "Exists", "effect": "NoSchedule"}],
)
GPUS = NodeGroup(
    node_selector={"lab.example/accelerator": "h100"},
    tolerations=[{"key": "lab.example/gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
)
ROCE = Fabric(resource=names.RDMA, devices=4, variables={"NCCL_SOCKET_IFNAME": "lab0"}, topology="lab.xml")
PYTHON = "registry.lab.example/python:3"
NVSHARE = frozenset({"nvshare-scheduler", "nvshare-device-plugin", "nvshare-tf-matmul"})
AGENTS = frozenset({"autopilot", "local-nvme-scratch", "nccl-gate"}) | NVSHARE
"""What runs on GPU nodes and asks for no GPU in each container."""


def neutral() -> list[Path]:
    """Return the modules of components/ that are not Azure's own."""
    return [file for file in COMPONENTS.rglob("*.py") if not file.is_relative_to(COMPONENTS / "azure")]


def test_no_layer_names_a_cloud() -> None:
    files = neutral()
    assert len(files) > 50
    words = re.compile(r"azure|\bAKS\b|\bNDv\d|Standard_N|hyper-?v|aznhc", re.IGNORECASE)
    assert words.search("the nodes of an AKS cluster")
    found = [
        f"{file.relative_to(COMPONENTS)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if words.search(line.replace("edwardsp/ai-on-aks", ""))
    ]
    assert found == []


def chart(name: str) -> LocatedChart:
    return Mirror().chart(catalogue.find_chart(name))


class Lab:
    """All layers, installed on an invented cluster."""

    def __init__(self, kueue: Release, appwrapper: Release, scheduling: Sequence[Release]) -> None:
        provider = kubernetes_provider("cluster", kubeconfig="{}", identifier="lab", limits=ClientLimits())
        # Without a provider. The cluster's resource in the state can have any type.
        machines = pulumi.CustomResource("lab:index:Machines", "machines", {})
        self.cluster = Cluster(
            provider=provider,
            pools=[NodePool(count=2, shape=H100_SXM5.shape(roce_devices=4), nodes=GPUS)],
            placement=Placement(system=SYSTEM, gpus=GPUS),
            fabric=ROCE,
            storage=StorageClasses(block="lab-block", files="lab-files", logs="lab-logs"),
            registry="registry.lab.example",
            load_balancer={"lab.example/internal": "yes"},
            made_by=machines,
            ready=[machines],
        )
        self.on = self.cluster.options
        self.nodes()
        self.storage()
        monitoring = self.monitoring()
        self.queues(kueue, appwrapper, scheduling, monitoring)
        self.health(monitoring)
        self.workloads()

    def nodes(self) -> None:
        """Install what prepares nodes."""
        placement, images = self.cluster.placement, catalogue.NIC_SOFTWARE[0]
        nic = NicImages(driver=images.driver, sriov_plugin=images.sriov_plugin, shared_plugin=images.shared_plugin)
        SimulatedNodes("nodes", SimulatedNodesArgs(pool=self.cluster.pool), self.on())
        operators = Namespace("operators", NamespaceArgs(name="operators", privileged=True), self.on(gpus=True))
        common: dict[str, Any] = {"namespace": operators.name, "placement": placement}
        discovery_args = FeatureDiscoveryArgs(chart=chart("node-feature-discovery"), **common)
        discovery = FeatureDiscovery("feature-discovery", discovery_args, self.on())
        network_args = NetworkOperatorArgs(chart=chart("network-operator"), images=nic, **common)
        network = NetworkOperator("network-operator", network_args, self.on(discovery))
        gpu = GpuOperator("gpu-operator", GpuOperatorArgs(chart=chart("gpu-operator"), **common), self.on(network))
        self.cluster = replace(self.cluster, gpus_ready=[gpu])
        scratch = NvmeScratchArgs(namespace=operators.name, image=PYTHON, nodes=placement.gpus, disk_model="Lab disk")
        NvmeScratch("nvme-scratch", scratch, self.on())
        software = NvshareImages(library=PYTHON, plugin=PYTHON, scheduler=PYTHON)
        shared = NvshareArgs(namespace=operators.name, images=software, nodes=placement.gpus)
        trial = NvshareVerificationArgs(namespace=operators.name, image=PYTHON, nodes=placement.gpus)
        NvshareVerification("nvshare-verification", trial, self.on(Nvshare("nvshare", shared, self.on(gpu))))

    def storage(self) -> None:
        """Install what makes volumes."""
        args = NfsProvisionerArgs(
            release="lab",
            server="nfs.lab.example",
            path="/export",
            storage_class="lab-files",
            provisioner="lab.example/nfs",
            image="registry.lab.example/nfs:4",
            nodes=self.cluster.placement.system,
        )
        NfsProvisioner("nfs", args, self.on())
        SimulatedVolumes("volumes", self.on())

    def monitoring(self) -> Monitoring:
        """Install what watches."""
        args = MonitoringArgs(
            chart=chart("kube-prometheus-stack"),
            grafana_password="correct-horse-battery",
            storage=Quantity.parse("10Gi"),
            storage_class=self.cluster.storage.block,
            retention_days=7,
            nodes=self.cluster.placement.system,
            closed=True,
        )
        monitoring = Monitoring("monitoring", args, self.on())
        Dashboards("dashboards", DashboardsArgs(namespace=monitoring.namespace), self.on(monitoring))
        Alerts("alerts", AlertsArgs(namespace=monitoring.namespace, labels=MONITOR_LABELS), self.on(monitoring))
        gpus = GpuOperatorMonitorsArgs(namespace=monitoring.namespace, operator="lab-gpu-operator")
        GpuOperatorMonitors("gpu-operator-monitors", gpus, self.on(monitoring))
        SlackMonitor("slack-monitor", self.on(monitoring))
        return monitoring

    def queues(
        self, kueue: Release, appwrapper: Release, scheduling: Sequence[Release], monitoring: Monitoring
    ) -> None:
        """Install the components that admit jobs, and a team."""
        system, pool = self.cluster.placement.system, self.cluster.pool
        Priorities("priorities", PrioritiesArgs(), self.on())
        Coscheduling("coscheduling", CoschedulingArgs(releases=scheduling, replicas=2, nodes=system), self.on())
        tree = SakkaraTopology(levels=("rack", "node"), tree={"rack-0": {"lab-0": {}, "lab-1": {}}})
        sakkara = SakkaraArgs(pod_groups=self.lone("Group"), image=PYTHON, topology=tree, replicas=2, nodes=system)
        Sakkara("sakkara", sakkara, self.on())
        namespace = Namespace("system", NamespaceArgs(name=names.SYSTEM_NAMESPACE), self.on())
        OperatorsNetwork("system-network", OperatorsNetworkArgs(namespace=namespace.name), self.on(namespace))
        wrappers = AppWrappers("appwrapper", AppWrappersArgs(release=appwrapper, nodes=system), self.on(namespace))
        role = Release(manifest="rules: []", images={})
        training = TrainingOperatorArgs(release=self.lone("PyTorchJob"), init_image=PYTHON, nodes=system)
        TrainingOperator("training-operator", training, self.on(namespace))
        sets = Release(manifest=self.lone("JobSet").manifest, images={})
        JobSets("jobset", JobSetsArgs(release=sets, nodes=system), self.on(namespace))
        Trainer("trainer", TrainerArgs(definitions=[self.lone("TrainJob")], nodes=system), self.on(namespace))
        ray = KubeRayArgs(definitions=[self.lone("RayCluster")], role=role, python=PYTHON, nodes=system)
        KubeRay("kuberay", ray, self.on(namespace))
        queues = Kueue("kueue", KueueArgs(release=kueue, nodes=system), self.on(namespace, wrappers))
        stored = StoredVersionsArgs(release="v1", image=PYTHON, nodes=system)
        StoredVersions("stored-versions", stored, self.on(queues))
        KueueMonitor("kueue-monitor", self.on(monitoring, queues))
        AppWrapperMonitor("appwrapper-monitor", self.on(monitoring, queues))
        Boundary("boundary", BoundaryArgs(policies=[pod_policy.policy(PodRules())]), self.on())
        gpus = self.cluster.placement.gpus
        Topology("topology", TopologyArgs(), self.on(queues))
        flavor_args = FlavorArgs(nodes=gpus.node_selector, tolerations=gpus.tolerations)
        flavor = Flavor("flavor", flavor_args, self.on(queues))
        self.flavor = flavor.name
        own = FlavorQuota(flavor=flavor.name, quota=pool.shape.resources)
        slack = SlackQueueArgs(flavors=[own], cohort="lab")
        SlackQueue("slack", slack, self.on(queues))
        controller = SlackControllerArgs(
            queue=names.SLACK_QUEUE, teams=[], image=PYTHON, pools=self.cluster.pools, nodes=system
        )
        SlackController("slack-controller", controller, self.on(queues))
        team = TeamArgs(
            name="blue",
            users=("alice",),
            groups=("trainers",),
            flavors=[own],
            cohort="lab",
            role=EditorRole("editor", EditorRoleArgs(), self.on()).name,
            network=Network(),
        )
        self.team = Team("blue", team, self.on(queues))

    def lone(self, kind: str) -> Release:
        """Return the object that defines one kind, with an image for the program that runs it."""
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.lab.example"},
            "spec": {"names": {"kind": kind}},
        }
        return Release(
            manifest=json.dumps(definition),
            images=dict.fromkeys(("training-operator", "kuberay-operator", trainer.NAME), PYTHON),
        )

    def pods(self, image: str) -> NodePods:
        """Return pods that take whole nodes."""
        return NodePods(
            image=f"{self.cluster.registry}/{image}",
            nodes=2,
            placement=self.cluster.placement.gpus,
            gpus=8,
            gpu_resource=self.cluster.gpu_resource,
            cpu="64",
            memory="1Ti",
            fabric=self.cluster.fabric,
            shared_memory="8Gi",
            deadline_seconds=3600,
        )

    def health(self, monitoring: Monitoring) -> None:
        """Install checks that mark nodes."""
        reporter = Reporter("health", ReporterArgs(), self.on(gpus=True))
        check = CheckArgs(pods=self.pods("nccl:1"), trigger="1", gate=GateArgs(), python_image=PYTHON)
        threshold = Threshold(expected=450, warn=400, fail=300, source="the lab's own measurements")
        NcclGate("nccl-gate", NcclGateArgs(check=check, scope=Scope.FABRIC, threshold=threshold), self.on(reporter))
        checks = AutopilotArgs(image=PYTHON, nodes=self.cluster.placement.gpus, monitor_labels=MONITOR_LABELS)
        Autopilot("autopilot", checks, self.on(monitoring))

    def workloads(self) -> None:
        """Submit each job in another way, and what looks at them."""
        system, options = self.cluster.placement.system, self.on(self.team, gpus=True)
        jobs = Namespace("workloads", NamespaceArgs(name=names.WORKLOADS_NAMESPACE), self.on())
        around = NetworkBoundaryArgs(namespace=jobs.name, network=Network())
        NetworkBoundary("workloads-network", around, self.on(jobs))
        volcano = VolcanoArgs(chart=chart("volcano"), namespace=names.WORKLOADS_NAMESPACE, nodes=system)
        queued = Submission(mode=SubmissionMode.MLBATCH, namespace=self.team.namespace)
        gang = Submission(mode=SubmissionMode.VOLCANO, namespace=jobs.name)
        plain = Submission(mode=SubmissionMode.NONE, namespace=jobs.name)
        after = self.on(Volcano("volcano", volcano, self.on(jobs)), gpus=True)
        log_args = LogVolumeArgs(namespace=jobs.name, storage_class=self.cluster.storage.logs, size="1Ti")
        logs = LogVolume("logs", log_args, self.on(jobs)).name
        Nccl("nccl", NcclArgs(submission=plain, pods=self.pods("nccl:1"), sharp=True), after)
        training = MetaseqArgs(
            submission=gang, pods=self.pods("metaseq:1"), model=SIZES["1.3b"], logs=logs, use_aim=True
        )
        Metaseq("metaseq", training, after)
        Olmo("olmo", OlmoArgs(submission=queued, pods=self.pods("olmo:1"), data="olmo-data"), options)
        Aim("aim", LogViewerArgs(namespace=jobs.name, logs=logs, image=PYTHON, nodes=system), after)
        TensorBoard("board", LogViewerArgs(namespace=jobs.name, logs=logs, image=PYTHON, nodes=system), after)
        internal = Reach(exposure=Exposure.INTERNAL, ranges=("10.0.0.0/8",), internal=self.cluster.load_balancer)
        notebook = JupyterLabArgs(
            submission=queued,
            pods=replace(self.pods("jupyter:1"), nodes=1),
            token="correct-horse-battery",
            storage_class=self.cluster.storage.files,
            storage="1Ti",
            reach=internal,
            closed=True,
        )
        JupyterLab("jupyterlab", notebook, options)
        sample = GangArgs(
            namespace=self.team.namespace,
            pods=2,
            requests={names.GPU: Quantity.parse(8)},
            seconds=60,
            priority_class=names.DEFAULT_PRIORITY,
            image="registry.lab.example/busybox:1",
            node_selector=self.cluster.placement.gpus.node_selector,
        )
        Gang("sample", sample, options)
        load = SyntheticLoadArgs(
            jobs=[
                SyntheticJob(
                    name="load-0",
                    team="blue",
                    arrival=0,
                    pods=2,
                    gpus=8,
                    seconds=60,
                    priority_class=names.DEFAULT_PRIORITY,
                    failure=Failure.parse("crash@30x2"),
                )
            ],
            namespaces={"blue": self.team.namespace},
            submission=queued,
            image="registry.lab.example/busybox:1",
            per_gpu={names.CPU: Quantity.parse(1)},
            placement=self.cluster.placement.gpus,
            gpu_resource=self.cluster.gpu_resource,
        )
        SyntheticLoad("load", load, options)
        batch = VllmArgs(
            submission=queued,
            image="registry.lab.example/vllm:1",
            gpu_resource=self.cluster.gpu_resource,
            cpu="4",
            memory="64Gi",
            generator_cpu="1",
            generator_memory="4Gi",
            placement=self.cluster.placement.gpus,
            claim="weights",
            storage_class=self.cluster.storage.files,
            storage="50Gi",
            start_seconds=60,
            deadline_seconds=3600,
        )
        Vllm("batch", batch, options)
        pretraining = PretrainingArgs(
            submission=queued,
            pods=self.pods("pytorch:1"),
            batch=8,
            steps=1000,
            learning_rate=3e-4,
            checkpoint_every=100,
            checkpoints="steps",
            storage_class=self.cluster.storage.files,
            storage="200Gi",
        )
        Pretraining("pretraining", pretraining, options)
        tuning = FinetuningArgs(
            submission=queued,
            image="registry.lab.example/ray:2.35.0",
            packages=["peft==0.13.2"],
            workers=2,
            cpu="8",
            memory="64Gi",
            head_cpu="2",
            head_memory="16Gi",
            rank=16,
            batch=8,
            context=512,
            steps=500,
            learning_rate=1e-4,
            checkpoint_every=50,
            placement=self.cluster.placement.gpus,
            model_revision="main",
            dataset_revision="main",
            claim="tuned",
            storage_class=self.cluster.storage.files,
            storage="50Gi",
            deadline_seconds=3600,
        )
        Finetuning("finetuning", tuning, options)
        self.workbench()
        namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: mlflow}}"
        MlopsPlatform("mlops", MlopsArgs(manifests=namespace), self.on())

    def workbench(self) -> None:
        """Install a notebook with its object store."""
        keys = {"access_key": "me", "secret_key": "correct-horse-battery"}
        store_args = ObjectStoreArgs(
            kind=StoreKind.SEAWEEDFS,
            image="registry.lab.example/seaweedfs:1",
            storage="50Gi",
            storage_class=self.cluster.storage.block,
            clients="sandbox",
            nodes=self.cluster.placement.system,
            **keys,
        )
        store = ObjectStore("store", store_args, self.on())
        args = WorkbenchArgs(
            namespace="sandbox",
            notebook=NotebookArgs(
                image=catalogue.NOTEBOOK_IMAGES[0],
                version="2024.1",
                storage_class=self.cluster.storage.block,
                nodes=self.cluster.placement.system,
            ),
            connection=Connection(name="minio", endpoint=store.endpoint, **keys),
            queue=QueueArgs(namespace="sandbox", amounts={names.GPU: "5"}, flavor=self.flavor),
        )
        Workbench("workbench", args, self.on(store, self.openshift_ai(), self.gpu_operator()))

    def openshift_ai(self) -> Layer:
        """Install the components for notebooks, with their own operators."""
        args = OpenShiftAiArgs(
            configuration=Configuration(release=catalogue.OPENSHIFT_AI[0]),
            source=Source(channel="stable", catalog="redhat-operators"),
            installer=self.installer("redhat-ods-operator"),
            workbenches=True,
        )
        return OpenShiftAiOperators("openshift-ai", args, self.on())

    def gpu_operator(self) -> Layer:
        """Install what makes GPUs usable on OpenShift."""
        args = CertifiedGpuOperatorArgs(
            release=catalogue.CERTIFIED_GPU_OPERATORS[0],
            source=Source(channel="v26.3", catalog="certified-operators"),
            installer=self.installer("nvidia-gpu-operator"),
            nodes=self.cluster.placement.gpus,
        )
        return CertifiedOperator("certified-gpu-operator", args, self.on())

    def installer(self, namespace: str) -> Installer:
        return Installer(namespace=namespace, image=PYTHON, nodes=self.cluster.placement.system)


@pytest.fixture(scope="module")
def record(kueue_release: Release, appwrapper_release: Release, scheduler_releases: Sequence[Release]) -> Record:
    return build(lambda: Lab(kueue_release, appwrapper_release, scheduler_releases))


def kinds() -> Iterator[type[pulumi.ComponentResource]]:
    """Yield every component that layers consist of."""
    for module in pkgutil.walk_packages([str(COMPONENTS)], "components."):
        if module.name.startswith(("components.azure", "components.openstack", training.__name__, demos.__name__)):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, pulumi.ComponentResource)
                and value.__module__ == module.name
            ):
                yield value


def test_every_layer_is_installed(record: Record) -> None:
    known = {kind.__name__ for kind in kinds() if not kind.__subclasses__()}
    assert len(known) > 25
    registered = {item.type.rpartition(":")[2] for item in record.resources if item.type.startswith("mlbatch:")}
    assert known == {kind.removeprefix("Default") for kind in registered}


def test_nothing_that_is_registered_names_a_cloud(record: Record) -> None:
    own = [item for item in record.resources if item.kind != "CustomResourceDefinition"]
    words = [text for item in own for text in (item.type, item.name, *strings(item.inputs))]
    assert len(words) > 5000
    assert [text for text in words if "azure" in text.lower()] == []


def placed(pod: Mapping[str, Any], group: NodeGroup) -> bool:
    """Return whether a pod requires the nodes of a group, also if it has other requirements."""
    return group.node_selector.items() <= pod.get("nodeSelector", {}).items() and all(
        toleration in pod.get("tolerations", []) for toleration in group.tolerations
    )


def test_every_pod_goes_where_the_placement_says(record: Record) -> None:
    for item, pod in pods_of(record):
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        asks = any(names.GPU in each.get("resources", {}).get("requests", {}) for each in containers)
        is_launcher = item.name in ("metaseq/Job", "finetuning/RayJob")
        if item.object_name == "sample":
            assert GPUS.node_selector == pod["nodeSelector"], "Kueue adds the tolerations of its flavor"
            assert record.one("ResourceFlavor", names.FLAVOR).inputs["spec"]["tolerations"] == list(GPUS.tolerations)
            continue
        if item.object_name in trainer.RUNTIMES:
            continue  # Kueue adds the nodes and the tolerations of its flavor
        wanted = GPUS if asks or is_launcher or item.object_name in AGENTS else SYSTEM
        assert placed(pod, wanted), item.name


CHARTS = {
    "node-feature-discovery": {"master": SYSTEM, "gc": SYSTEM, "worker": GPUS},
    "gpu-operator": {"operator": SYSTEM},
    "network-operator": {"operator": SYSTEM},
    "kube-prometheus-stack": {
        "prometheus.prometheusSpec": SYSTEM,
        "alertmanager.alertmanagerSpec": SYSTEM,
        "prometheusOperator": SYSTEM,
        "grafana": SYSTEM,
        "kube-state-metrics": SYSTEM,
    },
}


@pytest.mark.parametrize("release", CHARTS)
def test_what_charts_run_goes_there_too(record: Record, release: str) -> None:
    (found,) = [item.inputs["values"] for item in record.resources if item.inputs.get("name") == release]
    for path, group in CHARTS[release].items():
        part: Any = found
        for key in path.split("."):
            part = part[key]
        assert placed(part, group), path


def test_so_do_volcano_and_what_operators_run_on_gpu_nodes(record: Record) -> None:
    (volcano,) = [item.inputs["values"]["custom"] for item in record.resources if item.inputs.get("name") == "volcano"]
    assert (volcano["default_ns"], volcano["default_tolerations"]) == (SYSTEM.node_selector, list(SYSTEM.tolerations))
    (operator,) = [item.inputs["values"] for item in record.resources if item.inputs.get("name") == "gpu-operator"]
    assert operator["daemonsets"]["tolerations"] == list(GPUS.tolerations)
    policy = record.one("NicClusterPolicy", "nic-cluster-policy")
    assert policy.inputs["spec"]["tolerations"] == list(GPUS.tolerations)


def test_jobs_use_the_clusters_own_network_storage_and_registry(record: Record) -> None:
    (worker,) = record.one("Job", "nccl").inputs["spec"]["template"]["spec"]["containers"]
    assert worker["image"] == "registry.lab.example/nccl:1"
    assert worker["resources"]["limits"][names.RDMA] == "4"
    variables = {entry["name"]: entry["value"] for entry in worker["env"]}
    assert (variables["NCCL_SOCKET_IFNAME"], variables["NCCL_TOPO_FILE"]) == ("lab0", "/workspace/lab.xml")
    assert not [name for name in variables if name.startswith(("UCX", "SHARP"))]
    claims = {item.object_name: item.inputs["spec"]["storageClassName"] for item in record.of("PersistentVolumeClaim")}
    assert claims == {
        "jupyterlab-home": "lab-files",
        "logs": "lab-logs",
        "steps": "lab-files",
        "tuned": "lab-files",
        "weights": "lab-files",
        "seaweedfs": "lab-block",
        "workbench": "lab-block",
    }
    service = record.one("Service", "jupyterlab").inputs["metadata"]
    assert service["annotations"]["lab.example/internal"] == "yes"


def test_everything_goes_with_the_cluster_and_comes_anew_with_it(record: Record) -> None:
    (machines,) = [item.urn for item in record.resources if item.type == "lab:index:Machines"]
    by_urn = {item.urn: item for item in record.resources}

    def goes_with(item: Registered) -> str:
        # The engine hands this option down from component to child, and replace_with not.
        above = by_urn.get(item.parent)
        return item.deleted_with or (goes_with(above) if above else "")

    objects = [item for item in record.resources if item.type.startswith("kubernetes:")]
    assert len(objects) > 150
    (provider,) = [item.urn for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert {goes_with(item) for item in objects} == {provider}
    assert {item.replace_with for item in objects} == {(machines,)}
    assert all(machines in record.closure(item) for item in objects)
