"""Volcano, the gang scheduler of jobs that no team submits."""

from __future__ import annotations

from typing import Annotated

from components import catalogue
from components.scheduling import volcano
from components.scheduling.volcano import LauncherView
from stacks.settings.section import Section, choice

_VERSIONS = catalogue.chart_versions("volcano")


class VolcanoSettings(Section):
    """Whether to install Volcano, and how.

    Its jobs run in mlbatch:workloads.namespace, past all queues: what they take, the teams' quotas have to leave out.
    launcher_view: what the launcher of an MPI job may read in that namespace: pods, or all but Secrets and roles.
    """

    enabled: bool = False
    version: Annotated[str, choice("Volcano version", _VERSIONS)] = _VERSIONS[0]
    queue: str = volcano.QUEUE
    launcher_view: LauncherView = LauncherView.PODS
