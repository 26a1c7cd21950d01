"""Facts that a cluster reports: its identity, its version and its GPU nodes."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from components.kubernetes.quantity import canonical
from components.nodes.gpu_operator import BY_MOUNT, BY_VARIABLE
from components.scheduling.priorities import PRIORITIES
from stacks.config import cluster_api, others
from stacks.config.cluster_api import ABSENT, FORBIDDEN, UNAUTHORIZED, asked, read, unless
from stacks.config.kubeconfig import Kubeconfig, KubeconfigError, silent
from stacks.config.others import DataScience, ExistingKueue, is_others
from stacks.settings.kubernetes import KubernetesSettings

_FALSE: Final = ("false", "f", "0")
"""As Go reads it (strconv.ParseBool), in small letters."""


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """A node. allocatable: what its pods can ask for, by resource, as the API server spells it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuPolicy:
    """A ClusterPolicy, which configures NVIDIA's GPU operator.

    by_variable, by_mount: what a container's environment says, or a mount that is named after a GPU, gives it GPUs that
    it does not ask for. cdi: GPUs are handed out by CDI, and NVIDIA's runtime is not the nodes' default one.
    is_others: no stack has made it.
    """

    name: str
    by_variable: bool = True
    by_mount: bool = False
    cdi: bool = True
    is_others: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """A cluster.

    identifier: unique, and constant while the cluster exists. version: such as 1.34.
    nodes: those that were asked for. has_admission_policies: the cluster supports ValidatingAdmissionPolicies.
    priority_classes: the cluster's classes, by name. default_priority: the class of pods that name none. None if the
        cluster has no such class, or only the platform's.
    storage_classes: the names of the cluster's StorageClasses. openshift: the version of OpenShift, such as 4.16.30.
        None on another cluster.
    has_registry: OpenShift's image registry is not known to be off. gpu_policies: of the GPU operator.
    data_science: the DataScienceCluster that no stack has created. None without one.
    definitions: the CRDs of jobs and queues that no stack has created, each with who installed it.
    subscriptions: the operators that OLM installed for others than a stack, by package, each with its version's name.
    own_definitions: the CRDs of jobs and queues that a stack has created.
    own_subscriptions: the operators that OLM installed for a stack, by package, each with the version that it names.
    kueue: a Kueue that no stack has installed.
    """

    identifier: str
    version: str
    nodes: tuple[NodeFacts, ...] = ()
    has_admission_policies: bool = True
    priority_classes: frozenset[str] = frozenset()
    default_priority: str | None = None
    storage_classes: frozenset[str] | None = None
    openshift: str | None = None
    has_registry: bool = True
    gpu_policies: tuple[GpuPolicy, ...] = ()
    data_science: DataScience | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    own_definitions: frozenset[str] = frozenset()
    own_subscriptions: Mapping[str, str] = field(default_factory=dict)
    kueue: ExistingKueue | None = None

    def nodes_with(self, labels: Mapping[str, str]) -> tuple[NodeFacts, ...]:
        """Return the nodes that have all of some labels."""
        return tuple(node for node in self.nodes if labels.items() <= node.labels.items())


def comes_with_admission_policies(version: str) -> bool:
    """Return whether a version of Kubernetes, such as 1.34, has ValidatingAdmissionPolicies on by default.

    Source: kubernetes.io, reference/access-authn-authz/validating-admission-policy (stable in 1.30).
    """
    return tuple(int(part) for part in version.split(".")[:2]) >= (1, 30)


