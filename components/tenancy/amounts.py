"""Limit the amounts that the pods of a job request, so that a queue counts what the pods get. In CEL.

AppWrapper does not check amounts. A negative amount gives a queue capacity that does not exist. A huge amount times the
number of pods does not fit 64 bits. Kueue v0.19 then counts the largest number, and older releases counted a negative
one (`pkg/resources/requests.go`, Mul).
"""

from typing import Final

from components import names
from components.tenancy.pod_templates import Rule

MOST_PODS: Final = 5_000
"""The most pods of one template, and of a team (components/tenancy/bounds.py). Kueue multiplies by this number. A
Workload has at most 18 templates."""
MOST_CPUS: Final = "100k"
"""The most CPUs of a container. Kueue counts thousandths. Their sum for all containers of a manifest still fits 64
bits."""
MOST: Final = "16Ti"
"""The most that the requests of a pod add up to, mainly its bytes, and the same for its limits. 18 templates with
MOST_PODS pods each stay below 2^63."""

MEMORY_BEYOND: Final = "1Gi"
"""Bytes of memory that all containers of a pod may use beyond their requests. Only containers that operators add need
this, so templates of members have no such allowance.
The largest is KubeRay's submitter, with a request of 200Mi and a limit of 1Gi (ray-project/kuberay v1.6.2,
ray-operator/controllers/ray/common/job.go)."""

_CONTAINERS: Final = "({0}.spec.?containers.orValue([]) + {0}.spec.?initContainers.orValue([]))"
_PARTS: Final = ("requests", "limits")


def _named(part: str, resource: str) -> str:
    """Return CEL that is true if a container names a resource in requests or limits."""
    return f"container.?resources.?{part}[?'{resource}'].hasValue()"


def _same(resource: str) -> str:
    """Return CEL that is true if a container names the same amount of a resource in requests and limits, or none."""
    limit, request = (f"quantity(string(container.resources.{part}['{resource}']))" for part in ("limits", "requests"))
    return (
        f"{_named('requests', resource)} == {_named('limits', resource)} && "
        f"(!{_named('limits', resource)} || {limit}.compareTo({request}) == 0)"
    )


def _of_each(condition: str) -> str:
    """Return CEL that is true if all amounts of containers meet a condition on `key` and the text `{amount}`."""
    return f"{_CONTAINERS}.all(container, " + " && ".join(_of_part(part, condition) for part in _PARTS) + ")"


def _of_part(part: str, condition: str) -> str:
    amount = f"string(container.resources.{part}[key])"
    return f"container.?resources.?{part}.orValue({{}}).all(key, {condition.replace('{amount}', amount)})"


def _sum(part: str) -> str:
    """Return CEL of the sum of all requests or limits of containers, as an approximate number."""
    amount = f"quantity(string(container.resources.{part}[key])).asApproximateFloat()"
    keys = f"container.?resources.?{part}.orValue({{}})"
    return f"{_CONTAINERS}.map(container, {keys}.map(key, {amount}).sum()).sum()"


def _memory(part: str) -> str:
    """Return CEL of the memory that containers request or are limited to, as an approximate number."""
    amount = f"container.?resources.?{part}[?'{names.MEMORY}'].orValue(dyn('0'))"
    return f"{_CONTAINERS}.map(container, quantity(string({amount})).asApproximateFloat()).sum()"


_POSITIVE: Final = f"['{names.CPU}', '{names.MEMORY}']"

_AMOUNT: Final = Rule(
    condition=_of_each(
        f"isQuantity({{amount}}) && quantity({{amount}}).compareTo(quantity('0')) >= (key in {_POSITIVE} ? 1 : 0)"
    ),
    message="what a container asks for is an amount; ask for more than 0 of cpu and memory, and of nothing less than 0",
)
"""Comes before the rules that compare amounts: they cannot evaluate another text."""

_BOUNDS: Final = (
    Rule(
        condition=_of_each(f"key != '{names.CPU}' || !quantity({{amount}}).isGreaterThan(quantity('{MOST_CPUS}'))"),
        message=f"a container asks for at most {MOST_CPUS} of cpu; lower it",
    ),
    Rule(
        condition=" && ".join(f"{_sum(part)} <= quantity('{MOST}').asApproximateFloat()" for part in _PARTS),
        message=f"a pod asks for at most {MOST} of all resources together; lower it",
    ),
    Rule(
        condition=f"{_memory('limits')} <= {_memory('requests')} + quantity('{MEMORY_BEYOND}').asApproximateFloat()",
        message="a pod uses no more memory of its node than was counted for it; set limits of memory to its requests",
    ),
)
BOUNDED: Final = (_AMOUNT, *_BOUNDS)
"""Rules for the amounts that pods request, both in templates of jobs and in pods."""

TEMPLATE: Final = (
    _AMOUNT,
    Rule(
        condition=f"{_CONTAINERS}.all(container, "
        + " && ".join(
            f"({_named('requests', name)} || !{_named('limits', name)})" for name in (names.CPU, names.MEMORY)
        )
        + ")",
        message="a quota counts what containers request, and would take the default for what is limited alone: name "
        "cpu and memory in requests where limits name them",
    ),
    Rule(
        condition=f"{_CONTAINERS}.all(container, {_same(names.MEMORY)})",
        message="a container that requests memory is limited to it, for its node has no more for it: name the same "
        "amount in limits",
    ),
    Rule(
        condition=f"{_CONTAINERS}.all(container, {_same(names.DISK)})",
        message=f"a container has as much of its node's disk as its namespace gives each, or as it asks for: name "
        f"{names.DISK} in requests and limits, with the same amount, or in neither",
    ),
    Rule(
        condition=f"{_CONTAINERS}.all(container, container.?resources.?requests.orValue({{}}).all(key, "
        "!key.contains('/') || string(container.?resources.?limits[?key].orValue(dyn(''))) == "
        "string(container.resources.requests[key])))",
        message="Kubernetes refuses pods that request GPUs or other devices without limits: name the same number in "
        "limits",
    ),
    *_BOUNDS,
    Rule(
        condition="!has({0}.spec.overhead)",
        message="a pod's overhead is its runtime's to say: leave overhead out",
    ),
)
"""Rules for every pod template. A namespace's LimitRange sets the amounts that a container does not name, for Kueue and
for the API server. Kueue counts the overhead of a template. The API server rejects an overhead in a pod whose runtime
has none."""


def counted(path: str, least: int = 0) -> str:
    """Return CEL that is true if a number of pods can be counted. least: the smallest allowed number."""
    return f"{path} >= {least} && {path} <= {MOST_PODS}"
