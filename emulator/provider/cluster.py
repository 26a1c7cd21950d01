"""The API server of one provider resource: where its objects are, and what happens while it is out of reach."""

from __future__ import annotations

from emulator.plugin.operation import Operation
from emulator.provider.client import Client
from emulator.provider.config import Settings
from emulator.provider.discovery import Discovery
from emulator.provider.errors import ApiError, NoMatchError, UnreachableError
from emulator.provider.objects import Manifest, Type, metadata, parse_id
from emulator.provider.target import Target

_ASSUMED_VERSION = "v1.34.0"  # of an API server that is out of reach


class Cluster:
    """An API server under the settings of one provider resource. Safe for any number of threads."""

    def __init__(self, settings: Settings, probe: Operation) -> None:
        """Connect. An API server that does not answer is remembered: previews then work from inputs alone."""
        self.settings = settings
        self.client = Client(settings)
        self.discovery = Discovery(self.client)
        self.unreachable: UnreachableError | None = None
        self.version = _ASSUMED_VERSION
        try:
            self.version = str(self.client.request("GET", "/version", probe)["gitVersion"])
        except UnreachableError as error:
            self.unreachable = error
        except ApiError as error:
            self.unreachable = UnreachableError(
                f"the API server {self.client.server} refuses the kubeconfig's credentials ({error}): put the user of "
                "the context right"
            )

    @property
    def namespace(self) -> str:
        """Where namespaced objects go that name none."""
        return self.settings.namespace

    def leaves_state(self, operation: Operation) -> bool:
        """Tell whether a resource leaves the state, as its cluster is out of reach and the provider says so."""
        if self.unreachable is None or not self.settings.delete_unreachable:
            return False
        operation.inform("the cluster is unreachable and deleteUnreachable is set: the resource leaves the state")
        return True

    def require(self, deleting: bool = False) -> None:
        """Raise UnreachableError when the API server did not answer at the start."""
        if self.unreachable is None:
            return
        hint = ". If the cluster is gone for good, set deleteUnreachable on the provider" if deleting else ""
        raise UnreachableError(f"{self.unreachable}{hint}")

    def serves(self, kind: Type, operation: Operation) -> bool:
        """Tell whether the API server is within reach and serves a kind."""
        return self.unreachable is None and self.discovery.exists(kind.api_version, kind.kind, operation)

    def is_namespaced(self, kind: Type, operation: Operation) -> bool:
        """Tell whether objects of a kind live in namespaces."""
        planned = self.discovery.planned(kind.api_version, kind.kind)
        if planned is not None:
            return planned.namespaced
        if self.unreachable is not None:
            # The namespace is then left out; a comparison with a recorded object takes its one.
            return False
        try:
            return self.discovery.find(kind.api_version, kind.kind, operation).namespaced
        except NoMatchError:
            # Perhaps a custom resource whose definition comes later; creating it puts a wrong guess right.
            return True

    def target(self, manifest: Manifest, identifier: str, operation: Operation) -> Target:
        """Return the object of a resource ID. Raises NoMatchError when its kind is not served."""
        resource = self.discovery.find(str(manifest["apiVersion"]), str(manifest["kind"]), operation)
        namespace, name = parse_id(identifier)
        if resource.namespaced:
            namespace = namespace or str(metadata(manifest).get("namespace") or "default")
        return Target(self.client, self.discovery, resource, namespace if resource.namespaced else "", name)
