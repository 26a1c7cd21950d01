"""Create, read, update and delete: what reaches the API server, and what the engine keeps of it.

The state of a resource is its live object plus `__inputs`, `__initialApiVersion` and `__fieldManager`, as the
official provider keeps it, so that either can carry on with the other's stack. Managed fields are left out of the
state: nothing reads them from there, and they are a third of an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from google.protobuf.struct_pb2 import Struct

from emulator.plugin import wire
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.orphans import Orphans
from emulator.plugin.wire import Decoded
from emulator.provider import awaiting, definitions, diffing, ownership
from emulator.provider.awaiting import Target
from emulator.provider.check import Naming, checked, removed_kind, with_namespace
from emulator.provider.client import APPLY, JSON_PATCH, Client, Query
from emulator.provider.config import Settings
from emulator.provider.discovery import Discovery, Resource, scopes
from emulator.provider.errors import ApiError, NoMatchError, NotReadyError, UnreachableError
from emulator.provider.objects import (
    DELETION_PROPAGATION,
    READ_ONLY_METADATA,
    REPLACE_UNREADY,
    Manifest,
    Type,
    annotation,
    canonical_quantities,
    is_crd,
    is_true,
    metadata,
    normalized,
    object_id,
    parse_id,
    prune,
    to_json,
)
from emulator.provider.secrecy import annotate, needs_annotation

INPUTS, INITIAL_API_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
_LEAVES_STATE = "the cluster is unreachable and deleteUnreachable is set: the resource leaves the state"
_STATE_STAYS = "the cluster is unreachable and skipUpdateUnreachable is set: the state stays as it is"
_ASSUMED_VERSION = "v1.34.0"  # of an API server that is out of reach
_CREATE_RETRIES = 5
_FIRST_PAUSE_SECONDS = 1.0
_NOT_INPUTS_OF_IMPORTS = ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A refreshed resource; an empty identifier says that it is gone."""

    identifier: str
    properties: Struct | None
    inputs: Struct | None


