"""Whole stacks as the engine would be asked for them: those that are shipped, and two with all that can be switched on.

Built once for each run of the tests: what holds on every stack is looked at on these.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from components.artifacts import Mirror
from tests.unit import test_aks, test_cpouta, test_existing, test_openshift, test_platform, test_stack
from tests.unit.harness import Record, build
from tests.unit.releases import FOLDER

KUBECONFIG = """
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab-cluster, user: admin}}]
clusters: [{name: lab-cluster, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: admin, user: {token: made-up}}]
"""


def _dev(mirror: Mirror, kubeconfig: Path) -> Record:
    from stacks import deploy

    stack = test_stack.stack_of(test_stack.dev(), mirror, kubeconfig)
    return build(lambda: deploy(stack))


def _existing(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_existing.registered(test_existing.loaded(test_existing.shipped(), mirror, kubeconfig))


def _whole_existing(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_existing.registered(test_platform.everything(mirror, kubeconfig))


def _openshift(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_openshift.registered(test_openshift.loaded(test_openshift.shipped(), mirror, kubeconfig))


def _aks(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_aks.deployed(mirror, test_aks.shipped())


def _whole_aks(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_aks.deployed(mirror, test_aks.everything())


def _cpouta(mirror: Mirror, kubeconfig: Path) -> Record:
    return test_cpouta.Run(sections=test_cpouta.LAYERS).record


STACKS: Mapping[str, Callable[[Mirror, Path], Record]] = MappingProxyType(
    {
        "dev": _dev,
        "existing": _existing,
        "existing-everything": _whole_existing,
        "openshift": _openshift,
        "aks": _aks,
        "aks-everything": _whole_aks,
        "cpouta": _cpouta,
    }
)


@cache
def registered(stack: str) -> Record:
    """Return what a stack registers."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG)
        return STACKS[stack](Mirror(artifacts=str(FOLDER)), kubeconfig)
