"""The launcher of MPI programs over an Indexed Job's pods, with stand-ins for ssh, executed on this machine."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from components.workloads import mpi, mpi_index
from components.workloads.mpi_index import Settings
from lab.dashboards.ports import free_port

SCRIPT = Path(mpi_index.__file__)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with programs that play ssh-keygen and sshd; the latter listens and notes its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    keygen = 'while [ "$1" != -f ]; do shift; done\necho "public $2" > "$2.pub"\necho private > "$2"\n'
    listen = (
        "import json,os,socket,sys,time\n"
        "json.dump(sys.argv[1:], open(os.environ['HOME'] + '/sshd.json', 'w'))\n"
        "s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('127.0.0.1', int(sys.argv[sys.argv.index('-p') + 1]))); s.listen()\n"
        "time.sleep(60)\n"
    )
    for name, text in {"ssh-keygen": f"#!/bin/sh\n{keygen}", "sshd": f"#!{sys.executable}\n{listen}"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def start(tmp_path: Path, tools: Path, index: int, *, present: bool = False, **values: object) -> subprocess.Popen[str]:
    """Start one pod's launcher with its own home folder. `present` makes it treat the others as running."""
    home = tmp_path / f"pod-{index}"
    home.mkdir()
    raw = {"slots": 8, "output": str(home / "output"), "waitSeconds": 20, **values}
    (home / "settings.json").write_text(json.dumps(raw))
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import mpi_index; from pathlib import Path; "
        f"mpi_index.PAUSE = 0.05; mpi_index.LINGER = {0 if present else 10}; "
        f"{'mpi_index.absent = lambda settings: []; ' if present else ''}"
        f"sys.exit(mpi_index.main({str(home / 'settings.json')!r}, {index}, Path({str(home / 'work')!r})))"
    )
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home)}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=30)
    return process.returncode, output


def test_a_single_pod_needs_no_ssh_and_no_host_file(tmp_path: Path, tools: Path) -> None:
    command = ["echo", "all_reduce", "--hostfile", "-x", "NCCL_DEBUG"]
    pod = start(tmp_path, tools, 0, hosts=["nccl-0.nccl-service"], command=command, port=1, sshPort=1)
    code, output = finish(pod)
    assert code == 0
    assert "all_reduce -x NCCL_DEBUG" in output
    assert (tmp_path / "pod-0" / "output").read_text() == "all_reduce -x NCCL_DEBUG\n"
    assert not (tmp_path / "pod-0" / ".ssh").exists()


@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="sshd's folder is made in /run, as root")
@pytest.mark.parametrize("code", [0, 3])
def test_all_pods_hear_what_the_program_printed_and_how_it_ended(tmp_path: Path, tools: Path, code: int) -> None:
    """Both pods are on this machine, so the port of the ssh server of the second is also the first's."""
    port, ssh_port = free_port(), free_port()
    values = {
        "hosts": ["127.0.0.1", "localhost"],
        "command": ["sh", "-c", f'cat "$2"; exit {code}', "mpirun", "--hostfile"],
        "port": port,
        "sshPort": ssh_port,
    }
    pods = [start(tmp_path, tools, index, **values) for index in (0, 1)]
    results = [finish(pod) for pod in pods]
    assert [result[0] for result in results] == [code, code], results
    hosts = "127.0.0.1 slots=8\nlocalhost slots=8\n"
    assert (tmp_path / "pod-0" / "output").read_text() == hosts
    assert (tmp_path / "pod-1" / "output").read_text() == hosts
    config = (tmp_path / "pod-0" / ".ssh" / "config").read_text()
    assert f"Port {ssh_port}" in config
    assert not (tmp_path / "pod-1" / ".ssh").exists(), "the private key stays where it was made"
    authorized = (tmp_path / "pod-1" / "work" / "authorized_keys").read_text()
    assert authorized == (tmp_path / "pod-0" / "work" / "key.pub").read_text()


@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="sshd's folder is made in /run, as root")
def test_mpirun_may_cut_the_names_of_hosts_at_the_first_dot(tmp_path: Path, tools: Path) -> None:
    """A stand-in for mpirun does as Open MPI 4.1.5 (orte/util/hostfile/hostfile.c), tests/local has the real one."""
    (tools / "mpirun").write_text(
        '#!/bin/sh\n[ "$OMPI_MCA_orte_keep_fqdn_hostnames" = 1 ] && [ "$PRTE_MCA_prte_keep_fqdn_hostnames" = 1 ] '
        '&& exec cut -d " " -f 1 "$2"\nexec cut -d . -f 1 "$2"\n'
    )
    (tools / "mpirun").chmod(0o755)
    hosts = ["nccl-0.nccl-service", "nccl-1.nccl-service"]
    values = {"hosts": hosts, "command": ["mpirun", "--hostfile"], "port": free_port(), "sshPort": 2022}
    _, output = finish(start(tmp_path, tools, 0, waitSeconds=0, present=True, **values))
    assert output.splitlines()[-2:] == hosts
    home = tmp_path / "pod-0"
    assert (home / ".ssh" / "config").read_text() == (
        "Host nccl-0\n  HostName nccl-0.nccl-service\nHost nccl-1\n  HostName nccl-1.nccl-service\n"
        f"Host *\n  Port 2022\n  IdentityFile {home / 'work' / 'key'}\n  BatchMode yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )


@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="sshd's folder is made in /run, as root")
def test_the_ssh_server_takes_the_launchers_key_and_nothing_else(tmp_path: Path, tools: Path) -> None:
    port, ssh_port = free_port(), free_port()
    # Both are on this machine, where one server has the port: the program waits until the other is started as well.
    started = [tmp_path / f"pod-{index}" / "sshd.json" for index in (0, 1)]
    wait = "; ".join(f"until [ -s '{file}' ]; do sleep 0.05; done" for file in started)
    values = {"hosts": ["127.0.0.1", "localhost"], "command": ["sh", "-c", wait], "port": port, "sshPort": ssh_port}
    assert [finish(pod)[0] for pod in [start(tmp_path, tools, index, **values) for index in (0, 1)]] == [0, 0]
    for file in started:
        words, work = json.loads(file.read_text()), file.parent / "work"
        options = {
            "HostKey": str(work / "host_key"),
            "AuthorizedKeysFile": str(work / "authorized_keys"),
            "AuthenticationMethods": "publickey",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "PidFile": "none",
        }
        assert words[:4] == ["-D", "-e", "-p", str(ssh_port)]
        assert words[4::2] == ["-o"] * len(options)
        assert words[5::2] == [f"{name}={value}" for name, value in options.items()]


