"""Helm charts as resources, for what upstream ships with hooks or renders after what the cluster can do.

Everything else is installed object by object (see `manifests`): a release's objects are not in the state, so that a
refresh finds the release itself but no edit of what it installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs

from components.artifacts import LocatedChart
from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class ChartArgs:
    """A chart to install.

    chart: the pinned version and where it is read from.
    namespace: must exist; the chart does not create it.
    release: name of the release, from which charts make the names of their objects.
    values: the chart's values. Plain: with values that are not known yet, a preview cannot tell what would change.
    timeout_seconds: bound of each of Helm's waits, for the objects and for each hook.
    """

    chart: LocatedChart
    namespace: pulumi.Input[str]
    release: str
    values: Mapping[str, Any]
    timeout_seconds: int = 600


class Chart(Layer):
    """Install a chart and wait until what it installs is ready; a failed upgrade goes back to the release before."""

    ready: Sequence[pulumi.Resource]
    """Depend on these to use what the chart installs, or to create objects of the kinds that it defines."""

    def __init__(self, name: str, args: ChartArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:kubernetes:Chart", name, None, opts)
        repository = args.chart.repository
        release = Release(
            name,
            ReleaseArgs(
                name=args.release,
                namespace=args.namespace,
                chart=args.chart.chart,
                version=args.chart.version,
                repository_opts=RepositoryOptsArgs(repo=repository) if repository is not None else None,
                values=_merged(args.chart.values, args.values),
                create_namespace=False,
                atomic=True,
                cleanup_on_fail=True,
                skip_await=False,
                timeout=args.timeout_seconds,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.ready = [release]
        self.register_outputs({})


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both; the second's hold where both name a value."""
    both = dict(one)
    for key, value in other.items():
        below = both.get(key)
        both[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both
