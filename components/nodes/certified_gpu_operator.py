"""NVIDIA's GPU operator from OpenShift's catalog of certified operators.

Objects: the steps of redhat-na-ssa/hobbyist-guide-to-rhoai, configs/02. Values of the ClusterPolicy: the examples in
NVIDIA/gpu-operator, bundle/manifests/gpu-operator-certified.clusterserviceversion.yaml, with the changes that the
platform makes on every cluster (components/nodes/gpu_operator.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.catalogue import CertifiedGpuOperator
from components.kubernetes.manifests import Document
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.objects import config_map
from components.kubernetes.placement import NodeGroup
from components.nodes.gpu_operator import OFF, HandOut, dcgm_metrics, metrics_name, toolkit_environment
from components.olm import subscription as olm
from components.olm.layer import OlmLayer
from components.olm.steps import Installer
from components.olm.subscription import Source

PACKAGE: Final = "gpu-operator-certified"
NAMESPACE: Final = "nvidia-gpu-operator"
"""The bundle's suggested-namespace."""
CATALOG: Final = "certified-operators"
POLICY: Final = "gpu-cluster-policy"
LEFT: Final = (
    "oc get crd -o name | grep -e clusterpolicies.nvidia -e nvidiadrivers.nvidia -e gpuclusters.nvidia",
    f"oc get operators.operators.coreos.com {PACKAGE}.{NAMESPACE}",
)
"""Commands that find the objects that OLM leaves behind, and none of NVIDIA's other operators."""


@dataclass(frozen=True, kw_only=True)
class CertifiedGpuOperatorArgs:
    """The arguments of the operator.

    source: where OLM finds it.
    installer: runs the steps, in NAMESPACE.
    approve: the stack approves the install plan for the version.
    minutes: for OLM, and until the nodes' drivers are built and loaded.
    nodes: the GPU nodes.
    brings_driver, brings_toolkit, drain: as in GpuOperatorArgs.
    """

    release: CertifiedGpuOperator
    source: Source
    installer: Installer
    nodes: NodeGroup
    approve: bool = True
    minutes: int = 60
    brings_driver: bool = True
    brings_toolkit: bool = True
    drain: bool = False


class CertifiedOperator(OlmLayer):
    """Install the operator, which prepares each GPU node. Ready when all nodes offer their GPUs.

    Feature discovery must have labelled the nodes. Without its labels the operator reports that it is ready, but does
    not act.
    """

    def __init__(self, name: str, args: CertifiedGpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:CertifiedOperator", name, opts)
        read = {"openshift.io/cluster-monitoring": "true"}
        space = NamespaceArgs(name=NAMESPACE, labels=read, privileged=True)
        home = [self._made(namespace_body(space), ())]
        group = self._made(olm.operator_group(PACKAGE, NAMESPACE, [NAMESPACE]), home)
        subscription = olm.subscription(PACKAGE, NAMESPACE, args.release.csv, args.source)
        needs = [self._made(subscription, [group]), *(self._made(each, home) for each in args.installer.account())]
        approval = args.installer.approval(args.release.csv, approve=args.approve)
        installed = self._taken(args.installer.job(approval, args.release.version), needs, args.minutes)
        metrics = self._made(config_map(metrics_name(), NAMESPACE, {"dcgm-metrics.csv": dcgm_metrics()}), home)
        self.ready = [self._made(cluster_policy(args), [installed, metrics], args.minutes)]
        self.register_outputs({})


def cluster_policy(args: CertifiedGpuOperatorArgs) -> Document:
    """Return the ClusterPolicy. The operator builds drivers with OpenShift's own toolkit.

    OpenShift's Prometheus reads the exporter through the operator's ServiceMonitor and the namespace's label.
    """
    spec: Mapping[str, Any] = {
        "operator": {"use_ocp_driver_toolkit": True},
        "daemonsets": {
            "updateStrategy": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "1"},
            "tolerations": [dict(toleration) for toleration in args.nodes.tolerations],
        },
        "driver": {
            "enabled": args.brings_driver,
            "useNvidiaDriverCRD": False,
            "kernelModuleType": "auto",
            "upgradePolicy": {"autoUpgrade": args.drain},
        },
        "cdi": {"enabled": True},
        "toolkit": {"enabled": args.brings_toolkit, "env": toolkit_environment(HandOut.CDI)},
        "devicePlugin": {"enabled": True},
        "gfd": {"enabled": True},
        "dcgm": {"enabled": True},
        "dcgmExporter": {"enabled": True, "config": {"name": metrics_name()}, "serviceMonitor": {"enabled": True}},
        "nodeStatusExporter": {"enabled": True},
        **{part: {"enabled": False} for part in OFF},
    }
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": POLICY, "annotations": {"pulumi.com/waitFor": "jsonpath={.status.state}=ready"}},
        "spec": spec,
    }
