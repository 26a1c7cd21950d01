"""OpenShift AI, installed by OLM in one version, with MLBatch's changes.

Objects: project-codeflare/mlbatch, `setup.RHOAI-v2.*`: `mlbatch-subscription.yaml`, `mlbatch-network-policy.yaml`,
`mlbatch-dsci.yaml`, `mlbatch-dsc.yaml`, and the steps of CLUSTER-SETUP.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.catalogue import OpenShiftAi
from components.job_kinds import SUBMITTED, TRAIN_JOB
from components.kubernetes.manifests import Document
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.kubernetes.network import NAMESPACE_LABEL, guard
from components.kubernetes.objects import checksum
from components.olm import subscription as olm
from components.olm.layer import OlmLayer
from components.olm.steps import ACCOUNT, Installer
from components.olm.subscription import Source
from components.openshift_ai import configuration
from components.openshift_ai.configuration import Configuration
from components.queueing.running_kueue import RunningKueue

NAME: Final = "rhods-operator"
OPERATOR_NAMESPACE: Final = "redhat-ods-operator"
NAMESPACE: Final = "redhat-ods-applications"
MONITORING_NAMESPACE: Final = "redhat-ods-monitoring"
_KUEUE: Final = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
APPWRAPPER: Final = f"system:serviceaccount:{NAMESPACE}:codeflare-operator-controller-manager"
"""Service accounts of its Kueue (opendatahub-io/kueue, config/rhoai), and of the CodeFlare operator, which contains
AppWrapper (project-codeflare/codeflare-operator, config/default, whose prefix applies to the account of
config/manager)."""
NAMESPACES: Final = (OPERATOR_NAMESPACE, NAMESPACE, MONITORING_NAMESPACE)
CATALOG: Final = "redhat-operators"
LEFT: Final = (
    "oc get crd -o name | grep -e opendatahub -e kueue -e ray.io -e kubeflow -e codeflare",
    f"oc get operators.operators.coreos.com {NAME}.{OPERATOR_NAMESPACE}",
    f"oc get namespace {MONITORING_NAMESPACE}",
)
"""Commands that find the objects that OLM and the operator leave behind."""
KUEUE_PODS: Final = "app.opendatahub.io/kueue"
"""Label of Kueue's pods in the hobbyist guide (redhat-na-ssa/hobbyist-guide-to-rhoai, docs/10)."""
JOB_KINDS: Final = tuple(kind.resource for kind in SUBMITTED if kind is not TRAIN_JOB)
"""CRDs of the jobs that Kueue manages. The DataScienceCluster installs all of them."""

MANAGED: Final = ("codeflare", "kueue", "ray", "trainingoperator")
"""MLBatch's components."""
WORKBENCH: Final = ("dashboard", "workbenches")
"""Components that run notebooks and show them."""
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
"""The operators, the API server, and OpenShift's Prometheus.

A hosted API server connects through agents. On IBM Cloud, these are not on their nodes' network (openshift/hypershift,
hostedclusterconfigoperator/controllers/resources/konnectivity/reconcile.go).
"""
_INITIALIZATION: Final = "dscinitialization.opendatahub.io"
_INITIALIZATIONS: Final = "dscinitializations"
OWN_INITIALIZATION: Final = "DISABLE_DSC_CONFIG"
_DEFAULT: Final = "default-dsci"
"""DSCInitialization that the operator creates at its start without that variable. Its webhook then rejects any other
one (opendatahub-io/opendatahub-operator)."""
_WAIT_FOR: Final = "pulumi.com/waitFor"
_PHASE_READY: Final = "jsonpath={.status.phase}=Ready"
_READY: Final = {_WAIT_FOR: _PHASE_READY}


@dataclass(frozen=True, kw_only=True)
class OpenShiftAiArgs:
    """The arguments of OpenShift AI.

    source: where OLM finds it.
    installer: runs the steps, in OPERATOR_NAMESPACE.
    approve: the stack approves the install plan for the version.
    minutes: for OLM, and until the components are ready.
    workbenches: also run notebooks.
    open_to_all: all pods of the cluster can connect to the operators.
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
        """The catalogue's entry of the version."""
        return self.configuration.release

    @property
    def start_of_kueue(self) -> tuple[Document, Document]:
        """Files and Job of the step that restarts Kueue after the CRDs of all jobs exist."""
        return self.installer.job(self.installer.start(NAMESPACE, KUEUE_PODS, JOB_KINDS), self.release.version)


