"""How much the pods of a job may ask for, so that what a queue counts for them is what they get. In CEL.

AppWrapper does not check amounts. An amount below zero gives a queue room that does not exist. A huge one, times the
number of pods, does not fit 64 bits: Kueue v0.19 counts the largest number then, and older releases counted a negative
one (`pkg/resources/requests.go`, Mul).
"""

from __future__ import annotations

from typing import Final

from components import names
from components.tenancy.pod_templates import Rule

MOST_PODS: Final = 10_000
"""Of one template, as many as Kueue multiplies by. A Workload has at most 18 templates."""
MOST_CPUS: Final = "100k"
"""Of a container. In thousandths, as Kueue counts them, they leave room for far more containers than fit a manifest."""
MOST: Final = "16Ti"
"""Of all that a pod requests, and as much again of what limits it, taken together: of its bytes, above all. Times 18
templates of so many pods it is below 2^63."""

MEMORY_BEYOND: Final = "1Gi"
"""How much more memory all containers of a pod may use than they request: what the containers that operators add have
beyond theirs, KubeRay's submitter with 200Mi and 1Gi above all (ray-project/kuberay v1.6.2,
ray-operator/controllers/ray/common/job.go)."""

_CONTAINERS: Final = "({0}.spec.?containers.orValue([]) + {0}.spec.?initContainers.orValue([]))"
_PARTS: Final = ("requests", "limits")


def _named(part: str, resource: str) -> str:
    """Return CEL of whether a container names a resource in requests or limits."""
    return f"container.?resources.?{part}[?'{resource}'].hasValue()"


def _of_each(condition: str) -> str:
    """Return CEL of whether all containers' amounts meet a condition on `key` and `{amount}`, a text."""
    return f"{_CONTAINERS}.all(container, " + " && ".join(_of_part(part, condition) for part in _PARTS) + ")"


def _of_part(part: str, condition: str) -> str:
    amount = f"string(container.resources.{part}[key])"
    return f"container.?resources.?{part}.orValue({{}}).all(key, {condition.replace('{amount}', amount)})"


def _sum(part: str) -> str:
    """Return CEL of the sum of all that containers request, or are limited to, as an approximate number."""
    amount = f"quantity(string(container.resources.{part}[key])).asApproximateFloat()"
    keys = f"container.?resources.?{part}.orValue({{}})"
    return f"{_CONTAINERS}.map(container, {keys}.map(key, {amount}).sum()).sum()"


def _memory(part: str) -> str:
    """Return CEL of the memory that containers request, or are limited to, as an approximate number."""
    amount = f"container.?resources.?{part}[?'{names.MEMORY}'].orValue(dyn('0'))"
    return f"{_CONTAINERS}.map(container, quantity(string({amount})).asApproximateFloat()).sum()"


_POSITIVE: Final = f"['{names.CPU}', '{names.MEMORY}']"

BOUNDED: Final = (
    Rule(
        condition=_of_each(
            f"isQuantity({{amount}}) && quantity({{amount}}).compareTo(quantity('0')) >= (key in {_POSITIVE} ? 1 : 0)"
        ),
        message="what a container asks for is an amount; ask for more than 0 of cpu and memory, and of nothing less "
        "than 0",
    ),
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
"""Of what pods ask for, in a job's templates as in themselves."""

TEMPLATE: Final = (
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
        condition=f"{_CONTAINERS}.all(container, {_named('requests', names.MEMORY)} == "
        f"{_named('limits', names.MEMORY)})",
        message="a container that requests memory is limited to it, for its node has no more for it: name the same "
        "amount in limits",
    ),
    Rule(
        condition=f"{_CONTAINERS}.all(container, {_named('requests', names.DISK)} == {_named('limits', names.DISK)} && "
        f"(!{_named('limits', names.DISK)} || quantity(string(container.resources.limits['{names.DISK}'])).compareTo("
        f"quantity(string(container.resources.requests['{names.DISK}']))) == 0))",
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
    *BOUNDED,
    Rule(
        condition="!has({0}.spec.overhead)",
        message="a pod's overhead is its runtime's to say: leave overhead out",
    ),
)
"""Of every pod template. What a container names in neither is filled in by its namespace's LimitRange, for Kueue as for
the API server. Kueue counts a template's overhead, which the API server refuses in a pod whose runtime has none."""


def counted(path: str, least: int = 0) -> str:
    """Return CEL of whether a number of pods is one that can be counted."""
    return f"{path} >= {least} && {path} <= {MOST_PODS}"