def ask(kubeconfig: Kubeconfig, node_selectors: Iterable[Mapping[str, str]] = ()) -> ClusterFacts:
    """Return facts about the cluster, and about the nodes that have one of these sets of labels.

    Signs in with the kubeconfig's credentials and exec plugins. Raises KubeconfigError if the cluster does not answer
    or the user lacks permissions.
    """
    # Only targets with a kubeconfig need it.
    import kubernetes
    from urllib3.exceptions import HTTPError

    try:
        client = kubernetes.config.new_client_from_config_dict(yaml.safe_load(kubeconfig.contents))
        version = read(client, "/version/")
        ranks = read(client, "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
        classes = read(client, "/apis/storage.k8s.io/v1/storageclasses")["items"]
        subscriptions, own_subscriptions = others.subscriptions(client)
        definitions, own_definitions = others.definitions(client, own_subscriptions)
        return ClusterFacts(
            identifier=_uid(client) or identity(kubeconfig),
            version=f"{version['major']}.{''.join(filter(str.isdigit, version['minor']))}",
            nodes=_nodes(client, node_selectors),
            has_admission_policies=_has_admission_policies(client),
            priority_classes=frozenset(item["metadata"]["name"] for item in ranks),
            default_priority=_default_priority(ranks),
            storage_classes=frozenset(item["metadata"]["name"] for item in classes),
            openshift=_openshift(client),
            has_registry=_has_registry(client),
            gpu_policies=_gpu_policies(client),
            data_science=others.data_science(client, subscriptions),
            definitions=definitions,
            subscriptions=subscriptions,
            own_definitions=own_definitions,
            own_subscriptions=own_subscriptions,
            kueue=others.kueue(client, definitions),
        )
    except kubernetes.client.ApiException as error:
        if error.status == UNAUTHORIZED:
            raise KubeconfigError(
                f"cluster {kubeconfig.cluster} at {kubeconfig.server} rejects the kubeconfig's credentials (HTTP 401 "
                "Unauthorized): they have expired or are invalid",
                "sign in again (`oc login` on OpenShift), or name another context",
                path=("kubernetes", "context"),
                expected="",
            ) from None
        reason = f"it rejects the request (HTTP {error.status} {error.reason})"
        if error.status in FORBIDDEN:
            reason += "; the user must be a cluster administrator, who can read nodes and namespaces"
        raise silent(kubeconfig, reason) from None
    except kubernetes.config.ConfigException as error:
        raise silent(kubeconfig, f"cannot sign in: {error}") from None
    except HTTPError as error:
        raise silent(kubeconfig, f"no answer within {cluster_api.SECONDS:g} s: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise silent(kubeconfig, f"the address does not answer as an API server ({error!r})") from None


def require_identity(kubeconfig: Kubeconfig, settings: KubernetesSettings, facts: ClusterFacts) -> None:
    """Raise KubeconfigError if this is not the cluster that the settings name for the stack."""
    if settings.identifier not in (None, facts.identifier):
        raise KubeconfigError(
            f"the kubeconfig names another cluster: {kubeconfig.cluster} at {kubeconfig.server} has the UID "
            f"{facts.identifier}",
            "use that cluster's kubeconfig or context, or create a separate stack for the other cluster",
            path=("kubernetes", "identifier"),
            expected="",
        )


def identity(kubeconfig: Kubeconfig) -> str:
    """Return an identifier of a cluster that needs no request: a digest of its address and certificate authority."""
    text = f"{kubeconfig.server}\n{kubeconfig.authority or ''}"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _uid(client: Any) -> str | None:
    """Return the UID of namespace kube-system, which is constant, or None if the user cannot read it."""
    found = unless(client, FORBIDDEN, "/api/v1/namespaces/kube-system")
    return None if found is None else str(found["metadata"]["uid"])


def _has_admission_policies(client: Any) -> bool:
    """Return whether the cluster's discovery lists the policies: before 1.30, and where they are off, it does not."""
    found = unless(client, ABSENT, "/apis/admissionregistration.k8s.io/v1/")
    return found is not None and any(kind["name"] == "validatingadmissionpolicies" for kind in found["resources"])


def _openshift(client: Any) -> str | None:
    """Return the version of OpenShift that was last installed completely, or None without a ClusterVersion.

    During an update the newest entry of the history is partial (openshift/api, config/v1/types_cluster_version.go).
    """
    found = unless(client, ABSENT, "/apis/config.openshift.io/v1/clusterversions/version")
    if found is None:
        return None
    status = found["status"]
    completed = [item["version"] for item in status.get("history") or () if item["state"] == "Completed"]
    return str(completed[0] if completed else status["desired"]["version"])


def _has_registry(client: Any) -> bool:
    """Return whether OpenShift's image registry is not known to be off.

    On bare metal it is off until an administrator configures its storage (openshift/api, imageregistry/v1; OpenShift
    documentation, "Configuring the registry for bare metal").
    """
    found = asked(client, "imageregistry.operator.openshift.io", "v1", "configs", "cluster")
    return found is None or (found.get("spec") or {}).get("managementState") != "Removed"


def _gpu_policies(client: Any) -> tuple[GpuPolicy, ...]:
    """Return how the GPU operator hands out GPUs (NVIDIA/gpu-operator, api/nvidia/v1/clusterpolicy_types.go)."""
    found = asked(client, "nvidia.com", "v1", "clusterpolicies") or {}
    return tuple(_gpu_policy(item) for item in found.get("items") or ())


def _gpu_policy(item: Mapping[str, Any]) -> GpuPolicy:
    """Return which settings of a container the toolkit obeys, if the policy installs it. Default: variables, no mounts.

    Source: NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk-installer/toolkit/toolkit.go.
    """
    spec = item.get("spec") or {}
    toolkit = spec.get("toolkit") or {}
    given = {each["name"]: str(each.get("value", "")).lower() for each in toolkit.get("env") or ()}
    brings = toolkit.get("enabled", True)
    return GpuPolicy(
        name=item["metadata"]["name"],
        by_variable=brings and given.get(BY_VARIABLE) not in _FALSE,
        by_mount=brings and given.get(BY_MOUNT, "false") not in _FALSE,
        cdi=bool((spec.get("cdi") or {}).get("enabled")),
        is_others=is_others(item),
    )


def _default_priority(classes: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the default class that does not belong to the platform. The platform's exist from the first update on.

    If there are several, the API server uses the lowest (kubernetes v1.34.2, plugin/pkg/admission/priority).
    """
    own = {item["metadata"]["name"]: item["value"] for item in classes if item.get("globalDefault")}
    default = min(own, key=lambda name: (own[name], name), default=None)
    return None if default in PRIORITIES else default


def _nodes(client: Any, selectors: Iterable[Mapping[str, str]]) -> tuple[NodeFacts, ...]:
    nodes: dict[str, NodeFacts] = {}
    for labels in selectors:
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        for item in read(client, "/api/v1/nodes", labelSelector=selector)["items"]:
            metadata, allocatable = item["metadata"], item["status"].get("allocatable") or {}
            nodes[metadata["name"]] = NodeFacts(
                name=metadata["name"],
                labels=metadata.get("labels") or {},
                allocatable={name: canonical(amount) for name, amount in allocatable.items()},
            )
    return tuple(nodes.values())
