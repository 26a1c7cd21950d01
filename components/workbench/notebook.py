"""A notebook as OpenShift AI's dashboard creates it: the Notebook, the PVC of its files, and the demos in them.

The notebook's controller adds a sign-in in front of it. It creates a service account with the notebook's name, a Route,
and NetworkPolicies that allow connections only through the sign-in (opendatahub-io/kubeflow,
components/odh-notebook-controller).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from components.catalogue import NotebookImage, Repository
from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.placement import ANYWHERE, NodeGroup
from components.kubernetes.resources import Resources
from components.kubernetes.volumes import AccessMode
from components.workbench import authority
from components.workloads.interface import Storage

PORT: Final = 8888
FILES: Final = "/opt/app-root/src"
DASHBOARD: Final = "opendatahub.io/dashboard"
"""Label of the objects in the dashboard."""
DISPLAY_NAME: Final = "openshift.io/display-name"
REGISTRY: Final = "image-registry.openshift-image-registry.svc:5000/redhat-ods-applications"
"""Address of OpenShift AI's image streams in the cluster's registry."""

SIZES: Final[Mapping[str, Resources]] = {
    "Small": Resources(cpu_request="1", memory_request="8Gi", cpu_limit="2", memory_limit="8Gi"),
    "Medium": Resources(cpu_request="3", memory_request="24Gi", cpu_limit="6", memory_limit="24Gi"),
    "Large": Resources(cpu_request="7", memory_request="56Gi", cpu_limit="14", memory_limit="56Gi"),
    "X Large": Resources(cpu_request="15", memory_request="120Gi", cpu_limit="30", memory_limit="120Gi"),
}
"""The dashboard's container sizes (odh-dashboard, manifests/rhoai/shared/odhdashboardconfig)."""
_TRUSTED: Final = ("AWS_CA_BUNDLE",)
"""Variable of boto3 (boto3's guide, "Configuration"). OpenShift AI sets those of other libraries to its own bundle."""
_CLONE: Final = Resources(cpu_request="100m", memory_request="256Mi", cpu_limit="1", memory_limit="1Gi")


@dataclass(frozen=True, kw_only=True)
class NotebookArgs:
    """The arguments of the notebook.

    image, version: an image of the catalogue and one of its versions.
    size: one of SIZES.
    storage: size of the PVC for its files, which has the notebook's name.
    storage_class: None for the cluster's default.
    demos: repository to clone into its files. None for no demos.
    user: its owner, as the dashboard records it.
    nodes: where services run. The GPUs are for Ray.
    trusts: trust the cluster's certificate authority, for the object store.
    """

    image: NotebookImage
    version: str
    size: str = "Small"
    storage: str = "20Gi"
    storage_class: str | None = None
    demos: Repository | None = None
    user: str | None = None
    nodes: NodeGroup = ANYWHERE
    trusts: bool = False

    @property
    def tag(self) -> str:
        """The image as the dashboard records it."""
        return f"{self.image.stream}:{self.version}"

    @property
    def reference(self) -> str:
        """The image's reference in the cluster's registry."""
        return f"{REGISTRY}/{self.tag}"


def files_claim(name: str, namespace: pulumi.Input[str], args: NotebookArgs) -> Document:
    """Return the PVC of the notebook's files."""
    storage = Storage(storage_class=args.storage_class, size=args.storage, access=AccessMode.ONE_NODE)
    return storage.claim(name, namespace, labels={DASHBOARD: "true"}, annotations={DISPLAY_NAME: name})


def notebook(name: str, namespace: pulumi.Input[str], connection: pulumi.Input[str], args: NotebookArgs) -> Document:
    """Return the Notebook. connection: Secret with its environment variables."""
    user = {"opendatahub.io/username": args.user} if args.user is not None else {}
    pod = _pod(name, namespace, connection, args)
    annotations = {
        DISPLAY_NAME: name,
        "opendatahub.io/image-display-name": args.image.name,
        "notebooks.opendatahub.io/inject-oauth": "true",
        "notebooks.opendatahub.io/last-image-selection": args.tag,
        "notebooks.opendatahub.io/last-size-selection": args.size,
        **user,
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name, DASHBOARD: "true", "opendatahub.io/odh-managed": "true"},
            "annotations": {**annotations, **SKIP_AWAIT},
        },
        "spec": {"template": {"spec": authority.trusting(pod, _TRUSTED) if args.trusts else pod}},
    }


def _pod(name: str, namespace: pulumi.Input[str], connection: pulumi.Input[str], args: NotebookArgs) -> Document:
    files = {"name": name, "mountPath": FILES}
    clone = [] if args.demos is None else [_cloner(args, args.demos, files)]
    return {
        "enableServiceLinks": False,
        **args.nodes.body(),
        **({"initContainers": clone} if clone else {}),
        "containers": [
            {
                "name": name,
                "image": args.reference,
                "imagePullPolicy": "Always",
                "workingDir": FILES,
                "env": [
                    {"name": "NOTEBOOK_ARGS", "value": _arguments(name, namespace)},
                    {"name": "JUPYTER_IMAGE", "value": args.reference},
                ],
                "envFrom": [{"secretRef": {"name": connection}}],
                "resources": SIZES[args.size].body(),
                "ports": [{"name": "notebook-port", "containerPort": PORT, "protocol": "TCP"}],
                "livenessProbe": _probe(name, namespace),
                "readinessProbe": _probe(name, namespace),
                "volumeMounts": [files, {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - of the container
            }
        ],
        "volumes": [
            {"name": name, "persistentVolumeClaim": {"claimName": name}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def _arguments(name: str, namespace: pulumi.Input[str]) -> pulumi.Input[str]:
    """Return the server's options. It has no password, because it is reachable only through the sign-in."""
    return pulumi.Output.concat(
        f"--ServerApp.port={PORT} --ServerApp.token='' --ServerApp.password='' --ServerApp.base_url=/notebook/",
        namespace,
        f"/{name} --ServerApp.quit_button=False",
    )


def _probe(name: str, namespace: pulumi.Input[str]) -> Document:
    path = pulumi.Output.concat("/notebook/", namespace, f"/{name}/api")
    return {
        "httpGet": {"path": path, "port": "notebook-port", "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "periodSeconds": 5,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def _cloner(args: NotebookArgs, demos: Repository, files: Mapping[str, str]) -> Document:
    return {
        "name": "demos",
        "image": args.reference,
        "command": ["sh", "-c", clone_script(demos, FILES)],
        "workingDir": FILES,
        "resources": _CLONE.body(),
        "volumeMounts": [dict(files)],
    }


def clone_script(demos: Repository, folder: str) -> str:
    """Return the script that clones the demos into a folder at their commit.

    An existing clone belongs to the user and stays. An interrupted clone is repeated. A failed one does not stop the
    notebook from starting.
    """
    name = shlex.quote(demos.name)
    return f"""cd {shlex.quote(folder)} || exit 1
if [ -e {name} ]; then exit 0; fi
rm -rf .demos
if git init --quiet .demos &&
  git -C .demos fetch --quiet --depth 1 {shlex.quote(demos.url)} {demos.commit} &&
  git -C .demos checkout --quiet --detach {demos.commit}
then
  mv .demos {name}
else
  echo "the demos could not be fetched; clone {demos.url} by hand" >&2
  rm -rf .demos
fi
"""