def test_the_ssh_server_of_a_volcano_worker_is_the_images_own() -> None:
    """Volcano's ssh plugin mounts the keys. No user has a password."""
    script = "mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -o AuthenticationMethods=publickey"
    assert mpi.worker_command() == ["/bin/bash", "-c", script]


def test_a_pod_that_finds_no_launcher_gives_up_in_time(tmp_path: Path, tools: Path) -> None:
    values = {"hosts": ["127.0.0.1", "localhost"], "command": ["true"], "port": free_port(), "sshPort": 1}
    code, output = finish(start(tmp_path, tools, 1, waitSeconds=0.3, **values))
    assert code == mpi_index.UNREACHABLE
    assert "127.0.0.1 did not answer" in output


@pytest.mark.parametrize(
    ("index", "code", "said"),
    [(None, 3, "sh -c exit 3\n"), ("0", 3, "sh -c exit 3\n"), ("1", 70, "localhost did not answer within 0.1 s\n")],
)
def test_the_index_of_the_pod_says_its_part(index: str | None, code: int, said: str, tmp_path: Path) -> None:
    """As the container runs it: a program with its settings' file."""
    values = {"hosts": ["localhost"], "command": ["sh", "-c", "exit 3"], "port": free_port(), "sshPort": 1}
    (tmp_path / "mpi.json").write_text(json.dumps({**values, "slots": 8, "output": None, "waitSeconds": 0.1}))
    environment = {name: text for name, text in os.environ.items() if name != "JOB_COMPLETION_INDEX"}
    environment |= {"TMPDIR": str(tmp_path), **({"JOB_COMPLETION_INDEX": index} if index is not None else {})}
    ran = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "mpi.json"], env=environment, capture_output=True, text=True, timeout=30
    )
    assert (ran.returncode, ran.stdout) == (code, said), ran.stderr
    assert (tmp_path / "mpi-index").stat().st_mode & 0o777 == 0o700, "the private key is nobody else's"


def test_the_files_of_a_job_are_what_the_launcher_reads() -> None:
    data = mpi.index_files("nccl", nodes=2, slots=8, command=["mpirun", "--hostfile", "test"], output="/results/o")
    assert data["mpi_index.py"] == SCRIPT.read_text()
    assert Settings.load(data["mpi.json"]) == Settings(
        hosts=["nccl-0.nccl-service", "nccl-1.nccl-service"],
        command=["mpirun", "--hostfile", "test"],
        slots=8,
        output="/results/o",
        port=8022,
        ssh_port=2022,
        wait_seconds=1800,
    )
    assert mpi.index_command() == ["python3", "/etc/mlbatch/mpi_index.py", "/etc/mlbatch/mpi.json"]


def test_a_volcano_launcher_waits_for_its_workers_within_bounds(tmp_path: Path, tools: Path) -> None:
    """Executed with a host file of two workers. The second accepts ssh at the third try."""
    (tools / "ssh").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/tries\n[ $(wc -l < {tmp_path}/tries) -ge 4 ] || [ "$5" = a ]\n'
    )
    (tools / "mpirun").write_text('#!/bin/sh\necho "mpirun $@"\n')
    (tools / "sleep").write_text("#!/bin/sh\n")
    for name in ("ssh", "mpirun", "sleep"):
        (tools / name).chmod(0o755)
    (tmp_path / "hosts").write_text("a\nb\n")
    command = mpi.launcher_command(["mpirun", "-np", "16", "--hostfile", "-x", "A", "it's"])
    assert command[:2] == ["/bin/bash", "-c"]
    script = command[2].replace("/etc/volcano/mpiworker.host", str(tmp_path / "hosts"))
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    ran = subprocess.run(["/bin/bash", "-c", script], env=environment, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"mpirun -np 16 --hostfile {tmp_path}/hosts -x A it's\n"
    never = script.replace("SECONDS + 1800", "SECONDS + 0")
    (tools / "ssh").write_text("#!/bin/sh\nexit 255\n")
    ran = subprocess.run(["/bin/bash", "-c", never], env=environment, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 70
    assert "a takes no ssh" in ran.stderr


def test_a_port_that_nobody_listens_on_does_not_answer() -> None:
    assert not mpi_index.answers("127.0.0.1", free_port())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert mpi_index.answers("127.0.0.1", listener.getsockname()[1])
