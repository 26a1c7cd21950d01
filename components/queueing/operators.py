"""Common parts of Kueue and AppWrapper in MLBatch: one namespace, priority and pinned images.

Pure functions return the document to install for a document of an upstream manifest.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components import names
from components.kubernetes.controller import ControllerPods, spread
from components.kubernetes.manifests import SKIP_AWAIT, Document, Edit, Manifests, ManifestsArgs, register_all
from components.kubernetes.objects import checksum, disruption_budget
from components.kubernetes.placement import RESCHEDULED
from components.kubernetes.resources import Resources
from components.layer import Layer

_NAME_LABEL: Final = "app.kubernetes.io/name"
_WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_WRITE: Final = "update"
AWAIT_CERTIFICATE: Final = {"pulumi.com/waitFor": "jsonpath={.webhooks[*].clientConfig.caBundle}"}
"""The provider waits until the controller has written its certificate authority. From then on, calls succeed."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """How one upstream operator is installed.

    name: upstream's value of the label app.kubernetes.io/name.
    upstream_namespace: namespace in its manifest. All objects move to mlbatch-system.
    images: references by container name.
    config: text of the ConfigMap `config_map`, under `config_key`. Its digest is an annotation of the pods, so that
    they restart after a change.
    kinds: kinds of jobs whose CRDs it looks for when it starts. It restarts when one is added.
    pods: all replicas answer the API server's calls.
    """

    name: str
    upstream_namespace: str
    images: Mapping[str, str]
    resources: Resources
    config_map: str
    config_key: str
    config: str
    pods: ControllerPods
    kinds: Sequence[str] = ()

    def selector(self) -> Mapping[str, str]:
        """Return the labels of its pods."""
        return {"control-plane": "controller-manager", _NAME_LABEL: self.name}


def install(document: Document, operator: Operator) -> Document | None:
    """Return an upstream document as MLBatch installs it, or None for the namespace, which already has an owner.

    Both upstreams select their pods only by the label control-plane=controller-manager. In one namespace, each Service
    would also select the other operator's pods. The selectors therefore name the operator too, as in MLBatch's
    overlays.
    """
    document = renamespaced(deepcopy(document), operator.upstream_namespace, names.SYSTEM_NAMESPACE)
    kind = document["kind"]
    if kind == "Namespace":
        return None
    if kind == "Service":
        document["spec"]["selector"][_NAME_LABEL] = operator.name
        annotate(document, SKIP_AWAIT)
    elif kind == "Deployment":
        _run(document, operator)
    elif kind == "ConfigMap" and document["metadata"]["name"] == operator.config_map:
        document["data"] = {operator.config_key: operator.config}
    elif kind.endswith("WebhookConfiguration"):
        annotate(document, AWAIT_CERTIFICATE)
        for webhook in document["webhooks"]:
            # A cloud may write its own selector into webhooks. Each update would then conflict with it.
            webhook.pop("namespaceSelector", None)
    elif kind == "ClusterRole" and "aggregationRule" not in document:  # a controller writes an aggregate's rules
        document["rules"] = [part for rule in document["rules"] for part in _own_webhooks(rule, operator)]
    return document


class OperatorLayer(Layer):
    """An upstream operator in mlbatch-system, which must exist."""

    definitions: Sequence[pulumi.Resource]
    """Its CRDs. Kueue looks for those of jobs when it starts."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to create objects of its kinds: its controller is available and its webhooks answer."""

    def _install(self, name: str, manifest: str, operator: Operator, edit: Edit) -> None:
        """Register the edited manifest, and a PodDisruptionBudget that keeps one replica while nodes are drained.

        A single replica gets no budget, because it must be able to move.
        """
        child = pulumi.ResourceOptions(parent=self)
        manifests = Manifests(name, ManifestsArgs(text=manifest, edit=edit), child)
        if operator.pods.replicas > 1:
            pods = f"{operator.name}-controller-manager"
            register_all(name, [disruption_budget(pods, names.SYSTEM_NAMESPACE, operator.selector())], child)
        self.definitions, self.ready = manifests.definitions, manifests.ready
        self.register_outputs({})


def renamespaced(value: Any, old: str, new: str) -> Any:
    """Return a document with each string that equals `old` replaced by `new`.

    Metadata, binding subjects, clients of webhooks and conversion, aggregated APIs and namespace selectors name a
    namespace. No other field of the upstream documents has such a value.
    """
    if isinstance(value, dict):
        return {key: renamespaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [renamespaced(item, old, new) for item in value]
    return new if value == old else value


def annotate(document: Document, annotations: Mapping[str, str]) -> None:
    """Add annotations to a document in place."""
    document["metadata"].setdefault("annotations", {}).update(annotations)


def _own_webhooks(rule: Document, operator: Operator) -> list[Document]:
    """Return a rule of a role that lets the operator write its certificate only into its own webhooks.

    Upstream's roles, except that of Kueue 0.19, let each operator write all webhooks. An operator could then read and
    change every request to the cluster. Admission policies do not apply to webhook configurations.
    """
    is_bounded = _WRITE not in rule["verbs"] or "resourceNames" in rule
    if is_bounded or not {*_WEBHOOKS} & {*rule.get("resources", ())}:
        return [rule]
    own = [f"{operator.name}-{how}-webhook-configuration" for how in ("mutating", "validating")]
    read = {**rule, "verbs": [verb for verb in rule["verbs"] if verb != _WRITE]}
    return [read, {**rule, "resourceNames": own, "verbs": [_WRITE]}]


def _run(deployment: Document, operator: Operator) -> None:
    spec = deployment["spec"]
    template = spec["template"]
    spec["selector"]["matchLabels"][_NAME_LABEL] = operator.name
    annotate(template, checksum("\n".join([operator.config, *operator.kinds])))
    spec["replicas"] = operator.pods.replicas
    template["spec"] |= {"priorityClassName": names.SYSTEM_PRIORITY, **operator.pods.nodes.body(RESCHEDULED)}
    if operator.pods.replicas > 1:
        template["spec"]["topologySpreadConstraints"] = spread(operator.selector())
    for container in template["spec"]["containers"]:
        container["image"] = operator.images[container["name"]]
        container["imagePullPolicy"] = "IfNotPresent"
        container["resources"] = operator.resources.body()
