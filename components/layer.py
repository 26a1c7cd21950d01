"""What a component says of itself to those that stand on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi


class Layer(pulumi.ComponentResource):
    """A component that others stand on."""

    ready: Sequence[pulumi.Resource]
    """What has to exist before others can use what the component stands for."""


def needed(needs: Iterable[pulumi.Resource]) -> list[pulumi.Resource]:
    """Return what to depend on for these needs: of a layer what it calls ready, and every other resource itself."""
    found: list[pulumi.Resource] = []
    for need in needs:
        found += needed(need.ready) if isinstance(need, Layer) else [need]
    return found


def standing_on(
    owner: pulumi.Resource, options: pulumi.ResourceOptions, *, gone_with: pulumi.Resource | None = None
) -> pulumi.ResourceOptions:
    """Return the options of what goes with another resource, and is created anew with it.

    gone_with: without whose deletion each is deleted by itself; default the owner. The engine hands `deleted_with` down
    to a component's children and `replace_with` not.
    """

    def transformation(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        both = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(replace_with=[owner]))
        return pulumi.ResourceTransformationResult(props=args.props, opts=both)

    with_owner = pulumi.ResourceOptions(deleted_with=gone_with or owner, transformations=[transformation])
    return pulumi.ResourceOptions.merge(options, with_owner)
