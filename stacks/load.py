"""Reads the running stack's configuration. The only module that does.

All mistakes are reported together, before any resource is registered: in the values, between them, and in what they
name (the mirror's files, the kubeconfig, the cluster behind it). A preview, too, needs the cluster to answer: a preview
against a cluster that nobody can reach would be a guess.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from components import catalogue
from components.artefacts import Mirror
from stacks import kubeconfig as kubeconfigs
from stacks import reading, rules
from stacks.kubeconfig import Kubeconfig, KubeconfigError
from stacks.problems import NAMESPACE, Problem, SettingsError
from stacks.settings import KubernetesSettings, MirrorSettings, QueueingSettings, Settings

_HIDDEN = "[secret]"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What a deployment starts from: checked settings, and what they name outside of the configuration."""

    settings: Settings
    kubeconfig: Kubeconfig
    mirror: Mirror


def load() -> Stack:
    """Return the running stack's inputs; raises pulumi.RunError, which ends the program with its message alone."""
    try:
        return interpret(configuration(), base=Path.cwd(), environment=os.environ)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None


def configuration() -> dict[str, object]:
    """Return every key of the project's namespace in the running stack's configuration, without the namespace.

    The engine hands lists and mappings over as JSON. Secrets are hidden: no key of the namespace takes one, and a
    message that shows a value must not show theirs.
    """
    config = pulumi.Config(NAMESPACE)
    keys = sorted(name for name in {**get_config_env(), **CONFIG.get()} if name.startswith(f"{NAMESPACE}:"))
    raw = {}
    for name in (full.removeprefix(f"{NAMESPACE}:") for full in keys):
        raw[name] = _HIDDEN if pulumi.runtime.is_config_secret(f"{NAMESPACE}:{name}") else _value(config.get(name))
    return raw


def interpret(
    raw: Mapping[str, object],
    *,
    base: Path,
    environment: Mapping[str, str],
    check_answers: Callable[[Kubeconfig, KubernetesSettings], None] = kubeconfigs.check_answers,
) -> Stack:
    """Return a stack's inputs from its configuration.

    base: the folder that relative paths count from. environment: for $KUBECONFIG. Raises SettingsError with every
    problem that was found.
    """
    parts, problems = reading.read(raw)
    problems += rules.check(parts)
    kubeconfig = None
    if parts.kubernetes is not None:
        try:
            kubeconfig = kubeconfigs.read(parts.kubernetes, base=base, environment=environment)
            check_answers(kubeconfig, parts.kubernetes)
        except KubeconfigError as error:
            problems.append(error.problem)
    if parts.mirror is not None:
        problems += _mirror(parts.mirror, parts.queueing, base)
    if problems or kubeconfig is None or parts.mirror is None:
        raise SettingsError(problems)
    return Stack(settings=parts.settings(), kubeconfig=kubeconfig, mirror=parts.mirror.mirror(base))


def _value(text: str | None) -> object:
    if text is None or text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _mirror(settings: MirrorSettings, queueing: QueueingSettings | None, base: Path) -> Iterator[Problem]:
    if settings.images is not None and ("://" in settings.images or not settings.images.strip("/ ")):
        yield Problem(
            path=("mirror", "images"),
            value=settings.images,
            wrong="this is no prefix of an image's name",
            allowed="a registry's host and a path on it, such as registry.example.org/mirror",
            fix="leave https:// out",
        )
    artefacts = settings.artefacts
    if artefacts is None or artefacts.startswith("https://"):
        return
    path = ("mirror", "artefacts")
    if "://" in artefacts:
        yield Problem(
            path=path,
            value=artefacts,
            wrong="what is fetched this way could be changed on its way",
            allowed="a folder, or an address that starts with https://",
            fix="serve the mirror with https, or copy it to a folder",
        )
        return
    mirror = settings.mirror(base)
    folder = Path(mirror.artefacts or "")
    if not folder.is_dir():
        yield Problem(
            path=path,
            value=artefacts,
            wrong=f"the folder {folder} does not exist",
            allowed="a folder that holds the catalogue's files, or an https address, or nothing for upstream",
            fix="create and fill it, or name another one",
        )
        return
    if queueing is None:
        return
    wanted = (
        catalogue.find(catalogue.KUEUE, queueing.kueue_version),
        catalogue.find(catalogue.APPWRAPPER, queueing.appwrapper_version),
    )
    for artefact in wanted:
        if not (folder / artefact.file).is_file():
            yield Problem(
                path=path,
                value=artefacts,
                wrong=f"the folder {folder} lacks {artefact.file}",
                allowed=f"a folder that holds {artefact.file}",
                fix=f"put {artefact.url} there under that name",
            )
