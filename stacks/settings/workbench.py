"""The workbench of OpenShift AI."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from components import catalogue, names
from components.catalogue import NotebookImage, NotebookVersion
from components.kubernetes.quantity import Quantity
from components.workbench.notebook import SIZES
from components.workbench.ray_cluster import DEMOS
from components.workbench.ray_job import PROGRAMS
from stacks.config.errors import ConfigError, Path, instead, key, listed
from stacks.settings.model import SettingsModel, SomeBytes, SomeCores, choice, form
from stacks.settings.names import LABEL_LENGTH, ClassName, is_host, label_error, service_error

_IMAGES: Final[Mapping[str, NotebookImage]] = {image.name: image for image in catalogue.NOTEBOOK_IMAGES}
_MOST_GPUS: Final = 1024
_LONGEST_NAME: Final = 52
"""Of a StatefulSet, whose pods are labelled with its name and ten characters more (kubernetes/kubernetes 64023)."""
_BUCKET: Final = r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_BUCKETS: Final = "3 to 63 of a-z, 0-9, - and ., with a letter or digit first and last (Amazon S3, bucket naming rules)"
_WORD: Final = r"[!-~]+"
_WORDS: Final = "letters, digits and signs without spaces"
Word: TypeAlias = Annotated[
    str, form(_WORD, _WORDS, "an object store would reject this", "copy it from the store's console")
]
DEFAULT_IMAGE: Final = "Standard Data Science"
DEFAULT_VERSION: Final = "2024.1"


class Store(StrEnum):
    """Where checkpoints go.

    seaweedfs: a store that the stack runs. minio: that of the guide, from a maintained fork. external: an existing one.
    """

    SEAWEEDFS = "seaweedfs"
    MINIO = "minio"
    EXTERNAL = "external"


_OF_OWN: Final = ("size", "storage_class", "tls")


class ObjectStoreSettings(SettingsModel):
    """S3 object store for checkpoints of distributed workloads."""

    kind: Store = Store.SEAWEEDFS
    """`seaweedfs`: a store that the stack runs. `minio`: the store of the guide, from Silo, a maintained fork, because
    MinIO's project has ended. `external`: an existing store. Its secret key is the secret
    mlbatch:objectStoreSecretKey.
    """
    endpoint: str | None = None
    """URL of an external store, such as https://s3.example.org."""
    access_key: Word | None = None
    """Access key of an external store. It is a user name, not a secret."""
    region: Word | None = None
    """Region of an external store."""
    bucket: (
        Annotated[
            str,
            form(_BUCKET, _BUCKETS, "this name is invalid for a bucket", "for example demo-checkpoints"),
        ]
        | None
    ) = None
    """Bucket in the notebook's environment."""
    size: SomeBytes = Quantity.parse("50Gi")
    """Volume size of a store that the stack runs, in bytes."""
    storage_class: ClassName | None = None
    """StorageClass of that volume. Default: the cluster's class for volumes of one pod."""
    tls: bool = True
    """Use TLS for a store that the stack runs, with a certificate of OpenShift's CA for Services. The notebook and the
    stack's Ray clusters trust it. If false, as in the guide, checkpoints are sent unencrypted.
    """
    guide_credentials: bool = False
    """Use the guide's well-known `rootuser` and `rootuser123` for MinIO, instead of generated credentials."""

    @property
    def certified(self) -> bool:
        """Whether the cluster's own CA signs the store's certificate."""
        return self.tls and self.kind is not Store.EXTERNAL

    def check(self, path: Path) -> Iterator[ConfigError]:
        external = self.kind is Store.EXTERNAL
        for name, value in (("endpoint", self.endpoint), ("accessKey", self.access_key), ("region", self.region)):
            if value is not None and not external:
                yield ConfigError(
                    (*path, name),
                    f"the stack runs the store, {self.kind}, and sets this itself",
                    f"remove the key, or set {key((*path, 'kind'))} to external",
                )
        for name, value in (("endpoint", self.endpoint), ("accessKey", self.access_key)):
            if value is None and external:
                yield ConfigError(
                    (*path, name),
                    "an external store needs this key",
                    f"set it, or {key((*path, 'kind'))} to {Store.SEAWEEDFS}",
                )
        if external:
            wrong = "this key is for a store that the stack runs, and the store is external"
            yield from self.unused(path, _OF_OWN, wrong, "remove the key")
        if external and self.endpoint is not None:
            yield from _address((*path, "endpoint"), self.endpoint)
        if self.guide_credentials and self.kind is not Store.MINIO:
            yield ConfigError(
                (*path, "guideCredentials"),
                f"the guide's credentials are for MinIO, and the store is {self.kind}",
                "remove the key; the stack then generates credentials and has them as a secret output",
            )


