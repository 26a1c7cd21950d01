"""The environment that a stack's local cluster gives to an engine."""

from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator import cluster
from emulator.cluster.layout import Layout
from emulator.openstack.deployment import Deployment
from emulator.paths import Paths
from runner.engine import EngineError
from runner.environment import Environment
from runner.files import link_to, private_folder

KUBERNETES: Final = "kubernetes"
OPENSTACK: Final = "openstack"
EMULATED: Final = frozenset({"azure-native", "random"})
"""The plugins with emulated providers, by the engine's names for them."""

PATCH_FORCE: Final = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}
"""The provider input `enablePatchForce`; the version built here reads it only from the environment."""


def environment(paths: Paths) -> Environment:
    """Return the environment of a running local cluster.

    Its plugins are built here. They reject every cluster and cloud except the local ones.

    Raises EngineError if the emulated providers do not run.
    """
    state, layout = cluster.status(paths), Layout(paths)
    found = state.providers
    missing = EMULATED - found.keys()
    if missing:
        raise EngineError(
            f"the local environment does not run the providers {', '.join(sorted(missing))}. Run `make down`, "
            "then `make up`"
        )
    return Environment(
        kubeconfig=paths.kubeconfig,
        mirror=paths.mirror,
        providers=dict(sorted(found.items())),
        programs=(layout.azure_bin, *((layout.guests_bin,) if state.openstack else ()), paths.bin),
        plugins=(built_plugin(paths, KUBERNETES), built_plugin(paths, OPENSTACK)),
        variables={**PATCH_FORCE, **(Deployment(paths).variables() if state.openstack else {})},
        ssh_key=layout.guests_key if state.openstack else None,
    )


def built_plugin(paths: Paths, name: str) -> Path:
    """Return the folder of a plugin that is built here, named after the version that the engine looks for."""
    program = f"pulumi-resource-{name}"
    folder = private_folder(paths.state / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}")
    link_to(folder / program, paths.bin / program)
    return folder
