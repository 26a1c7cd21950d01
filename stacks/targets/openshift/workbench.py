"""Rules of the OpenShift AI workbench for other settings."""

from collections.abc import Iterator, Mapping
from typing import Final

from components import catalogue, names
from components.compatibility import numbers
from components.kubernetes.quantity import ZERO
from components.nodes import certified_gpu_operator
from components.storage import nfs
from components.tenancy.quota import Quota
from components.workbench.object_store import StoreKind
from stacks.config.errors import MISSING, ConfigError, key, listed
from stacks.config.secrets import OBJECT_STORE_SECRET_KEY
from stacks.config.sections import Sections
from stacks.derived.partial import PartialSettings
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.workbench import Store, WorkbenchSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.targets.openshift import operators
from stacks.targets.openshift.settings import Operators, OperatorsSettings
from stacks.targets.spec import Planned
from stacks.validation.names import not_reserved

SECTION: Final = "workbench"


def enabled(sections: Sections) -> WorkbenchSettings | None:
    """Return the section where the workbench is to be."""
    settings = sections.section(WorkbenchSettings)
    return settings if settings is not None and settings.enabled else None


def namespaces(sections: Sections) -> list[str]:
    """Return the namespaces of the object stores that the workbench may have."""
    return [kind.value for kind in StoreKind] if enabled(sections) is not None else []


def quotas(sections: Sections) -> Mapping[str, Quota]:
    """Return what the workbench's queue takes of the nodes, as no other queue borrows it."""
    settings = enabled(sections)
    return {} if settings is None else {SECTION: {**dict.fromkeys(names.RESOURCES, ZERO), **settings.queue.amounts()}}


def planned(sections: Sections) -> Iterator[Planned]:
    """Yield what is named after the workbench and is not in its own namespaces."""
    settings = enabled(sections)
    if settings is None:
        return
    store = settings.object_store
    if store.kind is not Store.EXTERNAL and not store.guide_credentials:
        for name in settings.passwords:
            yield Planned("RandomPassword", "", name, (SECTION, "name"))


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield what the workbench lacks."""
    settings = enabled(partial)
    if settings is None:
        return
    yield from _operators(partial)
    yield from _registry(partial)
    yield from _version(partial, settings)
    yield from _secret(partial, settings)
    yield from _namespace(partial, settings)


def _operators(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield the error of a workbench without OpenShift AI, which runs the notebook, Kueue and KubeRay."""
    settings = partial.section(OperatorsSettings)
    if settings is None:
        return
    if operators.is_version_3(partial):
        yield ConfigError(
            (SECTION, "enabled"),
            "the workbench is that of a guide to OpenShift AI 2: its demos submit AppWrappers with the CodeFlare SDK",
            f"remove the key, or set {key((operators.SECTION, 'version'))} to {catalogue.OPENSHIFT_AI[0].version}",
        )
    if settings.operators is Operators.OPENSHIFT_AI:
        return
    way = ("openshift", "operators")
    yield ConfigError(
        (SECTION, "enabled"),
        "the workbench needs OpenShift AI, and the stack installs the platform's own operators "
        f"({key(way)}: {Operators.PLAIN})",
        f"set {key(way)} to {Operators.OPENSHIFT_AI}",
    )


def _registry(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield the error of a notebook without the cluster's registry, which has OpenShift AI's images."""
    if partial.facts is not None and not partial.facts.has_registry:
        yield ConfigError(
            (SECTION, "enabled"),
            "the images of notebooks are in OpenShift's own registry, which is Removed on this cluster, as on "
            "bare metal without storage",
            "give the registry storage, and set managementState of configs.imageregistry.operator.openshift.io "
            "cluster to Managed",
        )


def _version(partial: PartialSettings, settings: WorkbenchSettings) -> Iterator[ConfigError]:
    """Yield a version of the image that came with a later OpenShift AI."""
    release, version = operators.chosen(partial), settings.notebook_version
    if release is None or version is None or numbers(version.since) <= numbers(release.version):
        return
    older = [each.name for each in settings.notebook_image.versions if numbers(each.since) <= numbers(release.version)]
    yield ConfigError(
        (SECTION, "version"),
        f"{settings.image} has this version from OpenShift AI {version.since} on, and the stack installs "
        f"{release.version}",
        f"use {older[0]}, or a later {key((operators.SECTION, 'version'))}",
        expected=listed(older),
    )


def _secret(partial: PartialSettings, settings: WorkbenchSettings) -> Iterator[ConfigError]:
    """Yield the error of an external store without its secret key, or of an unused secret key."""
    external, given = settings.object_store.kind is Store.EXTERNAL, OBJECT_STORE_SECRET_KEY in partial.secrets
    if external and not given:
        yield ConfigError(
            (SECTION, "objectStore", "kind"),
            "the external store's secret key is missing",
            f"run `pulumi config set --secret {key((OBJECT_STORE_SECRET_KEY,))}`, which asks for the value",
        )
    if given and not external:
        yield ConfigError(
            (OBJECT_STORE_SECRET_KEY,),
            f"the stack runs the store, {settings.object_store.kind}, and creates its keys itself",
            f"run `pulumi config rm {key((OBJECT_STORE_SECRET_KEY,))}`",
            value=MISSING,
        )


def _namespace(partial: PartialSettings, settings: WorkbenchSettings) -> Iterator[ConfigError]:
    """Yield the error of a project in a namespace that is taken."""
    monitoring, workloads = partial.section(MonitoringSettings), partial.section(WorkloadsSettings)
    others = [section.namespace for section in (monitoring, workloads) if section is not None]
    yield from not_reserved(
        partial,
        (SECTION, "namespace"),
        settings.namespace,
        message="this namespace is a team's, or belongs to the cluster or to another layer of the platform",
        hint="use another namespace for the workbench",
        own={*others, *(team.name for team in partial.known_teams), nfs.NAMESPACE, certified_gpu_operator.NAMESPACE},
    )
