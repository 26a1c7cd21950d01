"""Reads the running stack's configuration. The only module that does.

All mistakes are reported together, before any resource is registered: in the values, between them, and in what they
name (the mirror's files, the kubeconfig, the cluster behind it). A preview, too, needs the cluster to answer: a preview
against a cluster that nobody can reach would be a guess.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from components import catalogue
from components.artefacts import Mirror
from stacks import kubeconfig as kubeconfigs
from stacks import reading, rules
from stacks.kubeconfig import Kubeconfig, KubeconfigError
from stacks.problems import NAMESPACE, Problem, SettingsError, key
from stacks.rules.storage import TOKEN_KEY, plain_tokens
from stacks.settings import Settings, Target
from stacks.settings.cluster import KubernetesSettings
from stacks.settings.mirror import MirrorSettings
from stacks.settings.tenancy import QueueingSettings

MIRROR_VARIABLE: Final = "MLBATCH_MIRROR"
"""Names a folder of upstream's manifest files for stacks whose settings name no mirror; the files are taken as they
are."""

BLOB_SAS_TOKEN: Final = TOKEN_KEY
JUPYTER_TOKEN: Final = "jupyterToken"
GRAFANA_PASSWORD: Final = "grafanaPassword"
SECRETS: Final = (BLOB_SAS_TOKEN, JUPYTER_TOKEN, GRAFANA_PASSWORD)
"""Keys whose values are secrets of the stack. Each is a key of its own, because a secret inside of a section would make
a secret of the whole section."""

_HIDDEN = "[secret]"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What a deployment starts from: checked settings, and what they name outside of the configuration.

    kubeconfig: of the cluster to install on, None where the target makes one. secrets: those of SECRETS that are set.
    warnings: what is allowed, and nobody knows to work.
    """

    settings: Settings
    mirror: Mirror
    kubeconfig: Kubeconfig | None = None
    secrets: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def existing_cluster(self) -> Kubeconfig:
        """The cluster that the kubeconfig names; targets that make their own have none."""
        assert self.kubeconfig is not None
        return self.kubeconfig


def load() -> Stack:
    """Return the running stack's inputs; raises pulumi.RunError, which ends the program with its message alone."""
    try:
        stack = interpret(configuration(), base=Path.cwd(), environment=os.environ)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in stack.warnings:
        pulumi.log.warn(warning)
    config = pulumi.Config(NAMESPACE)
    given = {name: config.get_secret(name) for name in SECRETS}
    return replace(stack, secrets={name: value for name, value in given.items() if value is not None})


def configuration() -> dict[str, object]:
    """Return every key of the project's namespace in the running stack's configuration, without the namespace.

    The engine hands lists and mappings over as JSON. The values of secrets are hidden, because a message that shows a
    value must not show theirs.
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
    problems = list(_exposed(raw))
    given = frozenset(raw).intersection(SECRETS)
    parts, found = reading.read({name: value for name, value in raw.items() if name not in SECRETS}, given)
    problems += [*found, *rules.check(parts)]
    kubeconfig = None
    if parts.kubernetes is not None and parts.target is not Target.AKS:
        try:
            kubeconfig = kubeconfigs.read(parts.kubernetes, base=base, environment=environment)
            check_answers(kubeconfig, parts.kubernetes)
        except KubeconfigError as error:
            problems.append(error.problem)
    if parts.mirror is not None:
        problems += _mirror(parts.mirror, parts.queueing, base)
    if problems or parts.mirror is None:
        raise SettingsError(problems)
    mirror = parts.mirror.mirror(base, fallback=environment.get(MIRROR_VARIABLE))
    return Stack(settings=parts.settings(), kubeconfig=kubeconfig, mirror=mirror, warnings=tuple(rules.warnings(parts)))


def _value(text: str | None) -> object:
    if text is None or text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _exposed(raw: Mapping[str, object]) -> Iterator[Problem]:
    """Yield secrets that stand in the configuration for everybody to read. Their values are not shown."""
    for name in SECRETS:
        if raw.get(name, _HIDDEN) != _HIDDEN:
            yield Problem(
                path=(name,),
                wrong="this is a secret, and it stands in plain text in the stack's configuration",
                allowed="a secret of the stack",
                fix=f"run `pulumi config set --secret {key((name,))}`, which asks for the value, and replace the old "
                "one where it was issued: it has been readable",
            )
    yield from plain_tokens({name: value for name, value in raw.items() if name not in SECRETS})


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
