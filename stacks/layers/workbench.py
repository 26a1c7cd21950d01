"""The workbench of OpenShift AI, with the object store that it writes to."""

from collections.abc import Sequence
from typing import Final

import pulumi

from components import catalogue
from components.artifacts import Mirror
from components.catalogue import Image
from components.kubernetes.cluster import Cluster
from components.passwords import password
from components.workbench.notebook import NotebookArgs
from components.workbench.object_store import ObjectStore, ObjectStoreArgs, StoreKind
from components.workbench.queue import QueueArgs
from components.workbench.ray_cluster import DEMOS, RayClusterArgs
from components.workbench.ray_job import RayJobsArgs
from components.workbench.workbench import Connection, Workbench, WorkbenchArgs
from components.workloads.interface import user_of
from stacks.settings.workbench import Store, WorkbenchSettings

_GUIDES: Final = ("rootuser", "rootuser123")
"""Known to everybody who reads hobbyist-guide-to-rhoai."""
_IMAGES: Final = {StoreKind.SEAWEEDFS: catalogue.SEAWEEDFS, StoreKind.MINIO: catalogue.MINIO}


def install(
    settings: WorkbenchSettings,
    cluster: Cluster,
    mirror: Mirror,
    *,
    flavor: pulumi.Input[str] | None,
    secret_key: pulumi.Input[str] | None = None,
    protect: bool = True,
    needs: Sequence[pulumi.Resource] = (),
) -> Workbench | None:
    """Register the workbench where it is switched on.

    flavor: of the platform's queues, None without queues. secret_key: of an external store, which has been asked
    for by then. protect: its volumes. needs: what defines Ray clusters, and the webhooks of Kueue.
    """
    if not settings.enabled:
        return None
    connection, store = _connection(settings, cluster, mirror, secret_key, protect=protect)
    queue = settings.queue
    jobs = _ray(settings.ray_jobs, catalogue.RAY_TRAIN, settings, cluster, mirror)
    args = WorkbenchArgs(
        namespace=settings.namespace,
        notebook=NotebookArgs(
            image=settings.notebook_image,
            version=settings.version,
            size=settings.size,
            storage=str(settings.storage),
            storage_class=settings.storage_class or cluster.storage.block,
            demos=catalogue.DEMOS if settings.demos else None,
            user=settings.user,
            nodes=cluster.placement.system,
            trusts=settings.object_store.certified,
        ),
        connection=connection,
        queue=QueueArgs(
            namespace=settings.namespace,
            amounts={name: str(amount) for name, amount in queue.amounts().items()},
            flavor=flavor,
            tolerations=cluster.placement.gpus.tolerations,
            open_to_all=queue.open_to_all,
            kueue_api=cluster.kueue_api,
        ),
        ray=_ray(settings.ray_clusters, catalogue.RAY, settings, cluster, mirror),
        ray_jobs=RayJobsArgs(clusters=jobs, packages=catalogue.DEMO_PACKAGES) if jobs is not None else None,
        edit_for_group=settings.edit_for_group,
        protect=protect,
    )
    return Workbench(settings.name, args, cluster.options(*needs, *([store] if store is not None else [])))


def _ray(
    names: Sequence[str], image: Image, settings: WorkbenchSettings, cluster: Cluster, mirror: Mirror
) -> RayClusterArgs | None:
    if not names:
        return None
    return RayClusterArgs(
        demos=[DEMOS[name] for name in names],
        image=mirror.image(image.reference),
        version=image.tag.partition("-")[0],
        gpu_resource=cluster.gpu_resource,
        user=user_of(cluster.pod_security),
        trusts=settings.object_store.certified,
    )


def _connection(
    settings: WorkbenchSettings,
    cluster: Cluster,
    mirror: Mirror,
    secret_key: pulumi.Input[str] | None,
    *,
    protect: bool,
) -> tuple[Connection, ObjectStore | None]:
    """Return how the notebook reaches its store, and the store where the stack runs it.

    Raises ValueError for an external store without a secret key.
    """
    own = settings.object_store
    if own.kind is Store.EXTERNAL:
        if secret_key is None:
            raise ValueError("an external store needs its secret key")
        connection = Connection(
            name=settings.connection,
            access_key=own.access_key or "",
            secret_key=pulumi.Output.secret(secret_key),
            endpoint=own.endpoint or "",
            region=own.region,
            bucket=own.bucket,
        )
        return connection, None
    kind = StoreKind(own.kind.value)
    access, secret = _credentials(settings)
    args = ObjectStoreArgs(
        kind=kind,
        image=mirror.image(_IMAGES[kind].reference),
        access_key=access,
        secret_key=secret,
        storage=str(own.size),
        storage_class=own.storage_class or cluster.storage.block,
        clients=settings.namespace,
        nodes=cluster.placement.system,
        user=user_of(cluster.pod_security),
        tls=own.tls,
        protect=protect,
    )
    store = ObjectStore(f"{settings.name}-store", args, cluster.options())
    connection = Connection(
        name=settings.connection, access_key=access, secret_key=secret, endpoint=store.endpoint, bucket=own.bucket
    )
    return connection, store


def _credentials(settings: WorkbenchSettings) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
    """Return the store's access key and secret key, made up unless the guide's are asked for."""
    given = _GUIDES if settings.object_store.guide_credentials else (None, None)
    access, secret = settings.passwords
    return password(access, given[0]), password(secret, given[1])
