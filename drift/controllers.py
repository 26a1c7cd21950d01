"""Fields that controllers write to a stack's objects as part of their task. They are not drift.

A client chooses its field manager's name, so each name covers only the fields that its controller writes. Other fields
under that name count as written by a person. Everyone may add to `metadata` (drift/closed.py). It is listed here so
that these controllers are not reported as the last writer. Writes to `status` need no entry.
"""

from collections.abc import Mapping
from typing import Final

from components.tables import Table
from runner.properties import Path, parse  # noqa: TID251 - a notation

CHECK: Final = "mlbatch-drift"
"""Field manager of this check. It applies in dry runs, so the stack's manager keeps all its fields. It restarts
workloads."""

RESTARTED: Final = 'spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]'
"""The annotation that `kubectl rollout restart` sets (k8s.io/kubectl, `pkg/polymorphichelpers/objectrestarter.go`)."""

RESTARTABLE: Final = ("DaemonSet", "Deployment", "StatefulSet")


class _Controllers(Table):
    controllers: Mapping[str, Mapping[str, tuple[str, ...]]]


CONTROLLERS: Final = _Controllers.load(__name__).controllers
"""By field manager and kind, the fields that it adds."""


def tasks(manager: str, kind: str) -> tuple[Path, ...]:
    """Return the paths that a field manager writes in objects of a kind as part of its task."""
    return tuple(parse(path) for path in CONTROLLERS.get(manager, {}).get(kind, ()))
