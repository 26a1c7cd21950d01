"""Deploys the platform on a stack's target."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pulumi

from components.artifacts import ArtifactError
from stacks.config.inputs import StackInputs
from stacks.layers import releases


def deploy(inputs: StackInputs[Any]) -> Mapping[str, Any]:
    """Register the platform on the stack's target and return the stack's outputs.

    A target's SDKs are loaded only when it is the one. Raises pulumi.RunError, which ends the program with its message
    alone, when upstream's files cannot be had or are not what the catalogue says. Manifests are read before anything is
    registered; a chart is looked at where its layer is, in the preview already.
    """
    target = import_module(f"stacks.targets.{inputs.target.name}.deploy")
    try:
        outputs: Mapping[str, Any] = target.deploy(inputs, releases.read(inputs))
    except ArtifactError as error:
        raise pulumi.RunError(str(error)) from None
    return outputs
