"""Layers, which export the resources that others depend on."""

from collections.abc import Iterable, Sequence

import pulumi


class Layer(pulumi.ComponentResource):
    """A component that other components depend on."""

    ready: Sequence[pulumi.Resource]
    """Resources that must exist before others can use the component."""


def needed(needs: Iterable[pulumi.Resource]) -> list[pulumi.Resource]:
    """Return the resources to depend on: the `ready` resources of a layer, and every other resource itself."""
    found: list[pulumi.Resource] = []
    for need in needs:
        found += needed(need.ready) if isinstance(need, Layer) else [need]
    return found


def standing_on(
    owner: pulumi.Resource, options: pulumi.ResourceOptions, *, gone_with: pulumi.Resource | None = None
) -> pulumi.ResourceOptions:
    """Return options so that a resource is deleted with `gone_with` and replaced with its owner.

    gone_with: default the owner. If it is not deleted, the engine deletes each resource individually. The engine passes
    `deleted_with` to a component's children, but not `replace_with`.
    """

    def transformation(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        both = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(replace_with=[owner]))
        return pulumi.ResourceTransformationResult(props=args.props, opts=both)

    with_owner = pulumi.ResourceOptions(deleted_with=gone_with or owner, transformations=[transformation])
    return pulumi.ResourceOptions.merge(options, with_owner)
