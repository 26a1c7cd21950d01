"""What the local environment of a stack offers to an engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator import azure, cluster
from emulator.cluster.layout import Layout
from emulator.openstack.deployment import Deployment
from emulator.openstack_provider import plugin as openstack
from emulator.paths import Paths
from emulator.recovery import Created
from runner.engine import EngineError
from runner.environment import Environment

KUBERNETES: Final = "kubernetes"
EMULATED: Final = frozenset({"azure-native", KUBERNETES, "random"})
"""The plugins whose providers are emulated, by the names under which the engine looks for them."""


def environment(paths: Paths) -> Environment:
    """Return the environment of a running local cluster.

    The official Kubernetes plugin is used where the user has it: it reaches what the kubeconfig names, and that is the
    local cluster. Raises EngineError where the emulated providers are not all there.
    """
    plugin = official_plugin()
    official = {KUBERNETES} if plugin is not None else set()
    of_openstack = official_plugin(openstack.NAME) or openstack.install(paths)
    state, layout = cluster.status(paths), Layout(paths)
    found = state.providers
    missing = EMULATED - official - found.keys()
    if missing:
        raise EngineError(
            f"the local environment serves no provider for {', '.join(sorted(missing))}; `make down`, then `make up`, "
            "starts it anew"
        )
    return Environment(
        kubeconfig=paths.kubeconfig,
        mirror=paths.mirror,
        providers={name: port for name, port in sorted(found.items()) if name in EMULATED - official},
        programs=(layout.azure_bin, *((layout.guests_bin,) if state.openstack else ()), paths.bin),
        plugins=(of_openstack, *([plugin] if plugin is not None else [])),
        variables=Deployment(paths).variables() if state.openstack else {},
        ssh_key=layout.guests_key if state.openstack else None,
    )


def orphans(paths: Paths, variables: Mapping[str, str]) -> dict[str, Created]:
    """Return what was created in a cloud for engines that do not know it, by URN. variables: of the engine.

    Raises EngineError where an OpenStack cannot be asked.
    """
    return {**azure.orphans(paths), **openstack.orphans(paths, variables)}


def official_plugin(name: str = KUBERNETES) -> Path | None:
    """Return the folder of the installed plugin of a provider that goes with its SDK, else None.

    The engine takes no other version than the SDK's (Pulumi SDK, `go/common/workspace/plugins.go`,
    SelectCompatiblePlugin).
    """
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    plugin = home / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}"
    # The shell of `make env` has an engine's own home, with links to the files of these plugins, and of our own one.
    program = (plugin / f"pulumi-resource-{name}").resolve()
    return program.parent if program.is_file() and not openstack.is_ours(program) else None
