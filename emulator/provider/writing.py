"""Creating objects and applying changes to them under their field managers; at preview as dry runs."""

from __future__ import annotations

from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.provider import ownership
from emulator.provider.client import APPLY, JSON_PATCH, Query
from emulator.provider.cluster import Cluster
from emulator.provider.errors import ApiError, NoMatchError
from emulator.provider.objects import Manifest, Type, is_crd, metadata
from emulator.provider.target import Target

_CREATE_RETRIES = 5
_FIRST_PAUSE_SECONDS = 1.0


class Writer:
    """Writes to one API server. What it returns is the live object as the API server answered it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def create(self, kind: Type, inputs: Manifest, manager: str, operation: Operation) -> tuple[Target, Manifest]:
        """Send the create; tries again while the kind or what the object refers to does not exist yet."""
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(_CREATE_RETRIES):
            try:
                return self._create(kind, inputs, manager, operation)
            except (ApiError, NoMatchError) as error:
                if isinstance(error, ApiError) and (
                    not error.not_found or (operation.preview and error.namespace_missing)
                ):
                    raise
                operation.status(f"creation failed, attempt {attempt + 2} follows in {pause:.0f} s: {error}")
            operation.sleep(pause)
            pause *= 2
        return self._create(kind, inputs, manager, operation)

    def _create(self, kind: Type, inputs: Manifest, manager: str, operation: Operation) -> tuple[Target, Manifest]:
        settings, client = self._cluster.settings, self._cluster.client
        target = self._cluster.target(inputs, str(metadata(inputs)["name"]), operation)
        body = _scoped(inputs, target.namespace)
        query: Query = {"dryRun": "All"} if operation.preview else {}
        if kind.patch or settings.upsert:
            force = ownership.forced(inputs, None, always=settings.patch_force, preview=operation.preview)
            query |= {"fieldManager": manager, "force": str(force).lower()}
            try:
                live = client.request("PATCH", target.path, operation, query, body, APPLY)
            except ApiError as error:
                raise ownership.explained(error, manager) from None
        else:
            query["fieldManager"] = ownership.CREATE_MANAGER
            live = client.request("POST", target.resource.path(target.namespace), operation, query, body)
        operation.clear_status()
        return target, live

    def apply(self, kind: Type, target: Target, inputs: Manifest, manager: str, operation: Operation) -> Manifest:
        """Bring an object to the inputs. Raises ProviderError when there is none."""
        client = self._cluster.client
        live = target.read(operation)
        if live is None:
            raise ProviderError(
                f"{inputs['kind']} {target.name} does not exist any more: run pulumi refresh, then the command again"
            )
        query: Query = {"fieldManager": manager} | ({"dryRun": "All"} if operation.preview else {})
        body = _scoped(inputs, target.namespace)
        if is_crd(inputs):
            # A definition is replaced as a whole, which keeps its custom resources.
            meta = {**metadata(body), "resourceVersion": metadata(live)["resourceVersion"]}
            return client.request("PUT", target.path, operation, query, {**body, "metadata": meta})
        if not operation.preview and not kind.patch:
            patch = ownership.transfer(live, manager)
            if patch:
                live = client.request("PATCH", target.path, operation, None, patch, JSON_PATCH)
        body = ownership.honour_ignored(body, live, manager, operation.ignore)
        force = ownership.forced(inputs, live, always=self._cluster.settings.patch_force, preview=operation.preview)
        query["force"] = str(force).lower()
        try:
            return client.request("PATCH", target.path, operation, query, body, APPLY)
        except ApiError as error:
            raise ownership.explained(error, manager) from None

    def relinquish(self, target: Target, api_version: str, kind: str, manager: str, operation: Operation) -> None:
        """Apply nothing under the manager, which makes it give up every field."""
        body = _scoped({"apiVersion": api_version, "kind": kind, "metadata": {"name": target.name}}, target.namespace)
        try:
            self._cluster.client.request("PATCH", target.path, operation, {"fieldManager": manager}, body, APPLY)
        except ApiError as error:
            causes = error.details.get("causes") or []
            required = [str(cause["field"]) for cause in causes if cause.get("reason") == "FieldValueRequired"]
            if not required:
                raise
            raise ProviderError(
                f"{manager} manages required fields ({', '.join(required)}), so they cannot be given up: set the "
                "resource option retainOnDelete, or hand the fields to another manager first"
            ) from None


def _scoped(inputs: Manifest, namespace: str) -> Manifest:
    """Give the object the namespace that its URL path has."""
    meta = {key: value for key, value in metadata(inputs).items() if key != "namespace"}
    return {**inputs, "metadata": {**meta, "namespace": namespace} if namespace else meta}


def foreseen_as_inputs(error: ApiError) -> bool:
    """Tell whether a dry run of a create failed for what the update itself may put right, or may do.

    That is a replacement of the same name, missing rights, a namespace to come, and an admission plugin without dry
    runs (pulumi-kubernetes, `Create` in provider/pkg/provider/provider.go); a webhook that does not answer is not.
    """
    return (
        error.forbidden
        or error.already_exists
        or error.namespace_missing
        or (error.code == 400 and "does not support dry run" in str(error))
    )


def create_failure(error: ApiError, what: str) -> ProviderError:
    """Return the error for the user when an object was not created."""
    if not error.already_exists:
        return ProviderError(f"{what} was not created: {error}")
    return ProviderError(
        f"{error}. This provider does not take over objects that it did not create. If the resource was renamed in the "
        "program, give it an alias to its old name; if it is to replace an object of the same name, set "
        "deleteBeforeReplace; to manage an object made by others, run pulumi import; to set a few of its fields only, "
        "use the kind's Patch resource; to overwrite whatever exists, set upsertExistingObjects on the provider"
    )
