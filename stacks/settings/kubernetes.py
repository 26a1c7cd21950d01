"""The cluster that a stack installs on, and how the engine asks its API server."""

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
            "this is a kubeconfig's content: every reader of the configuration can see its credentials",
            "remove it, revoke the credentials, and name a file with new ones",
            expected=KUBECONFIGS,
            secret=True,
        )
    return value


class ClientSettings(SettingsModel):
    """Rate limits of Pulumi's requests to the API server.

    API Priority and Fairness already protects the server, so lower limits only slow down updates with many teams. Lower
    them if it is switched off.
    """

    qps: Annotated[int, Field(ge=1, le=10_000)] = ClientLimits().qps
    """Number of requests per second."""
    burst: Annotated[int, Field(ge=1, le=20_000)] = ClientLimits().burst
    """Number of requests in a burst after a pause."""

    @property
    def limits(self) -> ClientLimits:
        return ClientLimits(qps=self.qps, burst=self.burst)


class ApiSettings(SettingsModel):
    """Access to the API server of the cluster."""

    client: ClientSettings = ClientSettings()


class KubernetesSettings(ApiSettings):
    """The cluster to install on."""

    kubeconfig: Annotated[str, AfterValidator(_path)] | None = None
    """Path of the kubeconfig file: absolute, starting with `~`, or relative to the project folder. Default:
    `$KUBECONFIG`, else `~/.kube/config`.
    """
    context: str | None = None
    """Context in that file. Default: its current context."""
    identifier: str | None = None
    """UID of the namespace `kube-system` of the stack's cluster. If set, the program refuses a kubeconfig of another
    cluster. If not, the preview with such a kubeconfig replaces everything.
    """
