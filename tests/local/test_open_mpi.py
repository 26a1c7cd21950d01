"""The launcher of MPI programs with a real Open MPI 4 and sshd, in pods that resolve names like on a cluster."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from components.workloads import mpi, mpi_index
from tests.local.debian import unpacked

JOB = "nccl"
NODES, PER_NODE = 2, 2
HOSTS = mpi.hosts(JOB, NODES)

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd has to be root, and these tests are not"),
    pytest.mark.skipif(
        shutil.which("unshare") is None, reason="pods need separate host names: no `unshare` (util-linux)"
    ),
]


@pytest.fixture(scope="module")
def root() -> Path:
    """Return the folder with Open MPI, sshd and their dependencies."""
    return unpacked("openmpi-bin", "openssh-client", "openssh-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Pod:
    """A pod of the job, in its own mount and host name namespaces, with its own loopback address.

    Like in a cluster, it resolves its own name with and without the Service's name, and other pods only with it.
    """

    def __init__(self, folder: Path, root: Path, index: int, program: str) -> None:
        self.folder, self.root, self.index = folder, root, index
        for name in ("bin", "home", "run", "work"):
            (folder / name).mkdir(parents=True)
        known = [f"127.0.0.{at + 2} {host}{f' {JOB}-{at}' if at == index else ''}" for at, host in enumerate(HOSTS)]
        (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *known, ""]))
        users = f"root:x:0:0::{folder}/home:/bin/sh\nsshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
        (folder / "passwd").write_text(users)
        libraries = f"{root}/usr/lib/x86_64-linux-gnu"
        found = {
            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/libpsm1:{root}/lib/x86_64-linux-gnu",
            "OPAL_PREFIX": f"{root}/usr",
            "PMIX_INSTALL_PREFIX": f"{libraries}/pmix2",
            "PMIX_MCA_pcompress_base_silence_warning": "1",
            "PATH": f"{root}/usr/bin:/usr/bin:/bin",
        }
        variables = " ".join(f"{name}={value}" for name, value in found.items())
        own = f'-f /dev/null -o ListenAddress=127.0.0.{index + 2} -o "SetEnv={variables}"'
        self._tool("sshd", f"{variables} exec {root}/usr/sbin/sshd {own}")
        self._tool("mpirun", f"{variables} exec {root}/usr/bin/orterun")
        mounts = {"hosts": "/etc/hosts", "passwd": "/etc/passwd", "run": "/run"}
        inside = "".join(f"mount --bind {folder / source} {target}\n" for source, target in mounts.items())
        inside += f"hostname {JOB}-{index}\ncd /\nexec {sys.executable} -c '{program}' {folder} {index}\n"
        environment = {"HOME": f"{folder}/home", "PATH": f"{folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--uts", "sh", "-euc", inside],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _tool(self, name: str, command: str) -> None:
        (self.folder / "bin" / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
        (self.folder / "bin" / name).chmod(0o755)

    def end(self) -> tuple[int, str]:
        """Wait for the pod's end; return its exit code and log."""
        log, _ = self.process.communicate(timeout=90)
        return self.process.returncode, log


def run(root: Path, folder: Path, before: str = "pass") -> list[tuple[int, str]]:
    """Run `hostname` by mpirun on two pods; return exit code and log of each."""
    command = mpi.mpirun(
        processes=NODES * PER_NODE,
        per_node=PER_NODE,
        exported=(),
        options=("-mca", "plm_rsh_no_tree_spawn", "1"),
        program=("hostname",),
    )
    settings = json.loads(mpi.index_files(JOB, nodes=NODES, slots=PER_NODE, command=command)["mpi.json"])
    settings |= {"port": free_port(), "sshPort": free_port(), "waitSeconds": 30}
    program = (
        f'import sys; sys.path.insert(0, "{Path(mpi_index.__file__).parent}"); import mpi_index; '
        f"from pathlib import Path; mpi_index.PAUSE = 0.1; {before}; folder = Path(sys.argv[1]); "
        'sys.exit(mpi_index.main(folder / "settings.json", int(sys.argv[2]), folder / "work"))'
    )
    pods = []
    for index in range(NODES):
        (folder / f"{index}").mkdir()
        (folder / f"{index}" / "settings.json").write_text(json.dumps(settings))
        pods.append(Pod(folder / f"{index}", root, index, program))
    return [pod.end() for pod in pods]


@pytest.mark.parametrize("names_whole", [True, False])
def test_processes_run_on_every_pod(root: Path, tmp_path: Path, names_whole: bool) -> None:
    """With whole names, and with short names for an Open MPI that has no variable for whole names."""
    ended = run(root, tmp_path, "pass" if names_whole else "mpi_index.WHOLE_NAMES = {}")
    assert [code for code, _ in ended] == [0, 0], ended
    words = ended[0][1].split()
    assert [words.count(f"{JOB}-{index}") for index in range(NODES)] == [PER_NODE, PER_NODE], ended[0][1]


def test_open_mpi_cuts_the_names_of_hosts_at_the_first_dot(root: Path, tmp_path: Path) -> None:
    """Without both ways, no process starts."""
    code, log = run(root, tmp_path, 'mpi_index.WHOLE_NAMES = {}; mpi_index.short_names = lambda hosts: ""')[0]
    assert code != 0
    assert f"Could not resolve hostname {JOB}-1:" in log
