"""The provider package openstack."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from emulator.openstack_provider import cloud, functions, schema
from emulator.openstack_provider.cloud import Cloud
from emulator.openstack_provider.errors import NotServedError
from emulator.openstack_provider.journal import Journal
from emulator.openstack_provider.kinds import KINDS
from emulator.openstack_provider.resources import OpenStackResources
from emulator.plugin.errors import ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.provider import Failure, Plugin, Resources
from emulator.plugin.wire import UNKNOWN
from runner.environment import LOOPBACK

_NONE = Journal(None)


class OpenStack(Plugin):
    """The provider for OpenStack as a plugin.

    journal: of what is created. local: an OpenStack that is not on this machine is refused.
    """

    name = "openstack"
    version = version("pulumi-openstack")

    def __init__(self, journal: Journal = _NONE, *, local: bool = False) -> None:
        self._journal = journal
        self._local = local

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
        found = cloud.settings(given)
        host = urlsplit(str(found.get("authUrl") or "")).hostname
        if self._local and (found.get("cloud") or host not in (None, *LOOPBACK)):
            named = f"cloud {found['cloud']}" if found.get("cloud") else f"authUrl {found['authUrl']}"
            raise ProviderError(
                f"{named} is not on this machine, and the local environment reaches no other: leave it to OS_AUTH_URL, "
                "which names the local OpenStack here"
            )
        return OpenStackProvider(Cloud(found), self._journal)

    def refusal(self, what: str) -> ProviderError:
        """Return the error for something that only the official plugin does."""
        return NotServedError(what, "resources and functions")


class OpenStackProvider:
    """A configured provider resource."""

    def __init__(self, of: Cloud, journal: Journal) -> None:
        self._cloud = of
        self._journal = journal

    def resources(self, token: str) -> Resources:
        """Return the operations on a type. Raises NotServedError for one that is not served."""
        if token not in KINDS:
            raise NotServedError(token, ", ".join(KINDS))
        return OpenStackResources(self._cloud, schema.resources()[token], KINDS[token], self._journal)

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer a function."""
        return functions.answer(self._cloud, token, arguments)
