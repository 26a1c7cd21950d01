"""The tests against the real thing: a cluster and official plugins, as the variables of the environment say.

MLBATCH_TEST_KUBECONFIG names the file of a cluster that is there for the tests alone, which fill and empty it. KWOK
answers for its simulated nodes: kind with KWOK beside it (.github/workflows/official.yml). Files and charts then come
from upstream, and all plugins are those in $PULUMI_HOME.

Without the variable the tests start a local cluster. They use the official Kubernetes plugin if $PULUMI_HOME has it,
else the one that this checkout builds. The OpenStack plugin is always the built one. Azure and random are emulated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from emulator.environment import EMULATED, KUBERNETES, official_plugin

CLUSTER: Final = "MLBATCH_TEST_KUBECONFIG"
PLUGINS: Final = (KUBERNETES, "random")
"""What the stacks need that are tested there; Azure is emulated or nothing."""


def named_cluster(variables: Mapping[str, str] = os.environ) -> Path | None:
    """Return the kubeconfig of the cluster to test on, None where the tests start one."""
    named = variables.get(CLUSTER)
    return Path(named).expanduser().resolve() if named else None


def plugins() -> tuple[Path, ...]:
    """Return the folders of the official plugins; raises LookupError for one that is not installed."""
    found = {name: official_plugin(name) for name in PLUGINS}
    missing = [f"pulumi plugin install resource {name} v{_sdk(name)}" for name, folder in found.items() if not folder]
    if missing:
        raise LookupError(f"{CLUSTER} is set, and official plugins are missing: run {' && '.join(missing)}")
    return tuple(folder for folder in found.values() if folder)


def providers() -> list[str]:
    """Return a line for each provider that the tests run with: its name, version, and where it is from."""
    if named_cluster() is None:
        otherwise = {KUBERNETES: "built by this checkout", **dict.fromkeys(EMULATED, "emulated by this checkout")}
        official = {KUBERNETES: official_plugin(KUBERNETES)}
    else:
        otherwise = dict.fromkeys(PLUGINS, "official plugin, which is not installed")
        official = {name: official_plugin(name) for name in PLUGINS}
    found = {name: f"official plugin in {folder}" for name, folder in official.items() if folder}
    return [f"{name} v{_sdk(name)}: {place}" for name, place in sorted({**otherwise, **found}.items())]


def _sdk(name: str) -> str:
    """Return the version of a provider's SDK. An official plugin must have the same version."""
    return version(f"pulumi-{name}")
