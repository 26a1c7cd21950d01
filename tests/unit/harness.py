"""Runs a Pulumi program without an engine and records what it registered.

While a program runs, tests cannot check it, because registrations arrive later. `build` therefore runs all of it under
the SDK's test decorator, which waits for every registration, and returns the record.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest import mock

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import source_pb2


@dataclass(frozen=True)
class Registered:
    """One resource as the engine was asked for it. dependencies: URNs, those of inputs among them.

    sources: the URNs that an input's value comes from, by input.
    former_types, former_names: types and names that it had in older stacks, as its aliases say.
    """

    type: str
    name: str
    urn: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    dependencies: frozenset[str]
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    delete_before_replace: bool
    secrets: frozenset[str]
    is_custom: bool
    protect: bool = False
    retain_on_delete: bool = False
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    former_types: tuple[str, ...] = ()
    former_names: tuple[str, ...] = ()
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str(self.inputs.get("kind", ""))

    @property
    def object_name(self) -> str:
        return str(self.inputs["metadata"]["name"])


@dataclass(eq=False)
class Record:
    """Everything that a program registered, in order. outputs: names of those of components, by URN."""

    resources: list[Registered] = field(default_factory=list)
    outputs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Registered]:
        """Return the Kubernetes objects of a kind."""
        return [resource for resource in self.resources if resource.kind == kind]

    def one(self, kind: str, name: str, namespace: str | None = None) -> Registered:
        """Return the one object of a kind and name."""
        found = [
            resource
            for resource in self.of(kind)
            if resource.object_name == name
            and (namespace is None or resource.inputs["metadata"].get("namespace") == namespace)
        ]
        assert len(found) == 1, f"{len(found)} objects {kind} {name}"
        return found[0]

    def objects(self) -> list[Registered]:
        """Return all Kubernetes objects."""
        return [resource for resource in self.resources if resource.type.startswith("kubernetes:")]

    def closure(self, resource: Registered) -> set[str]:
        """Return the URNs of everything that exists before a resource is created, as the engine sees it.

        A resource waits for its dependencies, for its parent, and for what these wait for.
        """
        by_urn = {item.urn: item for item in self.resources}
        seen: set[str] = set()
        open_ends = [resource]
        while open_ends:
            current = open_ends.pop()
            for urn in {*current.dependencies, current.parent} - seen - {""}:
                seen.add(urn)
                if urn in by_urn:
                    open_ends.append(by_urn[urn])
        return seen


Outputs: TypeAlias = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
"""From a resource's type, name and inputs to the properties that its provider adds; an `id` among them is its id."""

Calls: TypeAlias = Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]
"""The answers of a provider's functions, by token."""


def _nothing_more(type_token: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


class _Mocks(pulumi.runtime.Mocks):
    def __init__(self, calls: Calls, outputs: Outputs) -> None:
        self._calls, self._outputs = calls, outputs

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        added = dict(self._outputs(args.typ, args.name, args.inputs))
        return added.pop("id", f"{args.name}-id"), {**args.inputs, **added}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[Any, Any]:
        if args.token not in self._calls:
            raise AssertionError(f"the program calls the provider's function {args.token}")
        return dict(self._calls[args.token](args.args))


class _Monitor(MockMonitor):
    def __init__(self, record: Record, mocks: _Mocks) -> None:
        super().__init__(mocks)
        self._record = record

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the name the SDK calls
        answer = super().RegisterResource(request)
        inputs = rpc.deserialize_properties(request.object, keep_internal=True) or {}
        secrets = frozenset(key for key, value in inputs.items() if rpc.is_rpc_secret(value))
        self._record.resources.append(
            Registered(
                type=request.type,
                name=request.name,
                urn=answer.urn,
                inputs={key: rpc.unwrap_rpc_secret(value) for key, value in inputs.items()},
                parent=request.parent,
                provider=request.provider,
                dependencies=frozenset(request.dependencies),
                ignore_changes=tuple(request.ignoreChanges),
                replace_on_changes=tuple(request.replaceOnChanges),
                delete_before_replace=request.deleteBeforeReplace,
                secrets=secrets,
                is_custom=request.custom,
                protect=request.protect,
                retain_on_delete=request.retainOnDelete,
                deleted_with=request.deletedWith,
                replace_with=tuple(request.replace_with),
                former_types=tuple(alias.spec.type for alias in request.aliases if alias.spec.type),
                former_names=tuple(alias.spec.name for alias in request.aliases if alias.spec.name),
                sources={key: frozenset(value.urns) for key, value in request.propertyDependencies.items()},
            )
        )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the name the SDK calls
        self._record.outputs[request.urn] = tuple(request.outputs.fields)
        return super().RegisterResourceOutputs(request)


def build(
    program: Callable[[], object],
    calls: Calls = MappingProxyType({}),
    outputs: Outputs = _nothing_more,
    preview: bool = False,
) -> Record:
    """Run a program to its end and return its registrations. Raises the program's exceptions."""
    record = Record()
    mocks = _Mocks(calls, outputs)
    monitor = _Monitor(record, mocks)
    pulumi.runtime.set_mocks(
        mocks, project="mlbatch", stack="test", organization="organization", preview=preview, monitor=monitor
    )

    @pulumi.runtime.test
    def run() -> None:
        program()

    # Where in the program each resource is declared. It takes a fifth of a run, and no test here reads it.
    with mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace):
        run()
    return record


def on_cluster(component: Callable[[pulumi.ResourceOptions], object]) -> Record:
    """Run a component with a provider of a cluster and return its registrations."""

    def program() -> None:
        component(pulumi.ResourceOptions(providers=[kubernetes.Provider("cluster", kubeconfig="{}")]))

    return build(program)


def strings(value: object) -> Iterator[str]:
    """Yield every string in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
