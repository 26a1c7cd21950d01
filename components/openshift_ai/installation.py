"""OpenShift AI, installed by OLM in one version, with MLBatch's changes.

Objects: project-codeflare/mlbatch, `setup.RHOAI-v2.*`: `mlbatch-subscription.yaml`, `mlbatch-network-policy.yaml`,
`mlbatch-dsci.yaml`, `mlbatch-dsc.yaml`, and the steps of CLUSTER-SETUP.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.catalogue import OpenShiftAi
from components.job_kinds import SUBMITTED, TRAIN_JOB
from components.kubernetes.manifests import Document
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.network import NAMESPACE_LABEL
from components.kubernetes.objects import checksum
from components.olm import subscription as olm
from components.olm.layer import OlmLayer
from components.olm.steps import ACCOUNT, Installer
from components.olm.subscription import Source
from components.openshift_ai import configuration
from components.openshift_ai.configuration import Configuration

NAME: Final = "rhods-operator"
OPERATOR_NAMESPACE: Final = "redhat-ods-operator"
NAMESPACE: Final = "redhat-ods-applications"
MONITORING_NAMESPACE: Final = "redhat-ods-monitoring"
KUEUE: Final = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
APPWRAPPER: Final = f"system:serviceaccount:{NAMESPACE}:codeflare-operator-controller-manager"
"""The accounts of its Kueue (opendatahub-io/kueue, config/rhoai), and of CodeFlare's operator, in which AppWrapper is
(project-codeflare/codeflare-operator, config/default, whose prefix the account of config/manager gets)."""
NAMESPACES: Final = (OPERATOR_NAMESPACE, NAMESPACE, MONITORING_NAMESPACE)
CATALOG: Final = "redhat-operators"
LEFT: Final = (
    "oc get crd -o name | grep -e opendatahub -e kueue -e ray.io -e kubeflow -e codeflare",
    f"oc get operators.operators.coreos.com {NAME}.{OPERATOR_NAMESPACE}",
    f"oc get namespace {MONITORING_NAMESPACE}",
)
"""By which command each thing is found that OLM and the operator leave behind."""
KUEUE_PODS: Final = "app.opendatahub.io/kueue"
"""The label by which the hobbyist guide finds Kueue's pods (redhat-na-ssa/hobbyist-guide-to-rhoai, docs/10)."""
JOB_KINDS: Final = tuple(kind.resource for kind in SUBMITTED if kind is not TRAIN_JOB)
"""Definitions of the jobs that Kueue manages, all of which the DataScienceCluster brings."""

MANAGED: Final = ("codeflare", "kueue", "ray", "trainingoperator")
"""MLBatch's."""
WORKBENCH: Final = ("dashboard", "workbenches")
"""What makes a notebook run, and shows it."""
_OTHERS: Final = ("datasciencepipelines", "modelmeshserving", "trustyai")
_PORTS: Final = (8443, 8080, 8081, 5432, 8082, 8099, 8181, 9443)
_CALLERS: Final[Sequence[Document]] = (
    {"podSelector": {}},
    {"namespaceSelector": {"matchLabels": {"policy-group.network.openshift.io/host-network": ""}}, "podSelector": {}},
    {
        "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "kube-system"}},
        "podSelector": {"matchLabels": {"app": "konnectivity-agent"}},
    },
    {"namespaceSelector": {"matchLabels": {"network.openshift.io/policy-group": "monitoring"}}},
)
"""The operators themselves, the API server, and OpenShift's own Prometheus.

An API server that runs elsewhere asks through agents, which on IBM Cloud are not on their nodes' network
(openshift/hypershift, hostedclusterconfigoperator/controllers/resources/konnectivity/reconcile.go)."""
_INITIALIZATION: Final = "dscinitialization.opendatahub.io"
_INITIALIZATIONS: Final = "dscinitializations"
_OWN_INITIALIZATION: Final = "DISABLE_DSC_CONFIG"
_DEFAULT: Final = "default-dsci"
"""What the operator makes at its start without that variable, and beside which its webhook lets no other one be
(opendatahub-io/opendatahub-operator)."""
_WAIT_FOR: Final = "pulumi.com/waitFor"
_PHASE_READY: Final = "jsonpath={.status.phase}=Ready"
_READY: Final = {_WAIT_FOR: _PHASE_READY}


@dataclass(frozen=True, kw_only=True)
class OpenShiftAiArgs:
    """What to install.

    source: where OLM finds it. installer: takes the steps, in OPERATOR_NAMESPACE. approve: have the stack approve the
    plan for the version. minutes: for OLM, and for the components, to be ready. workbenches: run notebooks, too.
    open_to_all: every pod of the cluster may connect to the operators.
    """

    configuration: Configuration
    source: Source
    installer: Installer
    approve: bool = True
    minutes: int = 30
    workbenches: bool = False
    open_to_all: bool = False

    @property
    def release(self) -> OpenShiftAi:
        """What the catalogue knows of the version."""
        return self.configuration.release

    @property
    def approval(self) -> tuple[Document, Document]:
        """The step after which the operator runs: its files and its Job."""
        step = self.installer.approval(
            self.release.csv,
            approve=self.approve,
            environment=[_OWN_INITIALIZATION],
            unwanted=f"/apis/{_INITIALIZATION}/v1/{_INITIALIZATIONS}/{_DEFAULT}",
        )
        return self.installer.job(step, self.release.version)

    @property
    def start_of_kueue(self) -> tuple[Document, Document]:
        """The step after which Kueue knows the kinds of all jobs: its files and its Job."""
        return self.installer.job(self.installer.start(NAMESPACE, KUEUE_PODS, JOB_KINDS), self.release.version)


