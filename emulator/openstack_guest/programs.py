"""The `ssh` of an environment with an OpenStack: OpenSSH, configured to reach floating addresses."""

import shlex
import shutil
import sys
from pathlib import Path

from emulator.cluster.layout import Layout
from emulator.openstack_guest import connect
from runner.files import private_folder, write_private

SOCKET = "guests"
"""Name of the Unix socket of the guests' gateway."""


def install(layout: Layout) -> None:
    """Write the program, its configuration and, once, the key pair of an engineer of the project.

    It does not read the user's own configuration and keys, and reaches only guests. Without OpenSSH on this machine the
    program is missing too, so that its callers report that.
    """
    import asyncssh  # slow to import and needed only with an OpenStack

    for folder in (layout.guests, layout.guests_bin):
        private_folder(folder)
    key = layout.guests_key
    if not key.exists():
        pair = asyncssh.generate_private_key("ssh-ed25519", comment="the local environment's")
        write_private(key.with_suffix(".pub"), pair.export_public_key().decode())
        write_private(key, pair.export_private_key().decode())
    program = layout.guests_bin / "ssh"
    program.unlink(missing_ok=True)
    real = shutil.which("ssh")
    if real is None:
        return
    proxy = [sys.executable, str(Path(connect.__file__).resolve()), str(layout.socket(SOCKET))]
    command = shlex.join(proxy).replace("%", "%%")
    configuration = layout.guests / "ssh_config"
    write_private(configuration, f"Host *\n    ProxyCommand {command} %h %p\n")
    write_private(program, f'#!/bin/sh\nexec {shlex.join([real, "-F", str(configuration)])} "$@"\n')
    program.chmod(0o700)
