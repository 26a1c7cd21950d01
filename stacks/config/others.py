"""What others than a stack have installed on a cluster: operators, definitions of jobs and queues, and a Kueue."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from components import names
from components.job_kinds import APPWRAPPER, JOB_SET, POD_GROUP, SUBMITTED
from components.queueing.running_kueue import KUEUE, RunningKueue
from stacks.config.cluster_api import METADATA, asked
from stacks.config.errors import listed

CLUSTER_QUEUES: Final = f"clusterqueues.{names.KUEUE_GROUP}"
CERTIFICATES: Final = "certificates.cert-manager.io"
OPENSHIFT_AI: Final = "OpenShift AI"
OPENSHIFT_AI_PACKAGE: Final = "rhods-operator"
KUEUE_PACKAGE: Final = "kueue-operator"
HELM_RELEASE: Final = "the Helm release "
_DEFINED: Final = frozenset(
    [CLUSTER_QUEUES, CERTIFICATES, *(kind.resource for kind in (*SUBMITTED, APPWRAPPER, JOB_SET, POD_GROUP))]
)
"""Kinds that tell that their operator is installed."""
_OPERATORS: Final = ("codeflare", "kueue", "ray", "trainer", "trainingoperator")
"""Components of a DataScienceCluster that run jobs."""
_WAITED_FOR: Final = "pulumi.com/waitFor"
_STACK: Final = "pulumi-kubernetes"
"""Prefix of the field managers of stacks (pulumi-kubernetes, server-side apply)."""
_COMPONENT: Final = "app.opendatahub.io/"
"""Prefix of the labels of what OpenShift AI's operator creates (opendatahub-io/opendatahub-operator, pkg/metadata)."""
_BY_OLM: Final = "operators.coreos.com/"
"""Prefix of OLM's labels, followed by package and namespace (operator-framework, pkg/controller/operators/decorators).
"""
_HELM: Final = "meta.helm.sh/release-name"
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_APPLIED: Final = "-client-side-apply"
_VERSION: Final = re.compile(r"v?(\d+\.\d+\.\d+)")
_OLDEST: Final = "0.16"
"""The first Kueue that stores v1beta2 (kubernetes-sigs/kueue, CHANGELOG/CHANGELOG-0.15.md)."""
_OLDEST_BEFORE: Final = "0.11"
"""The oldest version that a stack can adopt (stacks/validation/adoption.py)."""
BY_NAME: Final = "kubernetes.io/metadata.name"
"""Label that the API server sets to a namespace's name."""
_CONFIG: Final = "controller_manager_config.yaml"
_KUEUE_PODS: Final = "app.kubernetes.io/name=kueue,control-plane=controller-manager"
"""Labels in Kueue's manifests and chart (kubernetes-sigs/kueue, config/default, charts/kueue)."""


@dataclass(frozen=True, kw_only=True)
class DataScience:
    """OpenShift AI. name: of its DataScienceCluster. components: those that it runs, such as kueue and ray.

    version: of OpenShift AI, such as 2.25.8. None if OLM did not install it.
    """

    name: str
    components: tuple[str, ...] = ()
    version: str | None = None

    @property
    def operators(self) -> Sequence[str]:
        """Its components that install definitions of jobs or queues."""
        return [name for name in self.components if name in _OPERATORS]

    @property
    def described(self) -> str:
        """Its version and its DataScienceCluster, for a message."""
        version = f" {self.version}" if self.version is not None else ""
        running = spoken(self.operators) or "no operator of jobs"
        return f"{OPENSHIFT_AI}{version} with the DataScienceCluster {self.name}, which runs {running}"


