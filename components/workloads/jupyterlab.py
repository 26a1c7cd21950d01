"""JupyterLab on one GPU node, or on some of its GPUs.

Source: edwardsp/ai-on-aks, examples/jupyterlab. It serves a root shell over plain HTTP on a public address, with the
token `password` on the command line. Here the token is in a Secret, and the server runs as an unprivileged user that is
reached by port-forward. The administrator can choose more access (see `interface`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pulumi

from components.kubernetes import objects, workloads
from components.kubernetes.manifests import Document, Manifest, register_all
from components.kubernetes.network import opening
from components.kubernetes.objects import with_namespace
from components.kubernetes.security import UNPRIVILEGED
from components.kubernetes.volumes import Volume, claim
from components.workloads.interface import USER, Exposure, Reach, Storage, pod_security, service
from components.workloads.pods import (
    WORKLOAD_LABEL,
    Container,
    NodePods,
    capabilities,
    disruption_budget,
    pod_spec,
    scratch,
)
from components.workloads.submission import IMMUTABLE, RUNS, Submission, SubmissionMode, app_wrapper

PORT: Final = 8888
SHARED_MEMORY: Final = "128Gi"
FILES: Final = "/mnt/home"
"""The users' files, which outlive the pod."""
HOME: Final = "/home/jupyter"
"""The home folder is deleted with the pod. jupyter_core (`paths.secure_write`) needs files that other users cannot
read, IPython needs a database with locks, and `pip install --user` needs executable files. An SMB share gives all files
the same mode."""
HOME_SIZE: Final = "32Gi"
"""Limit for the home folder, on the node's disk."""
TOKEN_KEY: Final = "token"
START: Final = f"""export PATH="$HOME/.local/bin:$PATH"
printf 'export PATH="%s"\\n' "$PATH" > "$HOME/.profile"
exec jupyter-lab --ip=0.0.0.0 --port={PORT} --no-browser
"""
"""Kernels inherit the path. The terminals are login shells (jupyter_server_terminals), which do not keep the image's
path."""


@dataclass(frozen=True, kw_only=True)
class JupyterLabArgs:
    """The arguments of the server.

    submission: with gang `mlbatch`, a team's queue admits the server, and may preempt it for a job of higher priority.
    With `none` it keeps its node until it is deleted, and no quota counts it. Volcano is not supported.
    token: users log in with it. Kept secret.
    user: UID in the pod. None if the cluster assigns UIDs to each namespace (OpenShift).
    scratch: mount a folder on the node's local disks, which is deleted with the pod.
    closed: its namespace allows no connections by default. A policy then has to allow those from a load balancer.
    idle_seconds: after this time without use, kernels and terminals end, and after as much more the server. None for
    never.
    """

    submission: Submission
    pods: NodePods
    token: pulumi.Input[str]
    storage: Storage
    reach: Reach = field(default_factory=Reach)
    user: int | None = USER
    scratch: bool = True
    closed: bool = False
    idle_seconds: int | None = None


class JupyterLab(pulumi.ComponentResource):
    """Run JupyterLab with its volume, token and Service. Its volume is deleted with it."""

    access: Mapping[str, pulumi.Input[str]]
    """How its users reach it, with the token as a secret. With a load balancer, the command prints EXTERNAL-IP."""

    def __init__(self, name: str, args: JupyterLabArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:JupyterLab", name, None, opts)
        namespace, labels = args.submission.namespace, {WORKLOAD_LABEL: name}
        child = pulumi.ResourceOptions(parent=self)
        token = objects.secret(f"{name}-token", namespace, {TOKEN_KEY: args.token}, labels=labels)
        secret = pulumi.ResourceOptions(parent=self, additional_secret_outputs=["data"])
        served = [service(name, namespace, port=80, target=PORT, reach=args.reach)]
        if args.closed and args.reach.exposure is not Exposure.CLUSTER:
            served.append(opening(name, namespace, labels=labels, port=PORT, addresses=args.reach.ranges))
        foundation = [
            Manifest(f"{name}/token", token, secret),
            Manifest(f"{name}/volume", args.storage.claim(f"{name}-home", namespace), child),
            *register_all(name, [*served, disruption_budget(name, namespace, 1)], child),
        ]
        document = server(name, args)
        runs = document["kind"] in RUNS
        Manifest(
            f"{name}/{document['kind']}",
            document,
            pulumi.ResourceOptions(
                parent=self,
                depends_on=foundation,
                replace_on_changes=list(IMMUTABLE) if runs else None,
                delete_before_replace=runs or None,
            ),
        )
        if args.reach.exposure is Exposure.CLUSTER:
            command, address = ("port-forward", f"service/{name} {PORT}:80"), f"http://localhost:{PORT}"
        else:  # the cloud assigns the address later
            command, address = ("get", f"service {name}"), "http://EXTERNAL-IP"
        self.access = {
            "command": pulumi.Output.concat(f"kubectl {command[0]} --namespace ", namespace, f" {command[1]}"),
            "address": address,
            "token": pulumi.Output.secret(args.token),
        }
        self.register_outputs({"port": PORT})


def server(name: str, args: JupyterLabArgs) -> Document:
    """Return the Deployment, or the Job if the server ends when it is idle, or the AppWrapper around it.

    The Deployment has one replica, which ends before its replacement starts. Otherwise the replacement would wait
    forever for a free node.
    """
    mounted = (claim("home", f"{name}-home", FILES), *([scratch(args.pods)] if args.scratch else []))
    lab = Container(
        name="jupyterlab",
        command=["/bin/sh", "-c", " ".join([START.strip(), *culling(args.idle_seconds)]) + "\n"],
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
    ends, labels = args.idle_seconds is not None, {WORKLOAD_LABEL: name}
    spec |= {"restartPolicy": "OnFailure" if ends else "Always", "securityContext": pod_security(args.user)}
    document = (
        workloads.job(name, None, labels, spec, {"parallelism": 1, "completions": 1})
        if ends
        else workloads.deployment(name, None, labels, spec, recreate=True)
    )
    if args.submission.mode is SubmissionMode.MLBATCH:
        return app_wrapper(name, args.submission, [document])
    return with_namespace(document, args.submission.namespace)


def culling(seconds: int | None) -> list[str]:
    """Return the server's options that end it when it is idle, none for None.

    The server counts open terminals and kernels as use. JupyterLab 2 takes the last option from `NotebookApp`, later
    ones from `ServerApp` (jupyter/notebook 6, notebookapp.py; jupyter_server 2.21, serverapp.py).
    """
    if seconds is None:
        return []
    return [
        f"--MappingKernelManager.cull_idle_timeout={seconds}",
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={seconds}",
        *(f"--{app}.shutdown_no_activity_timeout={seconds}" for app in ("ServerApp", "NotebookApp")),
    ]