class Lifecycle:
    """The resource operations of one configured provider resource. Safe for any number of threads."""

    def __init__(self, settings: Settings, orphans: Orphans, probe: Operation) -> None:
        """Connect. An API server that does not answer is remembered: previews then work from inputs alone."""
        self._settings = settings
        self._orphans = orphans
        self._client = Client(settings)
        self._discovery = Discovery(self._client)
        self._scopes: dict[tuple[str, str], bool] = {}
        self._rules = diffing.Rules(settings.config_map_mutable, settings.secret_mutable)
        self._unreachable: UnreachableError | None = None
        self.version = _ASSUMED_VERSION
        try:
            self.version = str(self._client.request("GET", "/version", probe)["gitVersion"])
        except UnreachableError as error:
            self._unreachable = error
        except ApiError as error:
            self._unreachable = UnreachableError(
                f"the API server {self._client.server} refuses the kubeconfig's credentials ({error}): put the "
                "user of the "
                "context right"
            )

    def check(self, decoded: Decoded, kind: Type, naming: Naming, operation: Operation) -> Manifest:
        """Return the checked inputs, plain; the very same object as `decoded.plain` when nothing had to change."""
        inputs = checked(decoded, kind, naming)
        warning = removed_kind(kind)
        if warning:
            operation.warn(warning)
        if is_crd(inputs) and not decoded.has_unknowns:
            self._scopes.update(scopes(inputs))
        if metadata(inputs).get("namespace") is None and self._is_namespaced(kind, operation):
            inputs = with_namespace(inputs, self._settings.namespace)
        return inputs

    def _is_namespaced(self, kind: Type, operation: Operation) -> bool:
        declared = self._scopes.get((kind.api_version, kind.kind))
        if declared is not None:
            return declared
        if self._unreachable is not None:
            return (kind.group, kind.kind) not in _CLUSTER_SCOPED
        try:
            return self._discovery.find(kind.api_version, kind.kind, operation).namespaced
        except NoMatchError:
            # Perhaps a custom resource whose definition comes later; creating it puts a wrong guess right.
            return True

    def skips_updates(self) -> bool:
        """Tell whether the cluster is out of reach and the provider is told to leave everything as it is then."""
        return self._unreachable is not None and self._settings.skip_update_unreachable

    def diff(
        self, kind: Type, olds: Struct, news: Struct, ignore: list[str], operation: Operation
    ) -> diffing.Difference:
        """Compare the state with the new inputs, without asking the API server."""
        self._orphans.claim(wire.text(olds, "metadata", "uid"))
        recorded = olds.fields[INPUTS].struct_value if INPUTS in olds.fields else Struct()
        old = normalized(wire.decode(recorded).plain)
        if news == recorded:
            new = old
        else:
            decoded = wire.decode(news)
            new = decoded.plain if decoded.has_unknowns else normalized(decoded.plain)
        live = wire.decode(olds, only=old).plain
        live = prune(definitions.dashed(live) if is_crd(old) else live, old)
        live_id = _identifier(olds)
        difference = diffing.compare(
            canonical_quantities(live),
            live_id,
            old,
            new,
            patch=kind.patch,
            rules=self._rules,
            ignore=ignore,
        )
        if is_true(new, REPLACE_UNREADY):
            self._replace_unready(kind, live_id, new, difference, operation)
        return difference

    def _replace_unready(
        self, kind: Type, live_id: str, new: Manifest, difference: diffing.Difference, operation: Operation
    ) -> None:
        if kind.kind != "Job":
            operation.warn(f"the annotation {REPLACE_UNREADY} has no meaning for a {kind.kind}: it is for jobs")
            return
        if self._unreachable is not None:
            operation.warn(f"the annotation {REPLACE_UNREADY} is not looked at: {self._unreachable}")
            return
        target = self._target(new, live_id, operation)
        live = target.read(operation)
        if live is not None and awaiting.problems_on_read(target, {}, live, operation):
            path = f'metadata.annotations["{REPLACE_UNREADY}"]'
            difference.changes[path] = diffing.Change(diffing.UPDATE, replaces=True, of_inputs=False)
            difference.delete_before_replace = True

    def create(
        self, kind: Type, properties: Struct, timeout: float, preview: bool, operation: Operation
    ) -> tuple[str, Struct]:
        """Create the object and wait until it is ready; at preview do a dry run where one is possible.

        Returns ID and state. At preview the inputs stand in for a state that cannot be foreseen: unknown inputs, a
        kind or a namespace that does not exist yet, a replacement of the same name, missing rights, a webhook of the
        kind that does not answer.
        """
        if not preview:
            self.require_cluster()
        decoded = wire.decode(properties)
        inputs = decoded.plain
        if preview and (
            decoded.has_unknowns
            or kind.patch
            or self._unreachable is not None
            or not self._discovery.exists(kind.api_version, kind.kind, operation)
        ):
            return "", properties
        manager = ownership.manager_for(inputs, "")
        try:
            target, live = self._create_object(kind, inputs, manager, preview, operation)
        except ApiError as error:
            if preview and (
                error.forbidden
                or error.already_exists
                or error.namespace_missing
                or _dry_run_unsupported(error)
                or _webhook_silent(error)
            ):
                return "", properties
            raise _create_failure(error, inputs) from None
        except NoMatchError as error:
            raise ProviderError(
                f"{error}: create its CustomResourceDefinition first, and let this resource depend on it"
            ) from None
        if preview:
            live.pop("status", None)
            return "", self._state(properties, decoded, inputs, live, str(inputs["apiVersion"]), manager)
        if kind.patch:
            return object_id(live), self._state(properties, decoded, inputs, live, str(inputs["apiVersion"]), manager)
        try:
            live = awaiting.until_ready(target, inputs, live, timeout, operation)
        except NotReadyError as error:
            self._partial(error, f"{inputs['kind']} {object_id(live)} was created, but", properties, decoded, manager)
        if is_crd(live):
            self._discovery.forget(live)
            self._discovery.declare(live)
        return object_id(live), self._state(properties, decoded, inputs, live, str(inputs["apiVersion"]), manager)

    def _create_object(
        self, kind: Type, inputs: Manifest, manager: str, preview: bool, operation: Operation
    ) -> tuple[Target, Manifest]:
        """Send the create; tries again while the kind or what the object refers to does not exist yet."""
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(_CREATE_RETRIES + 1):
            try:
                resource = self._discovery.find(str(inputs["apiVersion"]), str(inputs["kind"]), operation)
                return self._send_create(kind, resource, inputs, manager, preview, operation)
            except (ApiError, NoMatchError) as error:
                missing = isinstance(error, NoMatchError) or error.not_found
                if not missing or attempt == _CREATE_RETRIES or (preview and _is_namespace_missing(error)):
                    raise
                operation.status(f"creation failed, attempt {attempt + 2} follows in {pause:.0f} s: {error}")
            operation.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable code")

    def _send_create(
        self, kind: Type, resource: Resource, inputs: Manifest, manager: str, preview: bool, operation: Operation
    ) -> tuple[Target, Manifest]:
        namespace = str(metadata(inputs).get("namespace") or "default") if resource.namespaced else ""
        target = Target(self._client, self._discovery, resource, namespace, str(metadata(inputs)["name"]))
        body = to_json(_scoped(inputs, namespace))
        query: Query = {"dryRun": "All"} if preview else {}
        if not kind.patch and not self._settings.upsert:
            query["fieldManager"] = ownership.CREATE_MANAGER
            try:
                live = self._client.request("POST", resource.path(namespace), operation, query, body)
            except ApiError as error:
                if preview or not error.already_exists:
                    raise
                live = self._recovered(kind, target, inputs, manager, error, operation)
            if not preview:
                self._orphans.add(str(metadata(live)["uid"]), operation.urn)
        else:
            force = ownership.forced(inputs, None, always=self._settings.patch_force, preview=preview)
            query |= {"fieldManager": manager, "force": str(force).lower()}
            try:
                live = self._client.request("PATCH", target.path, operation, query, body, APPLY)
            except ApiError as error:
                raise ownership.explained(error, manager) from None
        operation.clear_status()
        return target, live

    def _recovered(
        self, kind: Type, target: Target, inputs: Manifest, manager: str, error: ApiError, operation: Operation
    ) -> Manifest:
        """Return the object of an interrupted run of the same resource, brought to the inputs; else raise the error."""
        live = target.read(operation)
        if live is None or not self._orphans.belongs(str(metadata(live)["uid"]), operation.urn):
            raise error
        operation.inform(f"{inputs['kind']} {target.name} was created by an interrupted run and is taken over from it")
        return self._apply(kind, target, inputs, manager, [], False, operation)

    def read(self, kind: Type, identifier: str, properties: Struct, inputs: Struct, operation: Operation) -> ReadResult:
        """Return the live state of an object; inputs follow the live object in what they name.

        Without recorded inputs (import) the inputs are taken from the live object.
        """
        self._orphans.claim(wire.text(properties, "metadata", "uid"))
        if self._unreachable is not None:
            if self._settings.delete_unreachable:
                operation.inform(_LEAVES_STATE)
                return ReadResult("", None, None)
            if self._settings.skip_update_unreachable:
                operation.inform(_STATE_STAYS)
                return ReadResult(identifier, properties, inputs)
            self.require_cluster(deleting=True)
        decoded = wire.decode(inputs)
        old = normalized(decoded.plain)
        recorded = bool(old.get("apiVersion") and old.get("kind"))
        if not recorded:
            old = {
                **old,
                "apiVersion": wire.text(properties, "apiVersion") or kind.api_version,
                "kind": wire.text(properties, "kind") or kind.kind,
            }
        try:
            target = self._target(old, identifier, operation)
        except NoMatchError:
            return ReadResult("", None, None)
        live = target.read(operation)
        if live is None:
            return ReadResult("", None, None)
        followed = prune(live, old) if recorded else _imported(live)
        manager = ownership.manager_for(followed, wire.text(properties, FIELD_MANAGER))
        initial = wire.text(properties, INITIAL_API_VERSION) or str(old["apiVersion"])
        result_inputs = inputs
        if followed != decoded.plain:
            marked = annotate(followed, decoded.marked) if needs_annotation(followed, decoded.has_secrets) else followed
            result_inputs = wire.encode(marked)
        unchanged = (
            result_inputs is inputs
            and INPUTS in properties.fields
            and wire.text(properties, FIELD_MANAGER) == manager
            and wire.text(properties, "metadata", "resourceVersion") == metadata(live).get("resourceVersion")
            and wire.text(properties, "metadata", "uid") == metadata(live).get("uid")
            and properties.fields[INPUTS].struct_value == inputs
        )
        state = properties if unchanged else self._state(result_inputs, decoded, followed, live, initial, manager)
        problems = awaiting.problems_on_read(target, followed, live, operation) if recorded and not kind.patch else []
        if problems:
            message = f"{live['kind']} {identifier} is not ready: {'; '.join(problems)}"
            raise PartialError(message, identifier, state, result_inputs, [message])
        return ReadResult(identifier, state, result_inputs)

    def update(
        self,
        kind: Type,
        identifier: str,
        olds: Struct,
        news: Struct,
        timeout: float,
        ignore: list[str],
        preview: bool,
        operation: Operation,
    ) -> Struct:
        """Bring the object to the new inputs and wait until it is ready; at preview do a dry run where possible."""
        if not preview:
            self.require_cluster()
        decoded = wire.decode(news)
        inputs = decoded.plain
        if preview and (
            decoded.has_unknowns
            or self._unreachable is not None
            or not self._discovery.exists(kind.api_version, kind.kind, operation)
        ):
            return news
        inputs = normalized(inputs)
        recorded = wire.text(olds, FIELD_MANAGER)
        previous = ownership.manager_for(wire.decode(olds.fields[INPUTS].struct_value).plain, recorded)
        manager = ownership.manager_for(inputs, recorded or previous)
        initial = wire.text(olds, INITIAL_API_VERSION) or str(inputs["apiVersion"])
        try:
            target = self._target(inputs, identifier, operation)
            live = self._apply(kind, target, inputs, manager, ignore, preview, operation)
        except ApiError as error:
            if preview and error.forbidden:
                return news
            raise ProviderError(_update_failure(error, inputs, identifier)) from None
        except NoMatchError as error:
            raise ProviderError(f"{error}: create its CustomResourceDefinition first") from None
        if preview:
            return self._state(news, decoded, inputs, live, initial, manager)
        if not kind.patch:
            try:
                live = awaiting.until_ready(target, inputs, live, timeout, operation)
            except NotReadyError as error:
                self._partial(error, f"{inputs['kind']} {identifier} was updated, but", news, decoded, manager, initial)
        if is_crd(live):
            self._discovery.forget(live)
            self._discovery.declare(live)
        if previous != manager:
            self._relinquish(target, live, previous, operation)
        return self._state(news, decoded, inputs, live, initial, manager)

    def _apply(
        self,
        kind: Type,
        target: Target,
        inputs: Manifest,
        manager: str,
        ignore: list[str],
        preview: bool,
        operation: Operation,
    ) -> Manifest:
        live = target.read(operation)
        if live is None:
            raise ProviderError(
                f"{inputs['kind']} {target.name} does not exist any more: run pulumi refresh, then the command again"
            )
        dry_run: Query = {"dryRun": "All"} if preview else {}
        body = _scoped(inputs, target.namespace)
        if is_crd(inputs):
            # A definition is replaced as a whole, which keeps its custom resources.
            meta = {**metadata(body), "resourceVersion": metadata(live)["resourceVersion"]}
            query = {**dry_run, "fieldManager": manager}
            body = {**body, "metadata": meta}
            return self._client.request("PUT", target.path, operation, query, to_json(body))
        if not preview and not kind.patch:
            patch = ownership.transfer(live, manager)
            if patch:
                live = self._client.request("PATCH", target.path, operation, None, to_json_list(patch), JSON_PATCH)
        if ignore:
            body = ownership.honour_ignored(body, live, manager, ignore)
        force = ownership.forced(inputs, live, always=self._settings.patch_force, preview=preview)
        query = {**dry_run, "fieldManager": manager, "force": str(force).lower()}
        try:
            return self._client.request("PATCH", target.path, operation, query, to_json(body), APPLY)
        except ApiError as error:
            raise ownership.explained(error, manager) from None

    def _relinquish(self, target: Target, live: Manifest, manager: str, operation: Operation) -> Manifest:
        """Apply nothing under the manager, which makes it give up every field."""
        meta = {key: metadata(live)[key] for key in ("name", "namespace") if key in metadata(live)}
        body = to_json({"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta})
        return self._client.request("PATCH", target.path, operation, {"fieldManager": manager}, body, APPLY)

    def delete(self, kind: Type, identifier: str, properties: Struct, timeout: float, operation: Operation) -> None:
        """Delete the object and wait until it is gone; one that is gone already, or whose kind is, is a success."""
        self._orphans.claim(wire.text(properties, "metadata", "uid"))
        if self._unreachable is not None:
            if self._settings.delete_unreachable:
                operation.inform(_LEAVES_STATE)
                return
            self.require_cluster(deleting=True)
        inputs = wire.decode(properties.fields[INPUTS].struct_value).plain if INPUTS in properties.fields else {}
        live = {
            "apiVersion": wire.text(properties, "apiVersion") or kind.api_version,
            "kind": wire.text(properties, "kind") or kind.kind,
        }
        try:
            target = self._target(live, identifier, operation)
            if kind.patch:
                self._give_up_patch(target, identifier, live, inputs, properties, operation)
                return
            policy = {"orphan": "Orphan", "background": "Background"}.get(
                annotation(inputs, DELETION_PROPAGATION).lower(), "Foreground"
            )
            answer = self._client.request(
                "DELETE", target.path, operation, None, to_json({"propagationPolicy": policy})
            )
        except NoMatchError:
            return
        except ApiError as error:
            if error.not_found:
                return
            raise
        if answer.get("kind") != "Status":
            awaiting.until_gone(target, inputs, timeout, operation)
        if live["kind"] == "CustomResourceDefinition":
            self._discovery.forget(inputs)

    def _give_up_patch(
        self,
        target: Target,
        identifier: str,
        live: Manifest,
        inputs: Manifest,
        properties: Struct,
        operation: Operation,
    ) -> None:
        namespace, name = parse_id(identifier)
        meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
        manager = ownership.manager_for(inputs, wire.text(properties, FIELD_MANAGER))
        try:
            self._relinquish(target, {**live, "metadata": meta}, manager, operation)
        except ApiError as error:
            required = [
                str(cause.get("field"))
                for cause in error.details.get("causes") or []
                if cause.get("reason") == "FieldValueRequired"
            ]
            if required:
                raise ProviderError(
                    f"the patch manages required fields ({', '.join(required)}), so it cannot be taken back: "
                    "set the resource "
                    "option retainOnDelete, or hand the fields to another manager first"
                ) from None
            raise

    def _target(self, manifest: Manifest, identifier: str, operation: Operation) -> Target:
        resource = self._discovery.find(str(manifest["apiVersion"]), str(manifest["kind"]), operation)
        namespace, name = parse_id(identifier)
        if resource.namespaced:
            namespace = namespace or str(metadata(manifest).get("namespace") or "default")
        return Target(self._client, self._discovery, resource, namespace if resource.namespaced else "", name)

    def _state(
        self, inputs_message: Struct, decoded: Decoded, inputs: Manifest, live: Manifest, initial: str, manager: str
    ) -> Struct:
        """Encode the state; `inputs_message` is the encoded form of `inputs` where the caller has one."""
        outputs = dict(live)
        meta = outputs.get("metadata")
        if isinstance(meta, dict) and "managedFields" in meta:
            outputs["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
        if needs_annotation(outputs, decoded.has_secrets):
            outputs = annotate(outputs, decoded.marked)
        message = wire.encode(definitions.underscored(outputs) if is_crd(outputs) else outputs)
        fields = message.fields
        recorded = fields[INPUTS].struct_value
        if is_crd(inputs):
            recorded.CopyFrom(wire.encode(definitions.underscored(inputs)))
        elif inputs is not decoded.plain and inputs_message.fields:
            marked = annotate(inputs, decoded.marked) if needs_annotation(inputs, decoded.has_secrets) else inputs
            recorded.CopyFrom(wire.encode(marked))
        else:
            recorded.CopyFrom(inputs_message)
        fields[INITIAL_API_VERSION].string_value = initial
        fields[FIELD_MANAGER].string_value = manager
        return message

    def _partial(
        self, error: NotReadyError, what: str, inputs_message: Struct, decoded: Decoded, manager: str, initial: str = ""
    ) -> NoReturn:
        inputs = decoded.plain
        state = self._state(inputs_message, decoded, inputs, error.live, initial or str(inputs["apiVersion"]), manager)
        message = f"{what} {error}"
        raise PartialError(message, object_id(error.live), state, None, [message]) from None

    @property
    def client(self) -> Client:
        """Requests under the provider resource's credentials."""
        return self._client

    @property
    def namespace(self) -> str:
        """Where namespaced objects go that name none."""
        return self._settings.namespace

    def gone_with_cluster(self, operation: Operation) -> bool:
        """Tell whether a resource leaves the state since its cluster is out of reach and the provider says so.

        Raises UnreachableError when it is out of reach and the provider says nothing.
        """
        if self._unreachable is not None and self._settings.delete_unreachable:
            operation.inform(_LEAVES_STATE)
            return True
        if not self.skips_updates():
            self.require_cluster(deleting=True)
        return False

    def require_cluster(self, deleting: bool = False) -> None:
        """Raise UnreachableError when the API server did not answer at the start."""
        if self._unreachable is None:
            return
        hint = ". If the cluster is gone for good, set deleteUnreachable on the provider" if deleting else ""
        raise UnreachableError(f"{self._unreachable}{hint}")


# Kinds of the API server itself that live outside namespaces, for previews without a cluster.
_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("networking.k8s.io", "IngressClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    }
)


def to_json_list(patch: list[dict[str, Any]]) -> bytes:
    """Encode a JSON patch."""
    return to_json(patch)  # type: ignore[arg-type]


def _identifier(olds: Struct) -> str:
    namespace, name = wire.text(olds, "metadata", "namespace"), wire.text(olds, "metadata", "name")
    return f"{namespace}/{name}" if namespace else name


def _scoped(inputs: Manifest, namespace: str) -> Manifest:
    """Give the object the namespace that its URL path has."""
    meta = metadata(inputs)
    if (meta.get("namespace") or "") == namespace:
        return inputs
    meta = {key: value for key, value in meta.items() if key != "namespace"}
    return {**inputs, "metadata": {**meta, "namespace": namespace} if namespace else meta}


def _imported(live: Manifest) -> Manifest:
    """The inputs that would have made a live object."""
    meta = {key: value for key, value in metadata(live).items() if key not in READ_ONLY_METADATA}
    annotations = {
        key: value for key, value in (meta.pop("annotations", None) or {}).items() if key not in _NOT_INPUTS_OF_IMPORTS
    }
    if annotations:
        meta["annotations"] = annotations
    return {**{key: value for key, value in live.items() if key not in ("status", "metadata")}, "metadata": meta}


def _is_namespace_missing(error: ProviderError) -> bool:
    return isinstance(error, ApiError) and error.namespace_missing


def _dry_run_unsupported(error: ApiError) -> bool:
    return error.code == 400 and "does not support dry run" in str(error)


def _webhook_silent(error: ApiError) -> bool:
    """Tell whether the kind's controller, which the update may be about to install, did not answer the API server."""
    return error.code == 500 and ("failed calling webhook" in str(error) or str(error).startswith("conversion webhook"))


def _create_failure(error: ApiError, inputs: Manifest) -> ProviderError:
    if not error.already_exists:
        return ProviderError(f"{inputs['kind']} {object_id(inputs)} was not created: {error}")
    return ProviderError(
        f"{error}. This provider does not take over objects that it did not create. If the resource was renamed "
        "in the program, "
        "give it an alias to its old name; if it is to replace an object of the same name, set "
        "deleteBeforeReplace; to manage "
        "an object made by others, run pulumi import; to set a few of its fields only, use the kind's Patch "
        "resource; to "
        "overwrite whatever exists, set upsertExistingObjects on the provider"
    )


def _update_failure(error: ApiError, inputs: Manifest, identifier: str) -> str:
    return f"{inputs['kind']} {identifier} was not updated: {error}"
