"""What the local environment of a stack offers to an engine."""

from __future__ import annotations

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
EMULATED: Final = frozenset({"azure-native", "random"})
"""The plugins whose providers are emulated, by the names under which the engine looks for them."""

PATCH_FORCE: Final = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
"""The provider input `enablePatchForce`, which the version that is built here takes from the environment alone."""


def environment(paths: Paths) -> Environment:
    """Return the environment of a running local cluster.

    An official Kubernetes plugin of the SDK's version is used where the user has it, else the one that is built here.
    The plugin for OpenStack is always the one that is built here, which refuses every cloud but the local one. Raises
    EngineError where the emulated providers do not run.
    """
    state, layout = cluster.status(paths), Layout(paths)
    found = state.providers
    missing = EMULATED - found.keys()
    if missing:
        raise EngineError(
            f"the local environment serves no provider for {', '.join(sorted(missing))}; `make down`, then `make up`, "
            "starts it anew"
        )
    return Environment(
        kubeconfig=paths.kubeconfig,
        mirror=paths.mirror,
        providers=dict(sorted(found.items())),
        programs=(layout.azure_bin, *((layout.guests_bin,) if state.openstack else ()), paths.bin),
        plugins=(official_plugin() or built_plugin(paths), built_plugin(paths, OPENSTACK)),
        variables={**PATCH_FORCE, **(Deployment(paths).variables() if state.openstack else {})},
        ssh_key=layout.guests_key if state.openstack else None,
    )


def built_plugin(paths: Paths, name: str = KUBERNETES) -> Path:
    """Return the folder of a plugin that is built here, under the version by which the engine looks for it."""
    program = f"pulumi-resource-{name}"
    folder = private_folder(paths.state / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}")
    link, target = folder / program, paths.bin / program
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return folder


def official_plugin(name: str = KUBERNETES) -> Path | None:
    """Return the folder of the installed plugin of a provider that goes with its SDK, else None.

    The engine takes no other version than the SDK's (Pulumi SDK, `go/common/workspace/plugins.go`,
    SelectCompatiblePlugin).
    """
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    plugin = home / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}"
    # The shell of `make env` has an engine's own home, with links to the files of these plugins.
    program = (plugin / f"pulumi-resource-{name}").resolve()
    # A plugin that is built here leads to the cache of tools, whose folders have other names.
    return program.parent if program.is_file() and program.parent.name == plugin.name else None