@dataclass(frozen=True, kw_only=True)
class ExistingKueue:
    """A Kueue that no stack has installed.

    owner: who installed it. namespace, account: of its pods. deployment: its name.
    version: such as 0.16.2. None if unknown.
    api: the stored API version of its queues. configuration: its configuration file.
    flavors, queues: names of the ResourceFlavors and ClusterQueues that no stack has created.
    """

    owner: str
    namespace: str
    account: str
    deployment: str = KUEUE
    version: str | None = None
    api: str = names.KUEUE_API
    configuration: Mapping[str, Any] = field(default_factory=dict)
    flavors: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def running(self) -> RunningKueue:
        """Return what the platform needs to know about it."""
        oldest = _OLDEST if self.api == names.KUEUE_API else _OLDEST_BEFORE
        return RunningKueue(
            version=self.version or oldest,
            account=f"system:serviceaccount:{self.namespace}:{self.account}",
            namespace=self.namespace,
            deployment=self.deployment,
            api=self.api,
            labels=self._selected(),
            unlimited=[name for name in (names.DISK, names.SHARED_INFINIBAND) if not self._excludes(name)],
            flavors=self.flavors,
            has_queues=True,
        )

    @property
    def frameworks(self) -> Sequence[str]:
        return tuple((self.configuration.get("integrations") or {}).get("frameworks") or ())

    def _selected(self) -> Mapping[str, str]:
        """Return the labels of the namespaces whose jobs it manages, besides the platform's own."""
        selector = self.configuration.get("managedJobsNamespaceSelector") or {}
        labels = dict(selector.get("matchLabels") or {})
        for each in selector.get("matchExpressions") or ():
            if each["operator"] in ("In", "Exists"):
                labels[each["key"]] = (each.get("values") or ["true"])[0]
        return {name: value for name, value in labels.items() if name not in (names.TEAM_LABEL, BY_NAME)}

    def _excludes(self, resource: str) -> bool:
        prefixes = (self.configuration.get("resources") or {}).get("excludeResourcePrefixes") or ()
        return any(resource.startswith(prefix) for prefix in prefixes)


def is_others(item: Mapping[str, Any]) -> bool:
    """Return whether no stack manages an object. A stack's own object has the annotation that the stack waits for."""
    return _WAITED_FOR not in (item["metadata"].get("annotations") or {})


def data_science(client: Any, packages: Mapping[str, str]) -> DataScience | None:
    """Return the OpenShift AI of others, which has one DataScienceCluster. packages: what OLM installed, with versions.

    Source: opendatahub-io/opendatahub-operator, api/datasciencecluster. From 3.0 on, v1 needs a conversion.
    """
    for version in ("v2", "v1"):
        found = asked(client, "datasciencecluster.opendatahub.io", version, "datascienceclusters") or {}
        for item in filter(is_others, found.get("items") or ()):
            states = (item.get("spec") or {}).get("components") or {}
            return DataScience(
                name=item["metadata"]["name"],
                components=tuple(
                    sorted(name for name, each in states.items() if each.get("managementState", "Removed") != "Removed")
                ),
                version=_version(packages.get(OPENSHIFT_AI_PACKAGE, "")),
            )
    return None


