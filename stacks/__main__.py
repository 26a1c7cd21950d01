"""Prints a batch job of a stack's settings as a manifest, for a member of a team to submit.

    python -m stacks olmo --team blue --set nodes=2 --set tag=2026-11-21 > job.yaml
    kubectl apply --filename job.yaml

An experiment is no update of the stack: the job need not be switched on there. It reads the settings, and the API
server's description of the cluster where the target is one that is there; it changes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from stacks import secrets
from stacks.errors import NAMESPACE, SettingsError
from stacks.inputs import interpret

JOBS: Final = ("nccl", "metaseq", "olmo")
_TREE: Final = "workloads"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the manifest; return the process's exit code, 1 for settings of which no job can be made."""
    parser = argparse.ArgumentParser(prog="python -m stacks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--stack", default="aks", help="whose settings, of Pulumi.<stack>.yaml (default: aks)")
    parser.add_argument("--team", help="in whose queue; default: the settings'")
    parser.add_argument("--user", help="on whose behalf, which is noted on the job")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job")
    options = parser.parse_args(arguments)
    try:
        changes = dict(_change(each) for each in options.set)
        file = Path(f"Pulumi.{options.stack}.yaml")
        submission = {"team": options.team, "user": options.user}
        print(manifest(configuration(file), options.job, changes, submission), end="")
    except (SettingsError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def manifest(raw: Mapping[str, Any], job: str, changes: Mapping[str, Any], submission: Mapping[str, str | None]) -> str:
    """Return the job's documents as YAML. Raises SettingsError for what the program would refuse.

    raw: the configuration, by key without the project's name. changes: settings of the job, in place of its own.
    submission: team and user, where they are not the settings' own.
    """
    from stacks.layers.jobs import documents

    inputs = interpret(wanted(raw, job, changes, submission), base=Path.cwd(), environment=os.environ)
    return yaml.dump_all(documents(inputs, job), Dumper=_Dumper, sort_keys=False)


def wanted(
    raw: Mapping[str, Any], job: str, changes: Mapping[str, Any], submission: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the configuration with the job switched on, and no other workload."""
    tree = dict(raw.get(_TREE) or {})
    own = dict(tree.get(job) or {})
    queue = {**(own.get("submission") or {}), "gang": "mlbatch"}
    queue |= {key: value for key, value in submission.items() if value is not None}
    others = {
        key: {**value, "enabled": False} if isinstance(value, Mapping) and "enabled" in value else value
        for key, value in tree.items()
    }
    return {**raw, _TREE: {**others, job: {**own, **changes, "enabled": True, "submission": queue}}}


def configuration(file: Path) -> dict[str, Any]:
    """Return a stack's configuration by key without the project's name; secrets are there by their keys alone."""
    found = (yaml.safe_load(file.read_text()) or {}).get("config") or {}
    prefix = f"{NAMESPACE}:"
    return {
        name.removeprefix(prefix): secrets.HIDDEN if isinstance(value, Mapping) and "secure" in value else value
        for name, value in found.items()
        if name.startswith(prefix)
    }


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _change(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set {text} is no KEY=VALUE, such as nodes=2")
    return key, yaml.safe_load(value) if key not in ("tag", "image", "size", "data", "training") else value


if __name__ == "__main__":
    sys.exit(main())
