"""Jobs that run a program of this project once."""

from collections.abc import Sequence
from typing import Final

from components.kubernetes.manifests import Document
from components.kubernetes.placement import RESCHEDULED, NodeGroup
from components.kubernetes.programs import Program
from components.kubernetes.rbac import Account
from components.kubernetes.resources import Resources
from components.kubernetes.security import PodSecurity, nobody
from components.kubernetes.volumes import volumes
from components.kubernetes.workloads import job

RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="128Mi")


def job_name(prefix: str, version: str, program: Program) -> str:
    """Return the name of the Job for a version of what it works on, and for this version of the program."""
    (digest,) = program.checksum().values()
    return f"{prefix}-{version.replace('.', '-')}-{digest[:8]}"


def program_job(
    name: str,
    program: Program,
    account: Account,
    *,
    container: str,
    image: str,
    arguments: Sequence[str],
    config_map: str,
    nodes: NodeGroup,
    pod_security: PodSecurity,
) -> Document:
    """Return the Job. It retries as long as the update waits for it.

    A failed Job would have to be deleted by hand before the next update.
    account: of its pod. The Job has its name as a label.
    image: an image with Python 3.11 or later.
    config_map: has the program.
    """
    files = [program.volume(config_map)]
    runs = program.container(container, image, arguments, RESOURCES, files)
    pod = {
        "serviceAccountName": account.name,
        "restartPolicy": "OnFailure",
        **nodes.body(RESCHEDULED),
        "securityContext": nobody(pod_security),
        "containers": [{**runs, "terminationMessagePolicy": "FallbackToLogsOnError"}],
        "volumes": volumes(files),
    }
    return job(name, account.namespace, {"app.kubernetes.io/name": account.name}, pod, {"backoffLimit": 1000})