def subscriptions(client: Any) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the operators that OLM installed for others, by package, with the name of each version.

    Return also those that it installed for a stack, with the version that the stack names.
    """
    found = (asked(client, "operators.coreos.com", "v1alpha1", "subscriptions") or {}).get("items") or ()
    own = [item for item in found if _is_of_a_stack(item["metadata"])]
    return {
        item["spec"]["name"]: str((item.get("status") or {}).get("installedCSV") or "")
        for item in found
        if item not in own
    }, {item["spec"]["name"]: str(item["spec"].get("startingCSV") or "") for item in own}


def definitions(client: Any, packages: Collection[str]) -> tuple[Mapping[str, str], frozenset[str]]:
    """Return the definitions of jobs and queues of others, each with who installed it. Return also those of a stack.

    packages: the operators that OLM installed for a stack. What they define is neither.
    """
    found = asked(client, "apiextensions.k8s.io", "v1", "customresourcedefinitions", accept=METADATA) or {}
    items = [item["metadata"] for item in found.get("items") or () if item["metadata"]["name"] in _DEFINED]
    own = frozenset(item["name"] for item in items if _is_of_a_stack(item))
    owners = {item["name"]: owner(item) for item in items if item["name"] not in own}
    return {name: by for name, by in owners.items() if not any(_brings(each, name, by) for each in packages)}, own


def is_by_olm(owner: str, package: str) -> bool:
    """Return whether OLM created a definition for a package."""
    return owner.startswith(f"the operator {package}.")


def _brings(package: str, name: str, owner: str) -> bool:
    """Return whether a package creates a definition. The operators of these two create some themselves."""
    by_operator = {OPENSHIFT_AI_PACKAGE: owner == OPENSHIFT_AI, KUEUE_PACKAGE: name == CLUSTER_QUEUES}
    return is_by_olm(owner, package) or by_operator.get(package, False)


def kueue(client: Any, defined: Mapping[str, str]) -> ExistingKueue | None:
    """Return the Kueue of others, or None if its definitions or its Deployment do not exist."""
    home = _home(client) if CLUSTER_QUEUES in defined else None
    if home is None:
        return None
    found = asked(client, "apps", "v1", f"namespaces/{home}/deployments", labelSelector=_KUEUE_PODS) or {}
    for item in found.get("items") or ():
        metadata, pod = item["metadata"], item["spec"]["template"]["spec"]
        manager = next((each for each in pod["containers"] if each["name"] == "manager"), pod["containers"][0])
        labelled = (metadata.get("labels") or {}).get("app.kubernetes.io/version", "")
        api = _stored(client)
        return ExistingKueue(
            owner=defined[CLUSTER_QUEUES],
            namespace=metadata["namespace"],
            account=pod.get("serviceAccountName", "default"),
            deployment=metadata["name"],
            version=_version(manager["image"].partition("@")[0].rpartition("/")[2]) or _version(labelled),
            api=api,
            configuration=_configuration(client, metadata["namespace"], pod),
            flavors=_of_others(client, api, "resourceflavors"),
            queues=_of_others(client, api, "clusterqueues"),
        )
    return None


def _home(client: Any) -> str | None:
    """Return the namespace of Kueue's webhook. Users can create a Deployment that looks like Kueue's in their own."""
    found = asked(client, "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations") or {}
    for webhook in (each for item in found.get("items") or () for each in item.get("webhooks") or ()):
        groups = {group for rule in webhook.get("rules") or () for group in rule.get("apiGroups") or ()}
        service = webhook["clientConfig"].get("service")
        if names.KUEUE_GROUP in groups and service is not None:
            return str(service["namespace"])
    return None


def owner(metadata: Mapping[str, Any]) -> str:
    """Return who created an object, as its metadata tells."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if any(label.startswith(_COMPONENT) for label in labels):
        return OPENSHIFT_AI
    packages = [label.removeprefix(_BY_OLM) for label in labels if label.startswith(_BY_OLM)]
    if packages:
        return f"the operator {packages[0]}"
    if _HELM in annotations:
        return f"{HELM_RELEASE}{annotations.get(_HELM_NAMESPACE, '')}/{annotations[_HELM]}"
    for each in metadata.get("ownerReferences") or ():
        return f"{each['kind']} {each['name']} ({each['apiVersion']})"
    writers = [each["manager"] for each in metadata.get("managedFields") or () if each.get("manager")]
    return writers[0].removesuffix(_APPLIED) if writers else "somebody else"


def spoken(values: Sequence[str]) -> str:
    """Return values as a list for a sentence, such as `a, b and c`. Empty for an empty list."""
    *first, last = values or [""]
    return f"{listed(first)} and {last}" if first else last


def _of_others(client: Any, api: str, plural: str) -> tuple[str, ...]:
    """Return the names of the objects of a kind that no stack has created."""
    group, _, version = api.partition("/")
    found = (asked(client, group, version, plural, accept=METADATA) or {}).get("items") or ()
    return tuple(item["metadata"]["name"] for item in found if not _is_of_a_stack(item["metadata"]))


def _is_of_a_stack(metadata: Mapping[str, Any]) -> bool:
    return any(each.get("manager", "").startswith(_STACK) for each in metadata.get("managedFields") or ())


def _version(text: str) -> str | None:
    found = _VERSION.search(text)
    return found[1] if found is not None else None


def _stored(client: Any) -> str:
    """Return the stored API version of ClusterQueues."""
    found = asked(client, "apiextensions.k8s.io", "v1", "customresourcedefinitions", CLUSTER_QUEUES) or {}
    versions = (found.get("spec") or {}).get("versions") or ()
    stored = [each["name"] for each in versions if each.get("storage")]
    return f"{names.KUEUE_GROUP}/{stored[0]}" if stored else names.KUEUE_API


def _configuration(client: Any, namespace: str, pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Kueue's configuration, empty if it cannot be read."""
    maps = [volume["configMap"]["name"] for volume in pod.get("volumes") or () if "configMap" in volume]
    for name in maps:
        found = asked(client, "", "v1", f"namespaces/{namespace}/configmaps", name) or {}
        text = (found.get("data") or {}).get(_CONFIG)
        if text is not None:
            parsed = yaml.safe_load(text)
            return parsed if isinstance(parsed, Mapping) else {}
    return {}
