"""File names of the local cluster, in the folders of `emulator.paths.Paths`."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from emulator.paths import Paths
from runner.files import private_folder

NODE_NAME = "local-controllers"
POD_RANGE = "10.244.0.0/16"

MARKER = "MLBATCH_LOCAL_CLUSTER"
"""Environment variable of every process of a cluster, with the state folder as value."""

# sockaddr_un.sun_path holds 108 bytes including the terminating zero (unix(7)).
_SOCKET_PATH_LIMIT = 107
_LONGEST_SOCKET_NAME = "supervisor.sock"


@dataclass(frozen=True)
class Layout:
    """File names of one local cluster."""

    paths: Paths

    @property
    def etcd_data(self) -> Path:
        """Data folder of etcd, with the whole content of the cluster."""
        return self.paths.state / "etcd"

    @property
    def secrets(self) -> Path:
        """Certificates, keys, tokens and the kubeconfigs of the cluster's own processes; mode 0700."""
        return self.paths.state / "secrets"

    @property
    def pods(self) -> Path:
        """Volumes of the pods that the kubelet runs; emptied when the kubelet starts."""
        return self.paths.state / "pods"

    @property
    def azure(self) -> Path:
        """The emulated Azure's subscription. A `facts.yaml` in it overrides facts of the subscription."""
        return self.paths.state / "azure"

    @property
    def azure_bin(self) -> Path:
        """Programs only for supervised processes: the login to the emulated managed cluster."""
        return self.azure / "bin"

    @property
    def guests(self) -> Path:
        """Access to the guests of the local OpenStack: the configuration of `ssh`, and a key pair."""
        return self.paths.state / "guests"

    @property
    def guests_bin(self) -> Path:
        """An `ssh` that reaches only those guests."""
        return self.guests / "bin"

    @property
    def guests_key(self) -> Path:
        """The private key of the engineer in the local project. The public key is next to it (`.pub`)."""
        return self.guests / "key"

    @property
    def simulations(self) -> Path:
        """The simulations of the project's own programs; see `emulator.cluster.simulations`."""
        return self.paths.root / "local" / "simulations.yaml"

    def seed(self, name: str) -> Path:
        """Return the file with the objects of a new cluster of a stack or target; see `emulator.cluster.seeds`."""
        return self.paths.root / "local" / "seeds" / f"{name}.yaml"

    @property
    def content(self) -> Path:
        """The content of a replica of another cluster; see `emulator.cluster.content`."""
        return self.paths.state / "content.json"

    @property
    def ports_file(self) -> Path:
        """The ports chosen at the first start."""
        return self.paths.run / "ports.json"

    @property
    def lock(self) -> Path:
        """The file that a running supervisor locks (flock)."""
        return self.paths.run / "supervisor.lock"

    @property
    def sockets(self) -> Path:
        """Folder of the Unix sockets: the run folder, or a short private one if its path is too long for a socket."""
        run = self.paths.run
        if len(os.fsencode(run / _LONGEST_SOCKET_NAME)) <= _SOCKET_PATH_LIMIT:
            return run
        digest = hashlib.sha256(os.fsencode(self.paths.state)).hexdigest()[:12]
        base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        return Path(base) / f"mlbatch-{os.getuid()}-{digest}"

    def socket(self, name: str) -> Path:
        """Return the Unix socket of this name."""
        return self.sockets / f"{name}.sock"

    def secret(self, name: str) -> Path:
        """Return the path of a file in the secrets folder."""
        return self.secrets / name

    def log(self, process: str) -> Path:
        """Return the log file of a supervised process."""
        return self.paths.logs / f"{process}.log"

    def make_folders(self) -> None:
        """Create the folders, readable only by this user.

        Raises PermissionError if the sockets' folder, which may be in a shared place, belongs to another user.
        """
        for folder in (self.paths.state, self.paths.logs, self.paths.run, self.secrets, self.pods):
            private_folder(folder)
        found = private_folder(self.sockets).lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{self.sockets} is not a folder of this user. Remove it and start again")
