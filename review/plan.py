"""A stack as one revision declares it: the plan that `pulumi preview --json` prints, without secrets."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runner import placeholders
from runner.properties import SIGNATURE, UNKNOWNS

SECRET: Final = "[secret]"
"""Replaces a secret. The engine uses the same word."""

UNKNOWN: Final = "[known after the update]"
"""Replaces a value that is known only after the update."""

_SECRET_NAMES: Final = re.compile(
    r"(password|passwd|passphrase|token|secret|kubeconfig|credentials?|connection_?string"
    r"|(account|access|api|private|storage|shared)_?keys?)$",
    re.IGNORECASE,
)
"""Names of inputs and environment variables whose text is hidden, even if it is not marked as a secret."""

_EXITED: Final = "program exited with non-zero exit code"
"""The engine adds this text to the program's own message."""

_STACK: Final = "pulumi:pulumi:Stack"
_AZURE: Final = "azure-native:"
_TEAM: Final = "mlbatch:tenancy:Team"


class PlanError(Exception):
    """A revision's stack could not be previewed. The message comes from the engine or the program."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource that a plan declares.

    inputs: without secrets. provider: URN of its provider resource, empty for none.
    property_dependencies: by top-level input, the URNs whose outputs it uses.
    replace_on_changes, ignore_changes: property paths, as the program gave them to the engine.
    aliases: its earlier URNs. protected: the engine refuses to delete it.
    replace_with: URNs of resources that it is replaced with. deleted_with: URN of the resource whose deletion deletes
    it, empty for none.
    """

    urn: str
    type: str
    custom: bool
    parent: str = ""
    provider: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replace_on_changes: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    protected: bool = False
    replace_with: tuple[str, ...] = ()
    deleted_with: str = ""

    @property
    def name(self) -> str:
        return self.urn.rpartition("::")[2]

    @property
    def kind(self) -> str:
        """The short name of its type: `ClusterQueue`, `AgentPool`."""
        return self.type.rpartition(":")[2]

    @property
    def title(self) -> str:
        """`kind name`: the name in the cluster, with the namespace if there is one."""
        metadata = self.inputs.get("metadata")
        if not self.type.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return f"{self.kind} {self.name}"
        name, namespace = metadata.get("name", self.name), metadata.get("namespace")
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"


@dataclass(frozen=True)
class Plan:
    """All resources that a revision declares, by URN, in the engine's order."""

    resources: Mapping[str, Resource]

    def layer(self, resource: Resource) -> str:
        """Return the layer of a resource: `queueing` for one below `mlbatch:queueing:Kueue`.

        The nearest component decides. Azure resources always have the layer `azure`. Resources without a parent
        component have the layer `stack`.
        """
        if resource.type.startswith(_AZURE):
            return "azure"
        for each in self._upwards(resource):
            package, _, rest = each.type.partition(":")
            module, _, component = rest.partition(":")
            if package == "mlbatch" and component and module != "kubernetes":
                return module
        return "stack"

    def team(self, resource: Resource) -> str | None:
        """Return the team of the resource's component, None if it has no team."""
        return next((each.name for each in self._upwards(resource) if each.type == _TEAM), None)

    def _upwards(self, resource: Resource) -> Iterator[Resource]:
        current: Resource | None = resource
        while current is not None:
            yield current
            current = self.resources.get(current.parent)


def read(text: str) -> Plan:
    """Parse the output of `pulumi preview --json` for a stack without resources.

    Raises PlanError with the engine's messages if the preview failed.
    """
    try:
        printed = json.loads(text)
    except ValueError:
        raise PlanError(text.strip() or "the preview printed no text") from None
    messages = [str(each["message"]) for each in printed.get("diagnostics") or () if each["severity"] == "error"]
    errors = [message.strip().removeprefix("error: ") for message in messages]
    if errors:
        raise PlanError("\n".join([each for each in errors if _EXITED not in each] or errors))
    resources = {}
    for step in printed.get("steps") or ():
        state = step.get("newState")
        if state is None or state["type"] == _STACK:
            continue
        resources[state["urn"]] = _resource(state)
    return Plan(resources)


def hidden(value: Any, name: str = "") -> Any:
    """Return a value with words in place of secrets and unknowns.

    Hidden values are those that the engine marks, the content of Kubernetes Secrets, text under names that secrets
    usually have, and text that contains a placeholder of a secret.
    """
    if isinstance(value, Mapping):
        if SIGNATURE in value:
            return SECRET
        return _hidden_object(value)
    if isinstance(value, list | tuple):
        return [hidden(item, name) for item in value]
    if isinstance(value, str):
        if value in UNKNOWNS:
            return UNKNOWN
        if placeholders.MARK in value:
            return SECRET
        return SECRET if value and _SECRET_NAMES.search(name) else value
    return value


def _hidden_object(value: Mapping[str, Any]) -> dict[str, Any]:
    is_secret = value.get("kind") == "Secret" and value.get("apiVersion") == "v1"
    shown = {}
    for key, item in value.items():
        if is_secret and key in ("data", "stringData"):
            shown[key] = dict.fromkeys(item, SECRET) if isinstance(item, Mapping) else SECRET
        elif key == "value" and isinstance(value.get("name"), str):
            shown[key] = hidden(item, str(value["name"]))
        else:
            shown[key] = hidden(item, key)
    return shown


def _resource(state: Mapping[str, Any]) -> Resource:
    inputs = {key: value for key, value in (state.get("inputs") or {}).items() if not key.startswith("__")}
    return Resource(
        urn=state["urn"],
        type=state["type"],
        custom=state["custom"],
        parent=state.get("parent", ""),
        provider=str(state.get("provider", "")).rpartition("::")[0],
        inputs=hidden(inputs),
        property_dependencies={
            key: tuple(urns or ()) for key, urns in (state.get("propertyDependencies") or {}).items()
        },
        replace_on_changes=tuple(state.get("replaceOnChanges") or ()),
        ignore_changes=tuple(state.get("ignoreChanges") or ()),
        aliases=tuple(alias for alias in state.get("aliases") or () if isinstance(alias, str)),
        protected=bool(state.get("protect")),
        replace_with=tuple(state.get("replaceWith") or ()),
        deleted_with=str(state.get("deletedWith") or ""),
    )
