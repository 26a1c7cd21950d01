"""The cluster that a stack installs on, and how the engine asks its API server."""

from __future__ import annotations

import base64
import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from components.kubernetes.provider import ClientLimits
from stacks.settings.model import SettingsModel, reject

KUBECONFIGS: Final = "the path of a kubeconfig file, as `kubectl config view` shows one"
_CONTENTS: Final = re.compile(r"\n|\b(?:apiVersion|kind|clusters|contexts|users)[\"']?\s*:(?:[\s\"'\[{]|$)")


def holds_contents(text: str) -> bool:
    """Whether a text is what a kubeconfig file holds, perhaps in base64, where the file's path belongs."""
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except ValueError:
        plain = ""
    return any(_CONTENTS.search(each) for each in (text, plain))


def _path(value: str) -> str:
    if holds_contents(value):
        reject(
            message="these are a kubeconfig's contents, whose credentials everybody who reads the configuration finds",
            expected=KUBECONFIGS,
            hint="remove them, replace the credentials where they were issued, and name a file that holds the new ones",
            secret=True,
        )
    return value


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

    kubeconfig: Annotated[str, AfterValidator(_path)] | None = None
    """File: absolute, from the home folder (`~`) or from the project's folder. Default `$KUBECONFIG`, else
    `~/.kube/config`.
    """
    context: str | None = None
    """Context in that file; default its current one."""
    identifier: str | None = None
    """Which cluster the stack is for: the uid of its namespace `kube-system`. With it, a kubeconfig of another cluster
    is refused before anything is made; without it, the preview replaces everything.
    """