class OpenShiftAiOperators(OlmLayer):
    """Install OpenShift AI with Kueue, AppWrapper, KubeRay and the training operator.

    OLM creates the objects of the catalog's bundle. They remain when the stack is destroyed, except those in the
    stack's namespaces.
    """

    ready: Sequence[pulumi.Resource]
    """Depend on these to create queues and jobs: all operators run, and Kueue supports all kinds of jobs."""

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
        installed = self._taken(
            approval(args.installer, args.release, approve=args.approve), [subscribed, *rights], args.minutes
        )
        opened = network_policy(open_to_all=args.open_to_all)
        policies = [] if args.release.patched_whole else [self._made(opened, spaces)]
        initialized = self._made(initialization(), [installed, *policies], args.minutes)
        components = self._made(cluster(args), [initialized], args.minutes)
        self.ready = [components, self._taken(args.start_of_kueue, [components, *rights], args.minutes)]
        self.register_outputs({})


def running_kueue(release: OpenShiftAi) -> RunningKueue:
    """Return the Kueue that a release brings."""
    return RunningKueue(
        version=release.kueue,
        account=_KUEUE,
        namespace=NAMESPACE,
        api=names.KUEUE_API_BEFORE,
        flavors=release.flavors,
    )


def approval(installer: Installer, release: OpenShiftAi, *, approve: bool) -> tuple[Document, Document]:
    """Return files and Job of the step that waits until the operator runs."""
    step = installer.approval(
        release.csv,
        approve=approve,
        environment=[OWN_INITIALIZATION],
        unwanted=f"/apis/{_INITIALIZATION}/v1/{_INITIALIZATIONS}/{_DEFAULT}",
    )
    return installer.job(step, release.version)


def subscription(args: OpenShiftAiArgs) -> Document:
    """Return the Subscription, with MLBatch's files in the operator's Deployment.

    A file that is mounted by subPath never changes in a running pod. The digest of all files therefore restarts the
    operator. MLBatch leaves this to the administrator.
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
        env=[{"name": OWN_INITIALIZATION}, {"name": "MLBATCH_CONFIGURATION", "value": digest}],
        volumeMounts=[{"name": file.config_map, "mountPath": file.path, "subPath": file.key} for file in files],
        volumes=[{"name": name, "configMap": {"name": name}} for name in maps],
    )


def network_policy(*, open_to_all: bool) -> Document:
    """Return the policy that lets the API server call the operators' webhooks, besides the operator's policies.

    It connects from its node's network, which policies select by a label (OpenShift documentation, "About network
    policy").
    open_to_all: all pods of the cluster can connect, as with MLBatch's policy.
    """
    callers = None if open_to_all else _CALLERS
    return guard("mlbatch-ods-applications", NAMESPACE, pods={}, callers=callers, ports=_PORTS)


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
    """Return the DataScienceCluster. Only one may exist, so it also has the workbench's components."""
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
    """Return the conditions that the engine waits for, until all of MLBatch's components run.

    Conditions: opendatahub-io/opendatahub-operator, v2.21, controllers/status/status.go.
    """
    if not release.ready_with_errors:
        return _READY
    return {_WAIT_FOR: json.dumps([_PHASE_READY, *(f"condition={name.lower()}Ready" for name in MANAGED)])}


def approval_rights(installer: Installer) -> list[Document]:
    """Return the steps' service account and its rights: approve plans, and delete the default DSCInitialization."""
    return [
        *installer.account(),
        *installer.undoing_rights(f"{ACCOUNT}-initialization", _INITIALIZATION, _INITIALIZATIONS, _DEFAULT),
    ]


def installer_rights(installer: Installer) -> list[Document]:
    """Return these rights, and those to restart Kueue."""
    return [
        *approval_rights(installer),
        *installer.start_rights(f"{ACCOUNT}-kueue", NAMESPACE, JOB_KINDS),
    ]
