"""Finishes an update whose engine was killed, by the commands that docs/operations.md gives for a stack of your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from emulator import azure
from emulator.charts.helm import Helm, HelmError
from emulator.paths import Paths
from runner import pending
from runner.engine import Engine, EngineError
from runner.pending import RELEASE, Resource
from runner.report import connect


def creations(engine: Engine) -> list[Resource]:
    """Return what the engine was creating when it was killed; nothing where it was not."""
    return pending.creations(engine.read_state())


def finish(engine: Engine, paths: Paths) -> None:
    """Settle the pending creations of the stack, if any; raises EngineError if `pulumi refresh` fails."""
    begun = creations(engine)
    if not begun:
        return
    found = dict(pending.existing(connect(paths.kubeconfig), begun))
    if any(each["type"].startswith("azure-native:") for each in begun):
        in_azure = azure.orphans(paths)
        found |= {each["urn"]: in_azure[each["urn"]].id for each in begun if each["urn"] in in_azure}
    for each in begun:
        if each["type"] == RELEASE:
            _uninstall(each["inputs"], paths)
    print(
        f"the last update was killed with {len(begun)} creations pending, {len(found)} of which exist: running "
        "`pulumi refresh --clear-pending-creates --import-pending-creates ...`",
        flush=True,
    )
    options = ["--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress", *pending.options(found)]
    code = engine.run("refresh", options)
    if code != 0:
        raise EngineError(
            f"`pulumi refresh` ended with exit code {code}: the killed update is not finished. Start this local "
            "environment again from nothing: make clean, then make up"
        )


def _uninstall(inputs: Mapping[str, Any], paths: Paths) -> None:
    helm = Helm(paths.bin / "helm", yaml.safe_load(paths.kubeconfig.read_text()))
    namespace, name = inputs["namespace"], inputs["name"]
    try:
        helm.run(["uninstall", str(name), f"--namespace={namespace}", "--wait", "--ignore-not-found"])
    except HelmError as error:
        raise EngineError(f"the release {namespace}/{name} of a killed update stays: {error}") from None
