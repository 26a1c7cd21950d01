"""Helm charts as resources, for upstreams with hooks or with templates that depend on the cluster's capabilities.

Everything else is installed object by object (see `manifests`). A release's objects are not in the state, so a refresh
finds changes of the release but not of its objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs

from components.artifacts import LocatedChart
from components.layer import Layer


@dataclass(frozen=True, kw_only=True)
class ChartArgs:
    """The arguments of a chart.

    chart: the pinned version and its source.
    namespace: must exist. The chart does not create it.
    release: name of the release, which charts use to name their objects.
    values: the chart's values. They are plain, because with unknown values a preview could not show the change.
    timeout_seconds: limit in seconds for each wait of Helm, for the objects and for each hook.
    """

    chart: LocatedChart
    namespace: pulumi.Input[str]
    release: str
    values: Mapping[str, Any]
    timeout_seconds: int = 600


class Chart(Layer):
    """Install a chart and wait until its objects are ready. A failed upgrade is rolled back."""

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


class ChartLayer(Layer):
    """A layer that consists of one chart.

    token: the component's type.
    """

    def __init__(self, token: str, name: str, args: ChartArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token, name, None, opts)
        self.ready = Chart(name, args, pulumi.ResourceOptions(parent=self)).ready
        self.register_outputs({})


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return both mappings merged. The second overrides the first."""
    both = dict(one)
    for key, value in other.items():
        below = both.get(key)
        both[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both
