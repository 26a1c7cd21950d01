"""The checked configuration of the running stack, and the files and clusters that it names.

Only this module reads the configuration from the engine. Programs without the engine pass what `stack_file.py` reads.
All configuration errors are reported together, before any resource is registered. That includes errors in the mirror's
files, the kubeconfig and its cluster. A preview also needs a cluster that answers.
"""

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
from stacks.config import cluster_facts, exposure, load_trace, parsing, placeholders, secrets
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
"""Lowest similarity to the project's name, from 0 to 1, that makes a namespace count as misspelled."""


@dataclass(frozen=True, kw_only=True)
class NamedCluster:
    """The cluster that a kubeconfig names. kubeconfig: its context only. facts: what the cluster reports."""

    kubeconfig: Kubeconfig
    facts: ClusterFacts


Ask = Callable[[Kubeconfig, Sequence[Mapping[str, str]]], ClusterFacts]
"""Reads facts about a cluster and the nodes with these labels. Raises KubeconfigError without an answer."""


@dataclass(frozen=True, kw_only=True)
class StackInputs(Generic[S]):
    """What a deployment starts from.

    settings: checked. resolved: the values derived from them.
    named_cluster: the cluster to install on. None if the target creates one.
    site: facts about the cloud, in a type that the target defines.
    unanswered: why the cloud did not answer. None if it did or was not asked.
    load: the jobs of the synthetic load. secrets: those that are set, by key.
    warnings: allowed settings that are untested or that give up a promise.
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
        """Return the cluster to install on. Raises LookupError if the target creates its own."""
        if self.named_cluster is None:
            raise LookupError(f"target {self.target.name} makes its own cluster")
        return self.named_cluster


def load() -> StackInputs[Any]:
    """Return the running stack's inputs. Raises pulumi.RunError, which prints its message without a traceback."""
    raw = configuration()
    unreplaced = list(placeholders.unreplaced(raw))
    try:
        inputs = interpret(raw, base=Path.cwd(), environment=os.environ)
        if unreplaced:
            raise SettingsError(unreplaced)
    except SettingsError as error:
        said = {problem.path for problem in error.problems}
        others = [problem for problem in unreplaced if problem.path not in said]
        raise pulumi.RunError(str(SettingsError([*error.problems, *others]))) from None
    if inputs.unanswered is not None:
        if not pulumi.runtime.is_dry_run():
            raise pulumi.RunError(str(SettingsError([inputs.unanswered])))
        pulumi.log.warn(f"This preview skips a check that an update requires: {inputs.unanswered}")
    for warning in inputs.warnings:
        pulumi.log.warn(warning)
    config = pulumi.Config(NAMESPACE)
    given = {name: config.get_secret(name) for name in SECRET_KEYS}
    return replace(inputs, secrets={name: value for name, value in given.items() if value is not None})


def configuration() -> dict[str, object]:
    """Return every key of the project's namespace in the running stack's configuration, without the namespace.

    Keys whose namespace is similar to the project's are returned as written and rejected later. The engine passes lists
    and mappings as JSON. Values of secrets are hidden, because messages show values.
    """
    config = pulumi.Config(NAMESPACE)
    keys = sorted({**get_config_env(), **CONFIG.get()})
    raw: dict[str, object] = {full: secrets.Concealed.SECRET for full in keys if _is_misspelt(full)}
    for name in (full.removeprefix(f"{NAMESPACE}:") for full in keys if full.startswith(f"{NAMESPACE}:")):
        value = config.get(name)
        if pulumi.runtime.is_config_secret(f"{NAMESPACE}:{name}"):
            raw[name] = secrets.concealed(name, value)
        else:
            raw[name] = _value(value)
    return raw


def _is_misspelt(full: str) -> bool:
    """Whether a key's namespace is similar to the project's name, but not equal."""
    namespace = full.partition(":")[0]
    return namespace != NAMESPACE and bool(get_close_matches(namespace.lower(), [NAMESPACE], cutoff=_NEARLY))


def ask(kubeconfig: Kubeconfig, nodes: Sequence[Mapping[str, str]]) -> ClusterFacts:
    """Return facts about a cluster after a quick check that it answers. Raises KubeconfigError."""
    kubeconfigs.check_answers(kubeconfig)
    return cluster_facts.ask(kubeconfig, nodes)


def interpret(
    raw: Mapping[str, object], *, base: Path, environment: Mapping[str, str], ask: Ask = ask
) -> StackInputs[Any]:
    """Return a stack's inputs from its configuration.

    base: the folder that relative paths count from. environment: for $KUBECONFIG and a cloud's credentials.
    Raises SettingsError with all problems.
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
            facts = ask(kubeconfig, selectors)
            cluster_facts.require_identity(kubeconfig, kubernetes, facts)
            partial.facts, named_cluster = facts, NamedCluster(kubeconfig=kubeconfig, facts=facts)
        except KubeconfigError as error:
            errors.append(rules.as_written(partial, error.problem))
    unanswered = None
    if partial.target is not None:
        try:
            partial.site = partial.target.ask(partial, environment)
        except UnansweredError as error:
            unanswered = error.problem
    errors += rules.check(partial)
    mirrors = partial.section(MirrorSettings)
    jobs, wrong = load_trace.read(partial, base)
    if mirrors is not None:
        wrong = [*_mirror(mirrors, partial, base), *wrong]
    errors += [rules.as_written(partial, error) for error in wrong]
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
            "an attacker on the network could change the files",
            "serve the mirror with https, or copy it to a folder",
        )
    elif has_user:
        wrong = "the address contains a user or a password, which every reader of the configuration can see"
        hint = "remove it, revoke it where it was issued, and copy the files to a folder"
    elif not is_good:
        wrong, hint = "this is not an address", "write https://, a host and a path"
    elif "?" in address or "#" in address:
        wrong = "file names are appended to the address, which does not work after ? or #"
        hint = "remove ? or # and what follows; if the server needs a token, copy the files to a folder"
    else:
        return
    yield ConfigError(
        path,
        wrong,
        hint,
        expected="a folder, or an address that starts with https:// and ends with a path, without user and password",
    )


def _mirror(settings: MirrorSettings, partial: PartialSettings, base: Path) -> Iterator[ConfigError]:
    if settings.images is not None and not images.PREFIX.fullmatch(settings.images.rstrip("/")):
        yield ConfigError(
            ("mirror", "images"),
            f"this is not a prefix of image names; {images.wrong(settings.images)}",
            "remove the scheme, the password and the tag",
            expected="a registry's host and a path on it in lower case, such as registry.example.org/mirror",
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
            path,
            wrong or "this is not a folder",
            "create and fill the folder, name another one, or remove the key",
            expected="a folder with the catalogue's files, an https address, or no key to download from upstream",
        )
        return
    queueing, scheduling = partial.section(QueueingSettings), partial.section(SchedulingSettings)
    if queueing is None or scheduling is None:
        return
    others = [partial.section(MonitoringSettings), partial.section(MlopsSettings)]
    installs = partial.target is None or partial.target.installs_operators(partial)
    wanted = [
        *(queueing.artifacts(kueue=partial.running_kueue is None) if installs else ()),
        *scheduling.artifacts(partial.scheduler_version),
    ]
    wanted += [artifact for section in others if section is not None for artifact in section.artifacts()]
    for artifact in wanted:
        if not (folder / artifact.file).is_file():
            yield ConfigError(
                path, f"the folder {folder} lacks {artifact.file}", f"put {artifact.url} there under that name"
            )
