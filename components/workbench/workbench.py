"""The workbench: a project with a notebook, its files, its data connection, its rights and its queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.layer import Layer
from components.tenancy.flavor import FlavorArgs, resource_flavor
from components.workbench import access, authority, ray_cluster, ray_job
from components.workbench import queue as queues
from components.workbench.notebook import DASHBOARD, DISPLAY_NAME, NotebookArgs, files_claim, notebook
from components.workbench.queue import QueueArgs
from components.workbench.ray_cluster import RayClusterArgs
from components.workbench.ray_job import RayJobsArgs

CONNECTION: Final = "aws-connection-"
"""Prefix of the dashboard's names for data connections."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A data connection to an object store for the notebook.

    name: in the dashboard.
    region, bucket: None if the notebook's user sets them.
    """

    name: str
    access_key: pulumi.Input[str]
    secret_key: pulumi.Input[str]
    endpoint: str
    region: str | None = None
    bucket: str | None = None

    def variables(self) -> Mapping[str, pulumi.Input[str]]:
        """Return the notebook's environment variables."""
        optional = {"AWS_DEFAULT_REGION": self.region, "AWS_S3_BUCKET": self.bucket}
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_S3_ENDPOINT": self.endpoint,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, kw_only=True)
class WorkbenchArgs:
    """The arguments of the project.

    ray: Ray clusters to create. None if the notebook creates its own.
    protect: the engine refuses to delete or replace the notebook's files.
    edit_for_group: every service account of the project may edit it, as in the guide. Otherwise only the notebook's
    service account may create Ray clusters.
    """

    namespace: str
    notebook: NotebookArgs
    connection: Connection
    queue: QueueArgs
    ray: RayClusterArgs | None = None
    ray_jobs: RayJobsArgs | None = None
    edit_for_group: bool = False
    protect: bool = True


class Workbench(Layer):
    """Create the project, its queue and its notebook. The volume of its files is deleted with it."""

    def __init__(self, name: str, args: WorkbenchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workbench:Workbench", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        project = NamespaceArgs(
            name=args.namespace,
            labels={DASHBOARD: "true"},
            annotations={DISPLAY_NAME: "Sandbox", "openshift.io/description": "Try your ideas here."},
        )
        namespace = Namespace(args.namespace, project, child).name
        secret = Manifest(
            f"{name}/connection",
            data_connection(args.connection, namespace),
            pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"]),
        )
        kept = pulumi.ResourceOptions(parent=self, protect=args.protect)
        files = Manifest(f"{name}/files", files_claim(name, namespace, args.notebook), kept)
        rights = access.of_group(namespace) if args.edit_for_group else access.of_notebook(name, namespace)
        bound = [Manifest(f"{name}/{document['kind']}", document, child) for document in rights]
        policy = ray_cluster.boundary(namespace)
        bound.append(Manifest(f"{name}/{policy['kind']}", policy, child))
        bound.append(Manifest(f"{name}/ResourceQuota", queues.bound(args.queue, namespace), child))
        if args.notebook.trusts:
            bound.append(Manifest(f"{name}/{authority.CONFIG_MAP}", authority.config_map(namespace), child))
        queue = _queue(name, args.queue, namespace, child)
        server = Manifest(
            name,
            notebook(name, namespace, secret.object_name, args.notebook),
            pulumi.ResourceOptions(parent=self, depends_on=[files, *bound, queue]),
        )
        after = pulumi.ResourceOptions(parent=self, depends_on=[*bound, queue])
        if args.ray is not None:
            for demo in args.ray.demos:
                cluster = ray_cluster.ray_cluster(demo, namespace, queue.object_name, args.ray)
                Manifest(f"{name}/{demo.cluster}", cluster, after)
        if args.ray_jobs is not None:
            self._run(name, args.ray_jobs, (namespace, queue.object_name, secret.object_name), after)
        self.ready = [server, queue]
        self.register_outputs({"namespace": namespace})

    def _run(
        self,
        name: str,
        args: RayJobsArgs,
        within: tuple[pulumi.Input[str], pulumi.Input[str], pulumi.Input[str]],
        after: pulumi.ResourceOptions,
    ) -> None:
        """Register the jobs. A changed job is replaced.

        within: namespace, LocalQueue and data connection.
        """
        for demo in args.clusters.demos:
            files, job = ray_job.documents(demo, *within, args)
            program = Manifest(f"{name}/{files['metadata']['name']}", files, after)
            once = pulumi.ResourceOptions(depends_on=[program], replace_on_changes=["spec"], delete_before_replace=True)
            Manifest(f"{name}/jobs/{demo.cluster}", job, pulumi.ResourceOptions.merge(after, once))


def data_connection(connection: Connection, namespace: pulumi.Input[str]) -> Document:
    """Return the Secret as the dashboard creates it (odh-dashboard, frontend/src/api/k8s/secrets.ts)."""
    labels = {DASHBOARD: "true", "opendatahub.io/managed": "true"}
    document = objects.secret(f"{CONNECTION}{connection.name}", namespace, connection.variables(), labels=labels)
    shown = {DISPLAY_NAME: connection.name, "opendatahub.io/connection-type": "s3"}
    return {**document, "metadata": {**document["metadata"], "annotations": shown}}


def _queue(name: str, args: QueueArgs, namespace: pulumi.Input[str], child: pulumi.ResourceOptions) -> Manifest:
    """Register the objects of the project's queue and return the LocalQueue, which comes last."""
    own = resource_flavor(FlavorArgs(tolerations=args.tolerations, kueue_api=args.kueue_api))
    flavor = args.flavor or Manifest(f"{name}/ResourceFlavor", own, child).object_name
    queue = Manifest(f"{name}/ClusterQueue", queues.cluster_queue(args, flavor), child)
    return Manifest(f"{name}/LocalQueue", queues.local_queue(args, namespace, queue.object_name), child)
