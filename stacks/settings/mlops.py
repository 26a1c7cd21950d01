"""The OSS MLOps platform."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, TypeAlias

from components import catalogue
from components.catalogue import Artifact, Repository
from components.mlops import menu
from components.mlops.menu import Deployment
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel, form

_COPY: Final = "The next error shows the digest of the commit's files. Check the files, then copy that digest"

Url: TypeAlias = Annotated[
    str,
    form(
        r"https://github\.com/[A-Za-z0-9-]+/[A-Za-z0-9_-]+",
        "https://github.com/, an owner and a name of letters, digits, _ and -, without .git and / at the end",
        "this is not an address of a GitHub repository",
        f"remove the key; the default is {catalogue.MLOPS.url}",
    ),
]
Commit: TypeAlias = Annotated[
    str,
    form(
        r"[0-9a-f]{40}",
        "40 of 0-9 and a-f",
        "this is not a commit; branches and tags can move",
        "use the output of `git rev-parse` in the repository",
    ),
]
Content: TypeAlias = Annotated[
    str,
    form(
        r"h1:[A-Za-z0-9+/]{43}=",
        "h1: and 44 characters of Base64",
        "this is not a digest of files",
        f"set it to {catalogue.MLOPS.content}. {_COPY}",
    ),
]


class MlopsSettings(SettingsModel):
    """The OSS MLOps platform: pipelines, model serving and experiment tracking, for one team on its own cluster.

    The keys are the questions of its setup script. For a GPU, use `gpu` and `nvshare`. For Ray, use `queueing.kuberay`.
    """

    enabled: bool = False
    """Install it."""
    integration: bool = True
    """Use the deployment menu for integration with HPC systems (`Setup integration`)."""
    option: int = 4
    """Number in that menu. With integration: 1 Kubeflow, 2 reduced Kubeflow, 3 pipelines, 4 pipelines and KServe, all
    with monitoring. Without: 1 and 2 Kubeflow, 3 and 4 pipelines, 5 and 6 pipelines and KServe. Of these pairs, the
    first has monitoring.
    """
    forwarder: bool = False
    """Install the job forwarder to HPC systems, from the menu for integration. Its account has all rights on the
    cluster, its images belong to one person, and its queue has no password.
    """
    local_registry: bool = False
    """Announce the registry at 127.0.0.1:5001 next to a kind cluster to tools (`Install local Docker registry`)."""
    upstream_access: bool = False
    """Keep upstream's access: published passwords, none for MySQL, MLflow and the metrics of its object store, a
    gateway to MLflow, and connections from all pods. If false, the stack generates passwords, and MLflow needs
    port-forwarding. Only the platform's namespaces and those labelled `app.kubernetes.io/part-of: kubeflow-profile` can
    connect to MLflow, pipelines and monitoring.
    """
    repository: Url = catalogue.MLOPS.url
    """Source repository."""
    revision: Commit = catalogue.MLOPS.commit
    """Commit of the repository. With the default commit, the stack installs the pipelines of Kubeflow 1.10.2, because
    the original images are no longer available. Another commit keeps its own.
    """
    digest: Content | None = None
    """Digest of the folder `deployment` in the format of Go modules. Required with another revision."""

    @property
    def deployment(self) -> Deployment:
        """The entry of the menu; raises KeyError for one that there is not."""
        return menu.find(integration=self.integration, option=self.option)

    @property
    def source(self) -> Repository:
        """The repository at its commit, with the digest that its files must have."""
        pinned = catalogue.MLOPS
        is_pinned = self.revision == pinned.commit
        return Repository(
            name=self.repository.rpartition("/")[2],
            url=self.repository,
            commit=self.revision,
            content=self.digest or (pinned.content if is_pinned else ""),
            source=pinned.source,
        )

    @property
    def pipelines(self) -> Sequence[Repository]:
        """The source of the default commit's pipelines, or none for another commit, which includes them."""
        return [catalogue.PIPELINES] if self.revision == catalogue.MLOPS.commit else []

    def artifacts(self) -> Sequence[Artifact]:
        repositories = [self.source, *self.pipelines]
        return [repository.archive for repository in repositories] if self.enabled else []

    def check(self, path: Path) -> Iterator[ConfigError]:
        known = menu.entries(integration=self.integration)
        if self.option not in [entry.option for entry in known]:
            yield ConfigError(
                (*path, "option"),
                f"the menu {'with' if self.integration else 'without'} integration does not have this number",
                f"use one of these, or set {key((*path, 'integration'))} to {str(not self.integration).lower()} "
                "for the other menu",
                expected=", ".join(f"{entry.option} ({entry.overlay})" for entry in known),
            )
        if self.forwarder and not self.integration:
            yield ConfigError(
                (*path, "forwarder"), "only the deployments for integration have the forwarder", "remove the key"
            )
        if not self.source.content:
            yield ConfigError(
                (*path, "digest"),
                "this commit needs the digest of its files",
                f"set it to the example. {_COPY}",
                expected="the digest of the files in its folder deployment, such as " + catalogue.MLOPS.content,
            )