class OpenShiftAiOperators(OlmLayer):
    """Install OpenShift AI with Kueue, AppWrapper, KubeRay and the training operator.

    OLM makes what the catalog's bundle has: it stays when the stack goes, but for what is in the stack's namespaces.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to create queues and jobs: all operators are there, and Kueue knows the kinds of all jobs."""

    def __init__(self, name: str, args: OpenShiftAiArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openshift_ai:OpenShiftAiOperators", name, opts)
        spaces = [self._made(namespace_body(NamespaceArgs(name=each)), ()) for each in (OPERATOR_NAMESPACE, NAMESPACE)]
        maps = [
            self._made(each, spaces)
            for each in configuration.config_maps(args.configuration, OPERATOR_NAMESPACE, NAMESPACE)
        ]
        group = self._made(olm.operator_group(NAME, OPERATOR_NAMESPACE), spaces)
        rights = [self._made(each, spaces) for each in installer_rights(args.installer)]
        subscribed = self._made(subscription(args), [*maps, group])
        installed = self._taken(args.approval, [subscribed, *rights], args.minutes)
        opened = network_policy(open_to_all=args.open_to_all)
        policies = [] if args.release.patched_whole else [self._made(opened, spaces)]
        initialized = self._made(initialization(), [installed, *policies], args.minutes)
        components = self._made(cluster(args), [initialized], args.minutes)
        self.ready = [components, self._taken(args.start_of_kueue, [components, *rights], args.minutes)]
        self.register_outputs({})


def subscription(args: OpenShiftAiArgs) -> Document:
    """Return the Subscription, with MLBatch's files in the operator's Deployment.

    A file that is mounted by its path in a volume never changes in a running pod: the digest of all has the operator
    started anew, which MLBatch leaves to the administrator.
    """
    files = configuration.replaced(args.release)
    contents = [each["data"] for each in configuration.config_maps(args.configuration, OPERATOR_NAMESPACE, NAMESPACE)]
    (digest,) = checksum(json.dumps(contents)).values()
    maps = dict.fromkeys(file.config_map for file in files)
    return olm.subscription(
        NAME,
        OPERATOR_NAMESPACE,
        args.release.csv,
        args.source,
        env=[{"name": _OWN_INITIALIZATION}, {"name": "MLBATCH_CONFIGURATION", "value": digest}],
        volumeMounts=[{"name": file.config_map, "mountPath": file.path, "subPath": file.key} for file in files],
        volumes=[{"name": name, "configMap": {"name": name}} for name in maps],
    )


def network_policy(*, open_to_all: bool) -> Document:
    """Return what lets the API server reach the operators' webhooks, beside the operator's own policies.

    It asks from its node's network, which policies know by a label (OpenShift documentation, "About network policy").
    open_to_all: let every pod of the cluster connect, as MLBatch's policy does.
    """
    ports = [{"protocol": "TCP", "port": port} for port in _PORTS]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "mlbatch-ods-applications", "namespace": NAMESPACE},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports, **({} if open_to_all else {"from": list(_CALLERS)})}],
        },
    }


def initialization() -> Document:
    """Return the DSCInitialization."""
    return {
        "apiVersion": f"{_INITIALIZATION}/v1",
        "kind": "DSCInitialization",
        "metadata": {"name": "mlbatch-dsci", "annotations": dict(_READY)},
        "spec": {
            "applicationsNamespace": NAMESPACE,
            "monitoring": {"managementState": "Managed", "namespace": MONITORING_NAMESPACE},
            "serviceMesh": {"managementState": "Removed"},
            "trustedCABundle": {"customCABundle": "", "managementState": "Managed"},
        },
    }


def cluster(args: OpenShiftAiArgs) -> Document:
    """Return the DataScienceCluster. There may be one: what a workbench needs is in it, too."""
    managed = [*MANAGED, *(WORKBENCH if args.workbenches else ())]
    components: dict[str, Any] = {
        name: {"managementState": "Managed" if name in managed else "Removed"}
        for name in sorted((*MANAGED, *WORKBENCH, *_OTHERS))
    }
    serving = {
        "ingressGateway": {"certificate": {"type": "SelfSigned"}},
        "managementState": "Removed",
        "name": "knative-serving",
    }
    components["kserve"] = {"managementState": "Removed", "serving": serving}
    return {
        "apiVersion": "datasciencecluster.opendatahub.io/v1",
        "kind": "DataScienceCluster",
        "metadata": {"name": "mlbatch-dsc", "annotations": dict(_every_component(args.release))},
        "spec": {"components": components},
    }


def _every_component(release: OpenShiftAi) -> Mapping[str, str]:
    """Return what the engine waits for, until all of MLBatch's components run.

    Conditions: opendatahub-io/opendatahub-operator, v2.21, controllers/status/status.go.
    """
    if not release.ready_with_errors:
        return _READY
    return {_WAIT_FOR: json.dumps([_PHASE_READY, *(f"condition={name.lower()}Ready" for name in MANAGED)])}


def installer_rights(installer: Installer) -> list[Document]:
    """Return the account of the steps, and what it may do: approve plans, look, and delete two things."""
    return [
        *installer.account(),
        *installer.undoing_rights(f"{ACCOUNT}-initialization", _INITIALIZATION, _INITIALIZATIONS, _DEFAULT),
        *installer.start_rights(f"{ACCOUNT}-kueue", NAMESPACE, JOB_KINDS),
    ]
