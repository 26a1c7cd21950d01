"""JupyterLab on one GPU node.

Source: edwardsp/ai-on-aks, examples/jupyterlab, which serves a root shell over plain HTTP from a public address behind
the token `password`, given on the command line. Here the token comes from a Secret, the server runs as an ordinary user
and is reached through a port-forward; anything wider is a choice of the cluster's owner (see `interface`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.kubernetes import objects
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.network import opening
from components.kubernetes.objects import with_namespace
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import AccessMode, Volume, claim
from components.workloads.disruption import disruption_budget
from components.workloads.interface import USER, Exposure, Reach, pod_security, service, volume_claim
from components.workloads.pods import WORKLOAD_LABEL, Container, NodePods, capabilities, pod_spec, scratch
from components.workloads.submission import Submission, SubmissionMode, app_wrapper

PORT: Final = 8888
SERVICE_PORT: Final = 80
SHARED_MEMORY: Final = "128Gi"
FILES: Final = "/mnt/home"
"""The users' files, which outlive the pod."""
HOME: Final = "/home/jupyter"
"""What goes with the pod: jupyter_core (`paths.secure_write`) wants files that nobody else may read, IPython a database
with locks and `pip install --user` programs that can be executed; an SMB share gives each file the mode it was mounted
with."""
HOME_SIZE: Final = "32Gi"
"""At most, of the node's own disk."""
TOKEN_KEY: Final = "token"
START: Final = f"""export PATH="$HOME/.local/bin:$PATH"
printf 'export PATH="%s"\\n' "$PATH" > "$HOME/.profile"
exec jupyter-lab --ip=0.0.0.0 --port={PORT} --no-browser
"""
"""Kernels inherit the path; the terminals are login shells (jupyter_server_terminals), which forget the image's."""


@dataclass(frozen=True, kw_only=True)
class JupyterLabArgs:
    """The server to run.

    submission: gang `mlbatch` has a team's queue admit it, which may take it away for a job of higher priority; with
        `none` it holds its node until it is removed, and no quota counts it. Volcano has no part in it.
    token: that users log in with; kept secret.
    storage_class, storage: of the volume with the users' files. access: how many nodes may mount it.
    user: its number in the pod; None where the cluster gives each namespace its own (OpenShift).
    scratch: mount a folder on the node's local disks, which goes when the pod is replaced.
    closed: its namespace lets nobody in, so that a policy has to let in those who come through a load balancer.
    """

    submission: Submission
    pods: NodePods
    token: pulumi.Input[str]
    storage_class: str | None
    storage: str
    access: AccessMode = AccessMode.MANY_NODES
    reach: Reach = field(default_factory=Reach)
    user: int | None = USER
    scratch: bool = True
    closed: bool = False


class JupyterLab(pulumi.ComponentResource):
    """Run JupyterLab with its volume, token and Service. The volume is its own, and goes when it goes."""

    def __init__(self, name: str, args: JupyterLabArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:JupyterLab", name, None, opts)
        namespace = args.submission.namespace
        foundation = [
            Manifest(
                f"{name}/token",
                objects.secret(f"{name}-token", namespace, {TOKEN_KEY: args.token}, labels={WORKLOAD_LABEL: name}),
                pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"]),
            ),
            Manifest(f"{name}/volume", home_claim(name, args), pulumi.ResourceOptions(parent=self)),
            Manifest(
                f"{name}/Service",
                service(name, namespace, port=SERVICE_PORT, target=PORT, reach=args.reach),
                pulumi.ResourceOptions(parent=self),
            ),
        ]
        if args.closed and args.reach.exposure is not Exposure.CLUSTER:
            let_in = opening(name, namespace, labels={WORKLOAD_LABEL: name}, port=PORT, addresses=args.reach.ranges)
            foundation.append(Manifest(f"{name}/NetworkPolicy", let_in, pulumi.ResourceOptions(parent=self)))
        kept = disruption_budget(name, namespace, 1)
        foundation.append(Manifest(f"{name}/{kept['kind']}", kept, pulumi.ResourceOptions(parent=self)))
        document = server(name, args)
        wrapped = document["kind"] == "AppWrapper"
        Manifest(
            f"{name}/{document['kind']}",
            document,
            pulumi.ResourceOptions(
                parent=self,
                depends_on=foundation,
                replace_on_changes=["metadata", "spec"] if wrapped else None,
                delete_before_replace=wrapped or None,
            ),
        )
        self.register_outputs({"port": PORT})


def home_claim(name: str, args: JupyterLabArgs) -> Document:
    """Return the claim of the users' files."""
    return volume_claim(
        f"{name}-home",
        args.submission.namespace,
        storage_class=args.storage_class,
        size=args.storage,
        mode=args.access,
    )


def server(name: str, args: JupyterLabArgs) -> Document:
    """Return the Deployment, or the AppWrapper around it.

    One replica that is replaced by ending the old one first: a second one would wait for ever for a free node.
    """
    mounted = (claim("home", f"{name}-home", FILES), *([scratch(args.pods)] if args.scratch else []))
    lab = Container(
        name="jupyterlab",
        command=["/bin/sh", "-c", START],
        variables={"HOME": HOME},
        volumes=(*mounted, Volume(name="own", path=HOME, source={"emptyDir": {"sizeLimit": HOME_SIZE}})),
        ports={"http": PORT},
        working_directory=FILES,
    )
    spec = pod_spec(args.pods, lab, priority_class=args.submission.priority_class)
    container = spec["containers"][0]
    reference = {"name": f"{name}-token", "key": TOKEN_KEY}
    container["env"].append({"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    container["securityContext"] = {**UNPRIVILEGED, "capabilities": {"drop": ["ALL"], **capabilities(args.pods.fabric)}}
    container["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 10}
    spec |= {"restartPolicy": "Always", "securityContext": pod_security(args.user)}
    deployment: Document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {WORKLOAD_LABEL: name}},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {WORKLOAD_LABEL: name}},
            "template": {"metadata": {"labels": {WORKLOAD_LABEL: name}}, "spec": spec},
        },
    }
    if args.submission.mode is SubmissionMode.MLBATCH:
        return app_wrapper(name, args.submission, [deployment])
    return with_namespace(deployment, args.submission.namespace)
