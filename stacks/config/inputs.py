"""What a deployment starts from: the running stack's configuration, checked, and what it names outside of itself.

The only module that asks the engine for the configuration; what is run without it hands over what `stack_file.py`
reads. All mistakes are reported together, before any resource is registered: in the values, between them, and in what
they name (the mirror's files, the kubeconfig, the cluster behind it). A preview, too, needs the cluster to answer: a
preview against a cluster that nobody can reach would be a guess.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from components.artifacts import Mirror
from components.workloads.synthetic import SyntheticJob
from stacks.config import cluster_facts, exposure, load_trace, parsing, secrets
from stacks.config import kubeconfig as kubeconfigs
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import NAMESPACE, ConfigError, SettingsError, cut
from stacks.config.errors import Path as KeyPath
from stacks.config.kubeconfig import Kubeconfig, KubeconfigError
from stacks.derived.partial import PartialSettings
from stacks.derived.resolution import Resolved, resolve
from stacks.settings import PlatformSettings, images
from stacks.settings.kubernetes import KubernetesSettings
from stacks.settings.mirror import MirrorSettings, resolve_path
from stacks.settings.mlops import MlopsSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.scheduling import SchedulingSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.targets.registry import SECRET_KEYS
from stacks.targets.spec import TargetSpec, UnansweredError
from stacks.validation import rules

S = TypeVar("S", bound=PlatformSettings)
_NEARLY: Final = 0.8
"""How like the project's name a namespace is, of 1, that is most likely meant for it."""


@dataclass(frozen=True, kw_only=True)
class NamedCluster:
    """The cluster that a kubeconfig names. kubeconfig: of it alone. facts: what it says of itself."""

    kubeconfig: Kubeconfig
    facts: ClusterFacts


Ask = Callable[[Kubeconfig, KubernetesSettings, Sequence[Mapping[str, str]]], ClusterFacts]
"""Asks a cluster about itself, and about the nodes with these labels; raises KubeconfigError without an answer."""


@dataclass(frozen=True, kw_only=True)
class StackInputs(Generic[S]):
    """What a deployment starts from.

    settings: checked. resolved: what follows from them. named_cluster: to install on, None where the target makes one.
    site: what the cloud says in which the target makes its own, in the target's words. unanswered: why it says nothing,
        though it was asked, None where it was not or did.
    load: the jobs of the synthetic load. secrets: those that are set, by key. warnings: what is allowed, and nobody
        knows to work or gives a promise up.
    """

    target: TargetSpec[S]
    settings: S
    resolved: Resolved
    mirror: Mirror
    named_cluster: NamedCluster | None = None
    site: object = None
    unanswered: ConfigError | None = None
    load: Sequence[SyntheticJob] = ()
    secrets: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def require_cluster(self) -> NamedCluster:
        """Return the cluster to install on; raises LookupError on a target that makes its own."""
        if self.named_cluster is None:
            raise LookupError(f"target {self.target.name} makes its own cluster")
        return self.named_cluster


def load() -> StackInputs[Any]:
    """Return the running stack's inputs; raises pulumi.RunError, which ends the program with its message alone."""
    try:
        inputs = interpret(configuration(), base=Path.cwd(), environment=os.environ)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    if inputs.unanswered is not None:
        if not pulumi.runtime.is_dry_run():
            raise pulumi.RunError(str(SettingsError([inputs.unanswered])))
        pulumi.log.warn(f"Not checked in this preview, and refused in an update: {inputs.unanswered}")
    for warning in inputs.warnings:
        pulumi.log.warn(warning)
    config = pulumi.Config(NAMESPACE)
    given = {name: config.get_secret(name) for name in SECRET_KEYS}
    return replace(inputs, secrets={name: value for name, value in given.items() if value is not None})


def configuration() -> dict[str, object]:
    """Return every key of the project's namespace in the running stack's configuration, without the namespace.

    Keys whose namespace is nearly the project's are there as they are written, to be refused. The engine hands lists
    and mappings over as JSON. The values of secrets are hidden, because a message that shows a value must not show
    theirs.
    """
    config = pulumi.Config(NAMESPACE)
    keys = sorted({**get_config_env(), **CONFIG.get()})
    raw: dict[str, object] = {full: secrets.HIDDEN for full in keys if _is_misspelt(full)}
    for name in (full.removeprefix(f"{NAMESPACE}:") for full in keys if full.startswith(f"{NAMESPACE}:")):
        value = config.get(name)
        if pulumi.runtime.is_config_secret(f"{NAMESPACE}:{name}"):
            raw[name] = secrets.concealed(name, value)
        else:
            raw[name] = _value(value)
    return raw


def _is_misspelt(full: str) -> bool:
    """Whether a key stands under a namespace that is not the project's, and nearly is."""
    namespace = full.partition(":")[0]
    return namespace != NAMESPACE and bool(get_close_matches(namespace.lower(), [NAMESPACE], cutoff=_NEARLY))


def ask(kubeconfig: Kubeconfig, settings: KubernetesSettings, nodes: Sequence[Mapping[str, str]]) -> ClusterFacts:
    """Ask a cluster about itself, once it is known to answer within bounds; raises KubeconfigError."""
    kubeconfigs.check_answers(kubeconfig, settings)
    return cluster_facts.ask(kubeconfig, settings, nodes)


