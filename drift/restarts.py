"""Restart workloads that read a restored ConfigMap, because programs read their settings at start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from drift.check import Finding
from drift.cluster import Cluster, KindGoneError, RefusedError
from drift.controllers import RESTARTABLE
from drift.state import Declared

_SOURCES: Final = ("configMap", "configMapKeyRef", "configMapRef")
"""Keys of a pod that name a ConfigMap: in volumes and their projections, in a variable, in `envFrom`."""

_CONTENTS: Final = ("binaryData", "data")


@dataclass(frozen=True, kw_only=True)
class Restart:
    """A workload that was restarted, and the ConfigMap that it reads. refused: why the restart failed, else None."""

    workload: Declared
    config: Declared
    refused: str | None = None


def restart(cluster: Cluster, before: Sequence[Finding], after: Sequence[Finding]) -> list[Restart]:
    """Restart the stack's workloads whose pods read a restored ConfigMap, as `kubectl rollout restart` does.

    before, after: findings of the same objects, before and after the restore. A pod may have started with the old
    contents, and its template does not show it. Does not wait for the rollout.
    """
    put_back = [was.declared for was, now in zip(before, after, strict=True) if _had_other_contents(was, now)]
    restarts = []
    for was, now in zip(before, after, strict=True):
        workload = was.declared
        if was.gone is not None or now.trouble is not None or workload.kind not in RESTARTABLE:
            continue
        config = next((each for each in put_back if _reads(workload, each)), None)
        if config is not None:
            restarts.append(_restart(cluster, workload, config))
    return restarts


def _had_other_contents(was: Finding, now: Finding) -> bool:
    changed = was.gone is not None or any(each.path[0] in _CONTENTS for each in was.differences)
    return was.declared.kind == "ConfigMap" and changed and not now.drifted


def _reads(workload: Declared, config: Declared) -> bool:
    pod = workload.manifest["spec"]["template"]["spec"]
    return workload.namespace == config.namespace and config.name in _configs(pod)


def _configs(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _SOURCES and isinstance(item, dict):
                yield item.get("name")
            else:
                yield from _configs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _configs(item)


def _restart(cluster: Cluster, workload: Declared, config: Declared) -> Restart:
    try:
        cluster.restart(workload, datetime.now(UTC))
    except (KindGoneError, RefusedError) as error:
        return Restart(workload=workload, config=config, refused=str(error))
    return Restart(workload=workload, config=config)
