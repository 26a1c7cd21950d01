"""MPI programs on whole GPU nodes, launched by the first pod of an Indexed Job or by a Volcano Job's launcher."""

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final

from components.kubernetes.programs import FILES_FOLDER
from components.kubernetes.volumes import Volume
from components.scripts import script
from components.workloads.indexed_job import service_name
from components.workloads.pods import Container
from components.workloads.volcano_job import LAUNCHER_TASK, WORKER_TASK

SCRIPT: Final = "mpi_index.py"
SETTINGS: Final = "mpi.json"
SSH_PORT: Final = 2022
NOTES_PORT: Final = 8022
WAIT_SECONDS: Final = 1800
"""Seconds for all pods to pull their image and start."""

PORTS: Final = {"ssh": SSH_PORT, "notes": NOTES_PORT}
VOLCANO_PORTS: Final = {"mpijob-port": 22}
WORKSPACE: Final = "/workspace"
"""Working directory of the MPI programs in the images nccltest and metaseq."""

_HOST_FILE: Final = f"/etc/volcano/{WORKER_TASK}.host"
"""Written by Volcano's svc plugin."""


def hosts(job: str, nodes: int) -> list[str]:
    """Return the names of an Indexed Job's pods, in the order of their index."""
    return [f"{job}-{index}.{service_name(job)}" for index in range(nodes)]


def mpirun(
    *,
    processes: int,
    per_node: int,
    cores: int | None = None,
    exported: Sequence[str],
    options: Sequence[str],
    program: Sequence[str],
) -> list[str]:
    """Return an mpirun command. The caller adds the host file after `--hostfile`.

    cores: CPU cores of each process. None leaves the number to MPI.
    exported: variables of the launching pod that all processes get.
    """
    exports = [word for name in exported for word in ("-x", name)]
    return [
        "mpirun",
        "--allow-run-as-root",
        "-np",
        str(processes),
        "--map-by",
        f"ppr:{per_node}:node" + (f":pe={cores}" if cores is not None else ""),
        "--hostfile",
        *exports,
        *options,
        *program,
    ]


def index_files(
    job: str, *, nodes: int, slots: int, command: Sequence[str], output: str | None = None
) -> Mapping[str, str]:
    """Return the files that the pods of an Indexed Job use to run an mpirun command together."""
    settings = {
        "hosts": hosts(job, nodes),
        "command": list(command),
        "slots": slots,
        "output": output,
        "port": NOTES_PORT,
        "sshPort": SSH_PORT,
        "waitSeconds": WAIT_SECONDS,
    }
    program = resources.files("components.workloads").joinpath(SCRIPT).read_text()
    return {SCRIPT: program, SETTINGS: json.dumps(settings, indent=2)}


def index_command() -> list[str]:
    """Return the command of each pod of the Indexed Job. Its files are mounted in FILES_FOLDER."""
    return ["python3", f"{FILES_FOLDER}/{SCRIPT}", f"{FILES_FOLDER}/{SETTINGS}"]


def volcano_containers(
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    volumes: Sequence[Volume] = (),
    installation: str | None = None,
) -> tuple[Container, Container]:
    """Return the containers of a Volcano Job's launcher and of its workers, which mount the volumes.

    installation: as in `launcher_command`.
    """
    launcher = Container(
        name=LAUNCHER_TASK,
        command=launcher_command(command, installation),
        variables=variables,
        volumes=(),
        ports=VOLCANO_PORTS,
        working_directory=WORKSPACE,
    )
    worker = Container(
        name=WORKER_TASK,
        command=worker_command(),
        variables=variables,
        volumes=volumes,
        ports=VOLCANO_PORTS,
        working_directory=WORKSPACE,
    )
    return launcher, worker


def launcher_command(command: Sequence[str], installation: str | None = None) -> list[str]:
    """Return the command of a Volcano Job's launcher. It waits, with a limit, until every worker accepts SSH.

    installation: path of the Open MPI to use in the image. None for the first one on the path.
    """
    words = " ".join(f"--hostfile {_HOST_FILE}" if word == "--hostfile" else shlex.quote(word) for word in command)
    text = script(
        __name__,
        "mpi_launcher.sh",
        hosts=_HOST_FILE,
        wait_seconds=WAIT_SECONDS,
        installation=installation,
        words=words,
    )
    return ["/bin/bash", "-c", text]


def worker_command() -> list[str]:
    """Return the command of a Volcano Job's workers: sshd with Volcano's keys, until the job is complete."""
    return ["/bin/bash", "-c", "mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -o AuthenticationMethods=publickey"]