def interpret(
    raw: Mapping[str, object], *, base: Path, environment: Mapping[str, str], ask: Ask = ask
) -> StackInputs[Any]:
    """Return a stack's inputs from its configuration.

    base: the folder that relative paths count from. environment: for $KUBECONFIG and a cloud's credentials.
    Raises SettingsError with every problem that was found.
    """
    exposed = list(exposure.exposed(raw))
    plain = {name: value for name, value in raw.items() if name not in SECRET_KEYS}
    partial, errors = parsing.read(plain, frozenset(raw).intersection(SECRET_KEYS))
    named_cluster = None
    kubernetes = partial.section(KubernetesSettings)
    if kubernetes is not None and (partial.target is None or partial.target.has_kubeconfig):
        try:
            kubeconfig = kubeconfigs.read(kubernetes, base=base, environment=environment)
            selectors = partial.target.node_selectors(partial) if partial.target is not None else ()
            facts = ask(kubeconfig, kubernetes, selectors)
            cluster_facts.require_identity(kubeconfig, kubernetes, facts)
            partial.facts, named_cluster = facts, NamedCluster(kubeconfig=kubeconfig, facts=facts)
        except KubeconfigError as error:
            errors.append(error.problem)
    unanswered = None
    if partial.target is not None:
        try:
            partial.site = partial.target.ask(partial, environment)
        except UnansweredError as error:
            unanswered = error.problem
    errors += rules.check(partial)
    mirrors = partial.section(MirrorSettings)
    if mirrors is not None:
        errors += _mirror(mirrors, partial, base)
    jobs, wrong = load_trace.read(partial, base)
    errors += wrong
    settings, resolved = parsing.whole(partial), resolve(partial)
    if exposed or errors or partial.target is None or mirrors is None or settings is None or resolved is None:
        said = {error.path for error in exposed}
        raise SettingsError([*exposed, *(error for error in errors if error.path not in said)])
    return StackInputs(
        target=partial.target,
        settings=settings,
        resolved=resolved,
        mirror=mirrors.mirror(base),
        named_cluster=named_cluster,
        site=partial.site,
        unanswered=unanswered,
        load=jobs,
        warnings=(
            *(named_cluster.kubeconfig.warnings() if named_cluster is not None else ()),
            *rules.warnings(partial),
        ),
    )


def _value(text: str | None) -> object:
    if text is None or text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _address(path: KeyPath, address: str) -> Iterator[ConfigError]:
    """Yield what is wrong with the address of a mirror."""
    try:
        parts = urlsplit(address)
        is_good = bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", address)
        has_user = parts.username is not None or (not is_good and "@" in address)
    except ValueError:
        is_good, has_user = False, "@" in address
    if not address.startswith("https://"):
        wrong, hint = (
            "what is fetched this way could be changed on its way",
            "serve the mirror with https, or copy it to a folder",
        )
    elif has_user:
        wrong = "a user or a password stands in the address, where everybody who reads the configuration finds it"
        hint = "remove it, replace it where it was issued, and copy the files to a folder"
    elif not is_good:
        wrong, hint = "this is no address", "write https://, a host, and the path on it"
    elif "?" in address or "#" in address:
        wrong = "the names of files are put behind it, which the server would take for a part of what follows ? or #"
        hint = "write the address up to there; where the server wants a token, copy the files to a folder"
    else:
        return
    yield ConfigError(
        path=path,
        value=address,
        message=wrong,
        expected="a folder, or an address that starts with https:// and ends with a path, without user and password",
        hint=hint,
    )


def _mirror(settings: MirrorSettings, partial: PartialSettings, base: Path) -> Iterator[ConfigError]:
    if settings.images is not None and not images.PREFIX.fullmatch(settings.images.rstrip("/")):
        yield ConfigError(
            path=("mirror", "images"),
            value=settings.images,
            message=f"this is no prefix of an image's name; {images.wrong(settings.images)}",
            expected="a registry's host and a path on it in lower case, such as registry.example.org/mirror",
            hint="write it without a scheme, a password and a tag",
        )
    artifacts = settings.artifacts
    if artifacts is None:
        return
    path = ("mirror", "artifacts")
    if "://" in artifacts:
        yield from _address(path, artifacts)
        return
    try:
        folder = resolve_path(artifacts, base)
        wrong = "" if folder.is_dir() else f"there is no folder {cut(str(folder))}"
    except (OSError, RuntimeError, ValueError) as error:
        folder, wrong = base, f"this cannot be a folder: {getattr(error, 'strerror', None) or error}"
    if wrong or not artifacts.strip():
        yield ConfigError(
            path=path,
            value=artifacts,
            message=wrong or "this names no folder",
            expected="a folder that holds the catalogue's files, or an https address, or nothing for upstream",
            hint="create and fill it, name another one, or remove the key",
        )
        return
    queueing, scheduling = partial.section(QueueingSettings), partial.section(SchedulingSettings)
    if queueing is None or scheduling is None:
        return
    others = [partial.section(MonitoringSettings), partial.section(MlopsSettings)]
    installs = partial.target is None or partial.target.installs_operators(partial)
    wanted = [*(queueing.artifacts() if installs else ()), *scheduling.artifacts(partial.scheduler_version)]
    wanted += [artifact for section in others if section is not None for artifact in section.artifacts()]
    for artifact in wanted:
        if not (folder / artifact.file).is_file():
            yield ConfigError(
                path=path,
                value=artifacts,
                message=f"the folder {folder} lacks {artifact.file}",
                expected=f"a folder that holds {artifact.file}",
                hint=f"put {artifact.url} there under that name",
            )