class QueueSettings(SettingsModel):
    """Quota of all Ray clusters of the workbench together. Default: the guide's."""

    cpu: SomeCores = Quantity.parse(9)
    """CPU cores."""
    memory: SomeBytes = Quantity.parse("36Gi")
    """Memory in bytes."""
    gpus: Annotated[int, Field(ge=0, le=_MOST_GPUS)] = 5
    """GPUs."""
    open_to_all: bool = False
    """Let all namespaces use the queue, as in the guide. If false, only the workbench's namespace can."""

    def amounts(self) -> Mapping[str, Quantity]:
        return {names.CPU: self.cpu, names.MEMORY: self.memory, names.GPU: Quantity.parse(self.gpus)}


class WorkbenchSettings(SettingsModel):
    """A workbench of OpenShift AI: a notebook, an object store and a queue for Ray clusters."""

    enabled: bool = False
    """Create it."""
    name: str = "demo-workbench"
    """Name of the notebook and of its objects."""
    namespace: str = "sandbox"
    """Namespace of the project."""
    image: Annotated[str, choice("notebook image", tuple(_IMAGES))] = DEFAULT_IMAGE
    """Image, by its name in the dashboard."""
    version: str = DEFAULT_VERSION
    """Version of the image."""
    size: Annotated[str, choice("container size", tuple(SIZES))] = "Small"
    """Container size, by its name in the dashboard. Ray clusters have their own."""
    storage: SomeBytes = Quantity.parse("20Gi")
    """Volume size for the notebook's files, in bytes."""
    storage_class: ClassName | None = None
    """StorageClass of that volume. Default: the cluster's class for volumes of one pod."""
    user: str | None = None
    """Owner of the notebook in the dashboard."""
    demos: bool = True
    """Clone the guide's demos into the notebook's files, at a pinned commit."""
    edit_for_group: bool = False
    """Let every account of the project edit everything in it, including Secrets, as in the guide. If false, only the
    notebook's account can create Ray clusters.
    """
    connection: str = "minio"
    """Name of the data connection in the dashboard."""
    object_store: ObjectStoreSettings = ObjectStoreSettings()
    queue: QueueSettings = QueueSettings()
    ray_clusters: tuple[Annotated[str, choice("Ray cluster of the demos", tuple(DEMOS))], ...] = ()
    """Ray clusters of the demos that run from the start. The notebooks create all others."""
    ray_jobs: tuple[Annotated[str, choice("demo that runs as a job", tuple(PROGRAMS))], ...] = ()
    """Demos that run as jobs, each on its own Ray cluster, which is deleted when the job ends. `jobtest`: training on
    images. `interactivetest`: training on texts. `tunecluster`: tuning of XGBoost. The last two write checkpoints or
    trials to the object store. If the queue has room for only one, they run one after the other.
    """

    @property
    def passwords(self) -> tuple[str, str]:
        """The names of the access key and the secret key that are made up for a store that the stack runs."""
        return f"{self.name}-access-key", f"{self.name}-secret-key"

    @property
    def notebook_image(self) -> NotebookImage:
        return _IMAGES[self.image]

    @property
    def notebook_version(self) -> NotebookVersion | None:
        """The catalogue's entry for the image's version, or None if the version is unknown."""
        return next((each for each in self.notebook_image.versions if each.name == self.version), None)

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.enabled:
            return
        yield from service_error((*path, "name"), self.name, _LONGEST_NAME)
        for name, value in (("namespace", self.namespace), ("connection", self.connection)):
            yield from label_error((*path, name), value)
        if len(f"{self.name}-{self.namespace}") > LABEL_LENGTH:
            yield ConfigError(
                (*path, "name"),
                f"the notebook's address would start with {self.name}-{self.namespace}, which is too long for "
                "a host name",
                f"shorten the name or the namespace: they can have {LABEL_LENGTH - 1} characters together",
            )
        versions = [each.name for each in self.notebook_image.versions]
        if self.notebook_version is None:
            yield ConfigError(
                (*path, "version"),
                f"{self.image} does not have this version",
                instead(self.version, versions, f"use {versions[0]}"),
                expected=listed(versions),
            )
        elif self.ray_clusters and self.notebook_version.python != catalogue.RAY_PYTHON:
            yield self._shut_out(path, self.notebook_version.python)
        yield from self._unfitting(path)
        if self.namespace == self.object_store.kind.value:
            yield ConfigError((*path, "namespace"), "the object store uses this namespace", "name another one")

    def _shut_out(self, path: Path, python: str) -> ConfigError:
        """Return the error of a notebook whose Python version does not match the Ray clusters."""
        fitting = [each.name for each in self.notebook_image.versions if each.python == catalogue.RAY_PYTHON]
        return ConfigError(
            (*path, "rayClusters"),
            f"a notebook of version {self.version} has Python {python}, but these Ray clusters have "
            f"{catalogue.RAY_PYTHON}, and Ray rejects clients with another Python",
            "remove the key; the notebook creates its own clusters",
            expected=f"none, or {key((*path, 'version'))}: {listed(fitting)}",
        )

    def _unfitting(self, path: Path) -> Iterator[ConfigError]:
        """Yield the error of the first Ray cluster that does not fit into the queue with those before it.

        A job may wait for another job, which ends, but not for a cluster, which does not end.
        """
        left = dict(self.queue.amounts())
        for field, demos in (("rayClusters", self.ray_clusters), ("rayJobs", self.ray_jobs)):
            for position, name in enumerate(demos):
                where = (*path, field, position)
                if name in demos[:position]:
                    yield ConfigError(where, "duplicate entry", "remove the entry")
                    return
                if found := self._waiting(where, name, left):
                    yield found
                    return
                if field == "rayClusters":
                    left |= {resource: left[resource] - amount for resource, amount in DEMOS[name].requests().items()}

    def _waiting(self, path: Path, name: str, left: Mapping[str, Quantity]) -> ConfigError | None:
        """Return the first resource that a demo would wait for. left: what the queue has for it."""
        whole = self.queue.amounts()
        for resource, amount in DEMOS[name].requests().items():
            if left[resource] < amount:
                return ConfigError(
                    path,
                    f"it requests {amount} {resource}, but the queue has {left[resource]} of "
                    f"{whole[resource]} left: it would stay pending",
                    f"remove it, or raise {key((*path[:-2], 'queue'))}",
                )
        return None


def _address(path: Path, address: str) -> Iterator[ConfigError]:
    """Yield errors of a store's address, which is used with credentials."""
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and is_host(parts.hostname or "") and parts.port != 0
        is_good = is_good and parts.path in ("", "/") and not parts.query and not parts.fragment
        has_password = parts.password is not None or parts.username is not None
    except ValueError:
        is_good, has_password = False, False
    if has_password:
        wrong, hint = "the address shows credentials to every reader", "remove and revoke them"
    elif not is_good:
        wrong, hint = "this is not an address of a store", "write only https://, a host and, if needed, a port"
    else:
        return
    yield ConfigError(path, wrong, hint, expected="an address such as https://s3.example.org")
