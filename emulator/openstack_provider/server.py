"""The provider package openstack."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from emulator.openstack_provider import cloud, functions, schema
from emulator.openstack_provider.cloud import Cloud
from emulator.openstack_provider.errors import NotServedError
from emulator.openstack_provider.kinds import KINDS
from emulator.openstack_provider.resources import OpenStackResources
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Plugin, Resources
from emulator.plugin.wire import UNKNOWN


class OpenStack(Plugin):
    """The provider for OpenStack as a plugin."""

    name = "openstack"
    version = version("pulumi-openstack")

    def check_config(self, inputs: dict[str, Any]) -> Sequence[Failure]:
        """Refuse what is not understood: an input that is dropped may name another project."""
        known = cloud.VARIABLES.keys() | cloud.IGNORED | {"endpointOverrides"}
        return [
            (name, "is not understood by the local provider for OpenStack; the official plugin has it")
            for name, value in inputs.items()
            if name not in known and value not in (None, "", UNKNOWN) and str(value).lower() != "false"
        ]

    def configure(self, inputs: dict[str, Any], operation: Operation) -> OpenStackProvider:
        """Serve the OpenStack that the provider resource, or else the environment, names."""
        for key, reason in self.check_config(inputs):
            raise ProviderError(f"provider input {key}: {reason}")
        given = {name: value for name, value in inputs.items() if value is not UNKNOWN}
        return OpenStackProvider(Cloud(cloud.settings(given)))

    def refusal(self, what: str) -> ProviderError:
        """Return the error for something that only the official plugin does."""
        return NotServedError(what, "resources and functions")


class OpenStackProvider:
    """A configured provider resource."""

    def __init__(self, of: Cloud) -> None:
        self._cloud = of

    def resources(self, token: str) -> Resources:
        """Return the operations on a type. Raises NotServedError for one that is not served."""
        if token not in KINDS:
            raise NotServedError(token, ", ".join(KINDS))
        return OpenStackResources(self._cloud, schema.resources()[token], KINDS[token])

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer a function."""
        return functions.answer(self._cloud, token, arguments)
