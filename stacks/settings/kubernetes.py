"""The cluster that a stack installs on, and how the engine asks its API server."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from components.kubernetes.provider import ClientLimits
from stacks.settings.model import SettingsModel


class ClientSettings(SettingsModel):
    """How fast the engine may ask the API server.

    The server protects itself by priority and fairness, so that lower limits make updates of many teams slow and
    nothing safer; lower them for a server that has it switched off.
    """

    qps: Annotated[int, Field(ge=1, le=10_000)] = ClientLimits().qps
    """Number of requests a second."""
    burst: Annotated[int, Field(ge=1, le=20_000)] = ClientLimits().burst
    """Number of requests at once, after a pause."""

    @property
    def limits(self) -> ClientLimits:
        """The same for the provider."""
        return ClientLimits(qps=self.qps, burst=self.burst)


class ApiSettings(SettingsModel):
    """The API server of the cluster."""

    client: ClientSettings = ClientSettings()


class KubernetesSettings(ApiSettings):
    """The cluster to install on."""

    kubeconfig: str | None = None
    """File: absolute, from the home folder (`~`) or from the project's folder. Default `$KUBECONFIG`, else
    `~/.kube/config`.
    """
    context: str | None = None
    """Context in that file; default its current one."""
