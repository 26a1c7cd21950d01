"""Read the cluster's objects that decide about jobs. Does not change any."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from components import names
from components.job_kinds import POD_GROUP, QUEUED
from components.tables import Table
from runner import report
from runner.report import TEAM_LABEL, Client, connect, objects

Document = dict[str, Any]

GROUPS: Final = (
    names.KUEUE_GROUP,
    *dict.fromkeys(kind.group for kind in (*QUEUED, POD_GROUP)),
)
"""Kinds that jobs consist of, or that decide about jobs."""
RBAC: Final = "rbac.authorization.k8s.io/v1"
ADMISSION: Final = "admissionregistration.k8s.io/v1"


class _Kinds(Table):
    deciding: Mapping[str, tuple[str, ...]]


DECIDING: Final = tuple((version, kind) for version, kinds in _Kinds.load(__name__).deciding.items() for kind in kinds)
"""API version and name of all other kinds."""
_UNAUTHORIZED: Final = 401
_NOBODY: Final = "system:anonymous"
"""The user if the program that a kubeconfig uses to sign in has failed. The client continues without credentials."""
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class SourceError(Exception):
    """The cluster cannot be read, or does not have the platform. The message says why."""


@dataclass(frozen=True)
class Source:
    """The objects that were read, by kind, as the API server returns them."""

    kinds: Mapping[str, Sequence[Document]]

    def all(self, kind: str) -> Sequence[Document]:
        return self.kinds.get(kind, ())

    @property
    def teams(self) -> list[str]:
        label, _, value = TEAM_LABEL.partition("=")
        found = self.all("Namespace")
        return sorted(_name(item) for item in found if (item["metadata"].get("labels") or {}).get(label) == value)

    def members(self, team: str, kind: str = "User") -> list[str]:
        """Return the users, or the groups, that a team's RoleBindings name."""
        bindings = [item for item in self.all("RoleBinding") if item["metadata"].get("namespace") == team]
        return report.members(bindings, kind)

    def queue_owners(self, team: str) -> dict[str, str]:
        """Return the LocalQueues that belong to one user, by user."""
        found = [item for item in self.all("Namespace") if _name(item) == team]
        noted = [(item["metadata"].get("annotations") or {}).get(names.USER_QUEUES, "") for item in found]
        pairs = [line.partition("=") for text in noted for line in text.splitlines()]
        return {user: queue for queue, _, user in pairs}

    def covered(self) -> list[str]:
        """Return the resources that queues cover."""
        groups = [group for queue in self.all("ClusterQueue") for group in queue["spec"].get("resourceGroups") or ()]
        return sorted({name for group in groups for name in group["coveredResources"]})


def read(kubeconfig: Path | None, context: str | None) -> Source:
    """Read a cluster. Raises SourceError if it cannot be read."""
    try:
        client = connect(kubeconfig, context, report.SECONDS)
    except ConfigException as error:
        raise SourceError(
            f"the kubeconfig cannot be used: {error}; name another one with --kubeconfig or --context"
        ) from error
    except ApiException as error:
        raise _unreadable(error, "its kinds of objects") from error
    except HTTPError as error:
        raise SourceError(
            f"the cluster does not answer: {error}. Start the cluster or its VPN, or name another one with --context"
        ) from error
    return _read(client)


def _unreadable(error: ApiException, what: str) -> SourceError:
    if error.status == _UNAUTHORIZED or _NOBODY in str(error.body):
        return SourceError(
            f"the cluster rejects the user ({error.status} {error.reason}): sign in again, or name a kubeconfig "
            "and a context that works with `kubectl get nodes`"
        )
    return SourceError(
        f"the user cannot list {what} of the cluster ({error.status} {error.reason}): ask an administrator to bind the "
        "ClusterRole in docs/ask.md to the user"
    )


def _read(client: Client) -> Source:
    definitions = [item for item in _listed(client, *_DEFINITION) if item["spec"]["group"] in GROUPS]
    if not any(item["spec"]["group"] == names.KUEUE_GROUP for item in definitions):
        raise SourceError("the cluster has no Kueue: the platform is not installed, or this is the wrong cluster")
    kinds = {_DEFINITION[1]: definitions}
    kinds |= {kind: _listed(client, version, kind) for version, kind in DECIDING}
    for item in definitions:
        version = next(each["name"] for each in item["spec"]["versions"] if each["storage"])
        kind = item["spec"]["names"]["kind"]
        kinds[kind] = _listed(client, f"{item['spec']['group']}/{version}", kind)
    return Source(kinds)


def _listed(client: Client, version: str, kind: str) -> list[Document]:
    try:
        found = objects(client, version, kind)
    except ApiException as error:
        raise _unreadable(error, f"{kind}s") from error
    except HTTPError as error:
        raise SourceError(
            f"the cluster does not answer: {error}. Start the cluster or its VPN, or name another one with --context"
        ) from error
    return [_plain({**item, "apiVersion": version, "kind": kind}) for item in found]


def _plain(item: Document) -> Document:
    """Return an object without its version. managedFields stay, because an apply without them is rejected."""
    left_out = ("resourceVersion", "selfLink")
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key not in left_out}}


def _name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def in_namespaces(items: Iterable[Document], namespaces: Iterable[str]) -> list[Document]:
    """Return the objects of some namespaces."""
    wanted = set(namespaces)
    return [item for item in items if item["metadata"].get("namespace") in wanted]
