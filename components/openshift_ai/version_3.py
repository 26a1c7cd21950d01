"""OpenShift AI 3: Red Hat build of Kueue with its operator, and the operators of jobs in OpenShift AI.

Sources: openshift/kueue-operator, release-1.4 (`pkg/apis/kueueoperator/v1`, `pkg/configmap`); red-hat-data-services/
rhods-operator, rhoai-3.4 (`api/datasciencecluster/v2`, `internal/controller/components`); OpenShift documentation, "AI
workloads", "Red Hat build of Kueue".
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components import catalogue, names
from components.catalogue import OpenShiftAi, RedHatOperator
from components.job_kinds import JOB_SET, QUEUED
from components.kubernetes.manifests import Document
from components.kubernetes.namespace import NamespaceArgs, namespace_body
from components.olm import subscription as olm
from components.olm.layer import OlmLayer
from components.olm.steps import Installer
from components.olm.subscription import Source
from components.openshift_ai import installation
from components.queueing.running_kueue import RunningKueue

KUEUE: Final = "kueue-operator"
CERT_MANAGER: Final = "openshift-cert-manager-operator"
MANAGED: Final = ("ray",)
"""Components that OpenShift AI runs: KubeRay. It has no AppWrapper since 3.0.

Its Trainer 2.1 drops `spec.runtimePatches`, which Kueue needs from 0.17 on to start a TrainJob (kubernetes-sigs/kueue,
issue 14722). The platform's own Trainer runs TrainJobs."""
_REMOVED: Final = (
    "aipipelines",
    "dashboard",
    "feastoperator",
    "kserve",
    "llamastackoperator",
    "mlflowoperator",
    "modelregistry",
    "sparkoperator",
    "trainer",
    "trainingoperator",
    "trustyai",
    "workbenches",
)
HELD: Final = "openshift-ai"
"""Name of a ClusterQueue that admits no job, and of the LocalQueues for it.

OpenShift AI would create a ClusterQueue with the resources of all nodes, and a LocalQueue for it in each namespace that
Kueue manages. A team could use these past its quota. It does not change a ClusterQueue that exists. Kueue would give
jobs without a queue a LocalQueue with the name `default` (`internal/controller/components/kueue`)."""
_MANAGED_NAMESPACE: Final = "kueue.openshift.io/managed"
"""Label of the namespaces whose jobs Red Hat's Kueue manages (kueue-operator, README.md)."""
_AVAILABLE: Final = {"pulumi.com/waitFor": "condition=Available"}
_READY: Final = {"pulumi.com/waitFor": "jsonpath={.status.phase}=Ready"}


@dataclass(frozen=True, kw_only=True)
class OperatorsArgs:
    """The arguments of both layers.

    source: the CatalogSource with Red Hat's operators, and the channel of OpenShift AI.
    installer: returns what runs the steps in a namespace.
    approve: the stack approves the install plans for the versions.
    minutes: longest wait for each step.
    existing: packages that others have already installed. They are not installed again.
    """

    release: OpenShiftAi
    source: Source
    installer: Callable[[str], Installer]
    approve: bool = True
    minutes: int = 30
    existing: Collection[str] = field(default_factory=tuple)
    open_to_all: bool = False


