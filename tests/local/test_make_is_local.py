"""Make targets do not connect to a user's cluster, cloud and backend, although all variables and files name these.

The Makefile of this checkout runs in a copy of it. Its targets run in a user's order.
"""

import os
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from runner.settings import ARTIFACTS
from tests.local.environment import ROOT

pytestmark = pytest.mark.emulated("make starts the local cluster")

TARGETS = (
    ("up",),
    ("status",),
    ("env",),
    ("mirror",),
    ("azure",),
    ("azure", "ARGS=clear --stack dev"),
)
SELDOM = (
    ("review", "BASE=HEAD", "STACKS=existing"),
    ("up", "STACK=existing"),
    ("preview", "STACK=existing"),
    ("refresh", "STACK=existing"),
    ("destroy", "STACK=existing"),
    ("up", "STACK=aks"),
    ("preview", "STACK=aks"),
    ("destroy", "STACK=aks"),
)
AT_THE_END = (("down",), ("clean",))
"""In this order on one checkout."""
SOAK = pytest.mark.soak("three minutes; the other targets run the same programs")


class Trap:
    """Listens on loopback without responding, and records the first bytes of each connection."""

    def __init__(self) -> None:
        self.visits: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1.0)
                try:
                    self.visits.append(connection.recv(100))
                except OSError as error:
                    self.visits.append(repr(error).encode())


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    found = Trap()
    yield found
    found.close()


@pytest.fixture(scope="module")
def foreign(trap: Trap, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's kubeconfig."""
    file = tmp_path_factory.mktemp("foreign") / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [{"name": "prod", "cluster": {"server": f"https://{trap.address}"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
    }
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.fixture(scope="module")
def ambient(trap: Trap, foreign: Path) -> dict[str, str]:
    """Return the environment of a user of all services. Go has everything it needs, and does not connect."""
    there, proxy = f"http://{trap.address}", {}
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        proxy |= {name: there, name.upper(): there}
    return {
        **{name: value for name, value in os.environ.items() if name.lower() != "no_proxy"},
        **proxy,
        "GOPROXY": "off",
        "KUBECONFIG": str(foreign),
        "KUBERNETES_MASTER": there,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": trap.address.partition(":")[2],
        "ARM_CLIENT_ID": "11111111-2222-3333-4444-555555555555",
        "ARM_CLIENT_SECRET": "secret",
        "ARM_TENANT_ID": "11111111-2222-3333-4444-555555555555",
        "ARM_SUBSCRIPTION_ID": "11111111-2222-3333-4444-555555555555",
        "ARM_METADATA_HOSTNAME": trap.address,
        "OS_AUTH_URL": there,
        "AWS_ENDPOINT_URL": there,
        "VAULT_ADDR": there,
        "VAULT_SERVER_URL": there,
        "VAULT_TOKEN": "token",
        "PULUMI_API": there,
        "PULUMI_ACCESS_TOKEN": "pul-0123456789",
        "PULUMI_BACKEND_URL": there,
        "PULUMI_CONFIG_PASSPHRASE": "theirs",
        "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{trap.address.partition(':')[2]}",
        "PULUMI_STACK": "prod",
    }


@pytest.fixture(scope="module")
def checkout(trap: Trap, foreign: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a copy of this checkout as a repository, with stacks of a user's cluster, mirror and vault."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in listed:
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    for stack in ("dev", "existing", "aks"):
        file = folder / f"Pulumi.{stack}.yaml"
        document = yaml.safe_load(file.read_text())
        document["config"] |= {
            "mlbatch:kubernetes": {"kubeconfig": str(foreign), "context": "prod"},
            "mlbatch:mirror": {ARTIFACTS: f"https://{trap.address}/mirror"},
            "mlbatch:jupyterToken": {"secure": "AAABAMhtJ9Yh"},
            "kubernetes:kubeconfig": str(foreign),
        }
        document |= {"secretsprovider": "hashivault://mlbatch", "encryptedkey": "dmF1bHQ6djE6YWJj"}
        file.write_text(yaml.safe_dump(document, sort_keys=False))
    project = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    project["backend"] = {"url": f"http://{trap.address}"}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
    git(folder, "init", "--quiet")
    (folder / ".git" / "info" / "exclude").write_text(".venv\n")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "copy")
    yield folder
    make(folder, os.environ, "clean")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip("\0\n")


def make(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as a top-level process with an open umask. The Python packages are installed already."""
    command = ["make", "--old-file", ".venv/.installed", *arguments]
    environment = {name: value for name, value in environment.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(command, cwd=folder, env=dict(environment), umask=0, capture_output=True, text=True)


def test_the_trap_reports_each_caller(trap: Trap, foreign: Path) -> None:
    """Reading a cluster that is named on purpose is what `mlbatch status` is for."""
    before = len(trap.visits)
    command = [ROOT / "mlbatch", "status", "--kubeconfig", foreign]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "does not answer" in done.stderr
    assert len(trap.visits) > before


@pytest.mark.parametrize(
    "target", [*TARGETS, *(pytest.param(target, marks=SOAK) for target in SELDOM), *AT_THE_END], ids=" ".join
)
def test_no_target_opens_a_connection(
    target: tuple[str, ...], trap: Trap, checkout: Path, ambient: dict[str, str]
) -> None:
    before = len(trap.visits)
    done = make(checkout, ambient, *target)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert trap.visits[before:] == []
    if target in (("up",), ("up", "STACK=aks")):
        private(checkout / ".local")
    if target == ("env",):
        shell = f"{done.stdout}\nexec pulumi preview --stack dev --expect-no-changes"
        plain = subprocess.run(["sh", "-c", shell], cwd=checkout, env=ambient, capture_output=True, text=True)
        assert plain.returncode == 0, plain.stdout + plain.stderr
        assert trap.visits[before:] == []
    if target == ("clean",):
        left = {each.relative_to(checkout / ".local").parts[1] for each in (checkout / ".local").glob("*/*")}
        assert not left & {"pulumi-state", "pulumi-home", "config", "logs", "etcd", "secrets", "kubeconfig"}
        assert git(checkout, "status", "--porcelain") == ""


def private(folder: Path) -> None:
    """Assert that other users cannot read a folder. Files in pods have the modes that containers see."""
    assert list(folder.glob("*/passphrase"))
    for path, folders, files in os.walk(folder):
        if Path(path).name == "pods":
            folders.clear()
        assert stat.S_IMODE(mode(Path(path)) or 0o700) == 0o700, path
        for each in (Path(path, name) for name in files):
            assert not stat.S_IMODE(mode(each)) & 0o077 or each.is_symlink(), each


def mode(path: Path) -> int:
    """Return a file's mode, 0 if a running process has removed it."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("target", sorted({target[0] for target in (*TARGETS, *SELDOM, *AT_THE_END)}))
def test_a_kubeconfig_on_the_command_line_is_refused(
    target: str, trap: Trap, checkout: Path, foreign: Path, ambient: dict[str, str]
) -> None:
    before = len(trap.visits)
    done = make(checkout, ambient, target, f"KUBECONFIG={foreign}")
    assert done.returncode != 0
    assert "plain `pulumi up --stack <name>`" in done.stderr
    assert trap.visits[before:] == []
