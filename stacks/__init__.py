"""Stacks: from settings to the composition of layers for each target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stacks.settings import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stacks.load import Stack


def deploy(stack: Stack) -> Mapping[str, Any]:
    """Register the platform on the stack's target and return the stack's outputs.

    A target's module, and with it the target's SDKs, is loaded only when it is the one. Raises pulumi.RunError, which
    ends the program with its message alone, when upstream's files cannot be had.
    """
    import pulumi

    from components.artefacts import ArtefactError

    try:
        match stack.settings.target:
            case Target.SIMULATED:
                from stacks import simulated

                return simulated.deploy(stack)
            case Target.AKS:
                from stacks import aks

                return aks.deploy(stack)
    except ArtefactError as error:
        raise pulumi.RunError(str(error)) from None