class RedHatLayer(OlmLayer):
    """A layer with operators of Red Hat's catalog."""

    def _operator(self, args: OperatorsArgs, package: str, needs: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
        """Register an operator of the catalogue, unless the cluster has it. Return what tells that it runs."""
        if package in args.existing:
            return []
        found = catalogue.entry(catalogue.RED_HAT_OPERATORS, package=package)
        source = Source(
            channel=found.channel, catalog=args.source.catalog, catalog_namespace=args.source.catalog_namespace
        )
        home = self._made(namespace_body(NamespaceArgs(name=found.namespace)), needs)
        watched = [found.namespace] if found.watches_own else []
        group = self._made(olm.operator_group(package, found.namespace, watched), [home])
        subscribed = self._made(olm.subscription(package, found.namespace, found.csv, source), [group])
        return [self._approved(args, found, [home, subscribed])]

    def _approved(
        self, args: OperatorsArgs, found: RedHatOperator, needs: Sequence[pulumi.Resource]
    ) -> pulumi.Resource:
        installer = args.installer(found.namespace)
        rights = [self._made(each, needs, namespace=found.namespace) for each in installer.account()]
        step = installer.approval(found.csv, approve=args.approve)
        return self._taken(installer.job(step, found.csv), [*needs, *rights], args.minutes)


class RedHatKueue(RedHatLayer):
    """Install Red Hat build of Kueue and, if the cluster has none, cert-manager, which creates its certificates."""

    def __init__(self, name: str, args: OperatorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openshift_ai:RedHatKueue", name, opts)
        certificates = self._operator(args, CERT_MANAGER, ())
        operator = self._operator(args, KUEUE, certificates)
        self.ready = [self._made(kueue(), operator, args.minutes)]
        self.register_outputs({})


class OpenShiftAi3(RedHatLayer):
    """Install OpenShift AI with KubeRay."""

    def __init__(self, name: str, args: OperatorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:openshift_ai:OpenShiftAi3", name, opts)
        spaces = [
            self._made(namespace_body(NamespaceArgs(name=each)), ())
            for each in (installation.OPERATOR_NAMESPACE, installation.NAMESPACE)
        ]
        group = self._made(olm.operator_group(installation.NAME, installation.OPERATOR_NAMESPACE), spaces)
        subscription = olm.subscription(
            installation.NAME,
            installation.OPERATOR_NAMESPACE,
            args.release.csv,
            args.source,
            env=[{"name": installation.OWN_INITIALIZATION, "value": "true"}],
        )
        subscribed = self._made(subscription, [group])
        installer = args.installer(installation.OPERATOR_NAMESPACE)
        rights = [self._made(each, spaces) for each in installation.approval_rights(installer)]
        approval = installation.approval(installer, args.release, approve=args.approve)
        installed = self._taken(approval, [subscribed, *rights], args.minutes)
        opened = self._made(installation.network_policy(open_to_all=args.open_to_all), spaces)
        initialized = self._made(initialization(), [installed, opened], args.minutes)
        held = self._made(held_queue(), ())
        self.ready = [self._made(cluster(), [initialized, held], args.minutes)]
        self.register_outputs({})


def left(existing: Collection[str]) -> Sequence[str]:
    """Return commands that find the objects that OLM and the operators leave behind.

    existing: packages of others, whose objects stay.
    Sources: cert-manager-operator, release-1.19, `bindata/cert-manager-deployment`; rhods-operator at 8dc22631,
    `CreateAuth`, `CreateGatewayConfig` in `internal/controller/dscinitialization`, and
    `internal/controller/services/gateway`.
    """
    definitions, operators = ["opendatahub", "kueue", "ray.io"], [installation.NAME, KUEUE]
    if CERT_MANAGER not in existing:
        definitions += ["cert-manager", "istiocsrs", "trustmanagers"]
        operators.append(CERT_MANAGER)
    return (
        "oc get resourceflavors.kueue.x-k8s.io -o name",
        f"oc get crd -o name | grep -e {' -e '.join(definitions)}",
        f"oc get operators.operators.coreos.com -o name | grep -e {' -e '.join(operators)}",
        *(["oc get namespace cert-manager"] if CERT_MANAGER not in existing else []),
        "oc get auths.services.platform.opendatahub.io,gatewayconfigs.services.platform.opendatahub.io",
        "oc get gateway -n openshift-ingress data-science-gateway",
        "oc get gatewayclass data-science-gateway-class",
    )


def running_kueue(release: OpenShiftAi) -> RunningKueue:
    """Return Red Hat's Kueue as the platform uses it. Its operator cannot exclude resources from quotas."""
    namespace = catalogue.entry(catalogue.RED_HAT_OPERATORS, package=KUEUE).namespace
    return RunningKueue(
        version=release.kueue,
        account=f"system:serviceaccount:{namespace}:kueue-controller-manager",
        namespace=namespace,
        labels={_MANAGED_NAMESPACE: "true"},
        unlimited=(names.DISK, names.SHARED_INFINIBAND),
        flavors=release.flavors,
    )


def kueue() -> Document:
    """Return the configuration of Red Hat's Kueue.

    Kueue does not queue JobSets here. The operator would report itself as degraded without Red Hat's JobSet operator.
    Members submit JobSets inside AppWrappers alone, and Kueue queues these (components/job_kinds.py).

    With gang scheduling, 1.4 requeues a job whose pods do not run within 5 minutes, less than a large image needs. It
    has no setting for this time. Like MLBatch, the platform leaves it off here.
    """
    return {
        "apiVersion": "kueue.openshift.io/v1",
        "kind": "Kueue",
        "metadata": {"name": "cluster", "annotations": dict(_AVAILABLE)},
        "spec": {
            "managementState": "Managed",
            "config": {
                "integrations": {"frameworks": [kind.kind for kind in QUEUED if kind is not JOB_SET]},
                "workloadManagement": {"labelPolicy": "None"},
                "gangScheduling": {"policy": "None"},
                "preemption": {"preemptionPolicy": "FairSharing"},
            },
        },
    }


def held_queue() -> Document:
    """Return the ClusterQueue that OpenShift AI finds instead of creating one with all resources."""
    return {
        "apiVersion": names.KUEUE_API,
        "kind": "ClusterQueue",
        "metadata": {"name": HELD},
        "spec": {"stopPolicy": "Hold"},
    }


def initialization() -> Document:
    """Return the DSCInitialization. OpenShift's and the platform's monitoring suffice, so OpenShift AI's is off."""
    return {
        "apiVersion": "dscinitialization.opendatahub.io/v2",
        "kind": "DSCInitialization",
        "metadata": {"name": "mlbatch-dsci", "annotations": dict(_READY)},
        "spec": {
            "applicationsNamespace": installation.NAMESPACE,
            "monitoring": {"managementState": "Removed", "namespace": installation.MONITORING_NAMESPACE},
            "trustedCABundle": {"customCABundle": "", "managementState": "Managed"},
        },
    }


def cluster() -> Document:
    """Return the DataScienceCluster. Red Hat's Kueue operator manages Kueue, so it is Unmanaged here."""
    components: dict[str, Document] = {name: {"managementState": "Managed"} for name in MANAGED}
    components |= {name: {"managementState": "Removed"} for name in _REMOVED}
    components["kueue"] = {
        "managementState": "Unmanaged",
        "defaultClusterQueueName": HELD,
        "defaultLocalQueueName": HELD,
    }
    return {
        "apiVersion": "datasciencecluster.opendatahub.io/v2",
        "kind": "DataScienceCluster",
        "metadata": {"name": "mlbatch-dsc", "annotations": dict(_READY)},
        "spec": {"components": dict(sorted(components.items()))},
    }
