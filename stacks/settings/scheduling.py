"""How pods are ranked and placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from components import catalogue
from components.catalogue import Artifact
from components.scheduling.packing import Packing
from stacks.settings.model import SettingsModel, choice

_SCHEDULERS = catalogue.versions(catalogue.SCHEDULER_PLUGINS)


class SchedulingSettings(SettingsModel):
    """How pods are ranked and placed."""

    priority_classes: bool = True
    """Make the platform's three priority classes; off where the cluster has them already."""
    packing: Packing = Packing.COSCHEDULING
    """Who picks the nodes of jobs: `none`, the cluster's own scheduler, which spreads them; `coscheduling`, a second
    scheduler, which fills nodes one after the other and starts gangs whole; `topology`, Kueue, which admits a job only
    where nodes have room for it. `coscheduling` and `topology` work on jobs in queues."""
    scheduler_version: Annotated[str, choice("version of scheduler-plugins", _SCHEDULERS)] = _SCHEDULERS[0]
    """Version of the second scheduler, scheduler-plugins, for `coscheduling`. It goes with the Kubernetes version of
    its own number and the next."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return what the second scheduler is installed from, nothing where there is none."""
        if self.packing is not Packing.COSCHEDULING:
            return ()
        wanted = (catalogue.SCHEDULER_PLUGINS, catalogue.ELASTIC_QUOTAS)
        return [catalogue.find(name, self.scheduler_version) for name in wanted]
