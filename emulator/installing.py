"""Installs the tools of a stack's local environment, and OpenStack if it has one."""

from collections.abc import Sequence

from emulator import distribution
from emulator.openstack.installation import Installation
from emulator.paths import Paths
from emulator.progress import Progress
from emulator.toolchain import KUEUE_0_18, Need, Toolchain, needs


def install(paths: Paths, stack: str, progress: Progress, also: Sequence[Need] = ()) -> None:
    """Install what is missing and link everything into `paths.bin`.

    also: further tools. Raises EngineError if the stack's file is not YAML, ToolchainError and OpenStackError.
    """
    operators = distribution.has_job_operators(paths.root, stack)
    wanted = needs(**distribution.parts(paths.root, stack), job_operators=operators)
    older = (KUEUE_0_18.need(),) if distribution.has_older_kueue(paths.root, stack) else ()
    Toolchain(paths).install((*wanted, *older, *also), progress)
    if distribution.has_openstack(paths.root, stack):
        Installation(paths).install(progress)
