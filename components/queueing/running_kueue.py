"""A Kueue that the stack uses but does not install from upstream's manifest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from components import names
from components.compatibility import numbers

KUEUE: Final = "kueue-controller-manager"
"""Name of Kueue's Deployment in upstream's manifest, and in that of Red Hat's operator."""
_COUNTS_RAY: Final = (0, 10)
"""The first Kueue that counts all pods of Ray's kinds (red-hat-data-services/kueue, rhoai-2.16 to 2.21)."""


@dataclass(frozen=True, kw_only=True)
class RunningKueue:
    """What the platform needs to know about a Kueue that others configure.

    version: of upstream's Kueue, such as 0.18.4. account: the user name of its service account. namespace: of its pods.
    deployment: name of its Deployment.
    api: API version of its queues.
    labels: labels of the namespaces whose jobs it manages, besides the platform's own.
    unlimited: resources that no quota should limit, and that its configuration does not exclude. A queue that does not
    cover them would not admit a job that requests them.
    flavors: names of ResourceFlavors that its installer creates, which the stack cannot use.
    has_queues: others may create LocalQueues in the namespaces of teams.
    """

    version: str
    account: str
    namespace: str
    deployment: str = KUEUE
    api: str = names.KUEUE_API
    labels: Mapping[str, str] = field(default_factory=dict)
    unlimited: Sequence[str] = ()
    flavors: Sequence[str] = ()
    has_queues: bool = False

    @property
    def counts_ray(self) -> bool:
        """Whether it counts each host of a worker group, and the pod that submits a RayJob."""
        return numbers(self.version) >= _COUNTS_RAY
