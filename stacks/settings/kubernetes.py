"""The cluster that a stack installs on, for targets that make none."""

from __future__ import annotations

from stacks.settings.model import SettingsModel


class KubernetesSettings(SettingsModel):
    """The cluster to install on.

    kubeconfig: file, absolute, from the home folder (~) or from the project's folder; default $KUBECONFIG, else
        ~/.kube/config. context: in that file; default its current one.
    """

    kubeconfig: str | None = None
    context: str | None = None
