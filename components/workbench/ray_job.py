"""The guide's demos as jobs. Each runs its program on its own Ray cluster, which is deleted when the program ends.

Fields: ray-project/kuberay v1.1.1, `apis/ray/v1/rayjob_types.go`. The clusters are those of the notebooks
(`ray_cluster`), with the Ray version of the image that has PyTorch.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes import programs
from components.kubernetes.manifests import SKIP_AWAIT, Document
from components.kubernetes.programs import Program
from components.workbench import ray_cluster
from components.workbench.ray_cluster import Demo, RayClusterArgs

_DEMOS: Final = "components.workbench.demos"
_BUCKET: Final = f"{_DEMOS}.bucket"
PROGRAMS: Final[Mapping[str, Program]] = {
    "jobtest": Program(module=f"{_DEMOS}.mnist"),
    "interactivetest": Program(module=f"{_DEMOS}.interactive", shared=[_BUCKET]),
    "tunecluster": Program(module=f"{_DEMOS}.tune", shared=[_BUCKET]),
}
"""The program of each demo by the name of its cluster. The first notebook has no program."""


@dataclass(frozen=True, kw_only=True)
class RayJobsArgs:
    """The demos to run, and how their clusters are created. packages: for Ray to install, by the cluster's name."""

    clusters: RayClusterArgs
    packages: Mapping[str, Sequence[str]]


def documents(
    demo: Demo,
    namespace: pulumi.Input[str],
    queue: pulumi.Input[str],
    connection: pulumi.Input[str],
    args: RayJobsArgs,
) -> tuple[Document, Document]:
    """Return the program's ConfigMap and the job. connection: Secret with the connection to the object store."""
    program, name = PROGRAMS[demo.cluster], f"{demo.cluster}-program"
    return program.config_map(name, namespace), job(demo, namespace, queue, connection, args)


def job(
    demo: Demo,
    namespace: pulumi.Input[str],
    queue: pulumi.Input[str],
    connection: pulumi.Input[str],
    args: RayJobsArgs,
) -> Document:
    """Return the RayJob. KubeRay submits the program to the head, because a submitter pod would not be counted."""
    program = PROGRAMS[demo.cluster]
    cluster = ray_cluster.ray_cluster(demo, namespace, queue, args.clusters)["spec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        _add_program(group["template"], program, f"{demo.cluster}-program", connection)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": demo.cluster,
            "namespace": namespace,
            "labels": {names.QUEUE_LABEL: queue},
            "annotations": dict(SKIP_AWAIT),
        },
        "spec": {
            "entrypoint": shlex.join(program.command("--gpu")),
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            # JSON is valid YAML, and its text does not depend on the YAML library.
            "runtimeEnvYAML": json.dumps({"pip": list(args.packages[demo.cluster])}),
            "rayClusterSpec": cluster,
        },
    }


def _add_program(template: Document, program: Program, config_map: str, connection: pulumi.Input[str]) -> None:
    """Add the program and the object store's connection to a Ray pod."""
    files = program.volume(config_map)
    template["metadata"] = {"annotations": dict(program.checksum())}
    spec = template["spec"]
    (container,) = spec["containers"]
    container["env"] = [*container.get("env", ()), *programs.ENVIRONMENT]
    container["envFrom"] = [{"secretRef": {"name": connection}}]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), files.mount()]
    spec["volumes"] = [*spec.get("volumes", ()), {"name": files.name, **files.source}]
