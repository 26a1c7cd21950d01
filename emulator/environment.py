"""What the local environment of a stack offers to an engine."""

from __future__ import annotations

import contextlib
import os
from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator import cluster
from emulator.cluster.layout import Layout
from emulator.openstack.deployment import Deployment
from emulator.paths import Paths
from runner.engine import EngineError
from runner.environment import Environment
from runner.files import private_folder

KUBERNETES: Final = "kubernetes"
OPENSTACK: Final = "openstack"
EMULATED: Final = frozenset({"azure-native", KUBERNETES, "random"})
"""The plugins whose providers are emulated, by the names under which the engine looks for them."""


def environment(paths: Paths) -> Environment:
    """Return the environment of a running local cluster.

    The official Kubernetes plugin is used where the user has it: it reaches what the kubeconfig names, and that is the
    local cluster. Raises EngineError where the emulated providers are not all there.
    """
    plugin = official_plugin()
    official = {KUBERNETES} if plugin is not None else set()
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
        plugins=(built_plugin(paths, OPENSTACK), *([plugin] if plugin is not None else [])),
        variables=Deployment(paths).variables() if state.openstack else {},
        ssh_key=layout.guests_key if state.openstack else None,
    )


def built_plugin(paths: Paths, name: str) -> Path:
    """Return a folder with a plugin that was built, named as the engine looks for it: with the version of its SDK."""
    folder = private_folder(paths.state / "plugins" / _folder_name(name))
    program = f"pulumi-resource-{name}"
    with contextlib.suppress(FileExistsError):
        (folder / program).symlink_to(paths.bin / program)
    return folder


def official_plugin(name: str = KUBERNETES) -> Path | None:
    """Return the folder of the installed plugin of a provider that goes with its SDK, else None.

    The engine takes no other version than the SDK's (Pulumi SDK, `go/common/workspace/plugins.go`,
    SelectCompatiblePlugin).
    """
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    plugin = home / "plugins" / _folder_name(name)
    # The shell of `make env` has an engine's own home, with links to the files of these plugins.
    program = (plugin / f"pulumi-resource-{name}").resolve()
    return program.parent if program.is_file() else None


def _folder_name(plugin: str) -> str:
    return f"resource-{plugin}-v{version(f'pulumi-{plugin}')}"
