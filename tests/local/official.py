"""Tests on a real cluster with official plugins, selected by environment variables.

MLBATCH_TEST_KUBECONFIG names a kubeconfig of a cluster only for the tests, which fill and empty it. KWOK runs its
simulated nodes, for example kind with KWOK (.github/workflows/official.yml). Files and charts come from upstream, and
all plugins from $PULUMI_HOME.

Without the variable the tests start a local cluster, with the plugins that this checkout builds. Azure and random are
emulated.
"""

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator.environment import EMULATED, KUBERNETES, OPENSTACK
from emulator.toolchain import CORE, pinned_version

CLUSTER: Final = "MLBATCH_TEST_KUBECONFIG"
PLUGINS: Final = (KUBERNETES, "random")
"""Plugins of the stacks that these tests use."""
_MODULES: Final = {
    KUBERNETES: "github.com/pulumi/pulumi-kubernetes/provider/v4",
    OPENSTACK: "github.com/terraform-provider-openstack/terraform-provider-openstack/v3",
}
"""Go modules of the plugins that this checkout builds."""


def named_cluster(variables: Mapping[str, str] = os.environ) -> Path | None:
    """Return the kubeconfig of the cluster to test on, None if the tests start one."""
    named = variables.get(CLUSTER)
    return Path(named).expanduser().resolve() if named else None


def plugins() -> tuple[Path, ...]:
    """Return the folders of the official plugins. Raises LookupError for a missing one."""
    found = {name: official_plugin(name) for name in PLUGINS}
    missing = [f"pulumi plugin install resource {name} v{_sdk(name)}" for name, folder in found.items() if not folder]
    if missing:
        raise LookupError(f"{CLUSTER} is set, and official plugins are missing: run {' && '.join(missing)}")
    return tuple(folder for folder in found.values() if folder)


def providers() -> list[str]:
    """Return a line for each provider of the test run: name, version, source."""
    if named_cluster() is None:
        built = {name: f"built from {pinned_version(CORE, module)} of {module}" for name, module in _MODULES.items()}
        emulated = {name: f"emulated, as of v{_sdk(name)}" for name in EMULATED}
        return [f"{name}: {place}" for name, place in sorted({**built, **emulated}.items())]
    found = {name: official_plugin(name) or "which is not installed" for name in PLUGINS}
    return [f"{name}: official plugin v{_sdk(name)}, {place}" for name, place in found.items()]


def official_plugin(name: str) -> Path | None:
    """Return the folder of the installed plugin for a provider's SDK, else None."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    folder = home / "plugins" / f"resource-{name}-v{_sdk(name)}"
    return folder if (folder / f"pulumi-resource-{name}").is_file() else None


def _sdk(name: str) -> str:
    """Return the version of a provider's SDK. An official plugin must have the same version."""
    return version(f"pulumi-{name}")
