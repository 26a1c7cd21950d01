"""The cluster that a stack installs on, for targets that make none."""

from __future__ import annotations

from stacks.settings.model import SettingsModel


class KubernetesSettings(SettingsModel):
    """The cluster to install on."""

    kubeconfig: str | None = None
    """File: absolute, from the home folder (`~`) or from the project's folder. Default `$KUBECONFIG`, else
    `~/.kube/config`.
    """
    context: str | None = None
    """Context in that file; default its current one."""
