"""What the VM gets of the user who runs an update, independent of that user's SSH configuration."""

import subprocess
from importlib import resources
from itertools import pairwise
from pathlib import Path

from components.openstack.access.host import Host

HOSTILE = """
Host *
    ForwardAgent yes
    ControlMaster auto
    ControlPath /tmp/%r@%h
    StrictHostKeyChecking no
"""


def effective(tmp_path: Path, options: list[str]) -> dict[str, str]:
    """Return what OpenSSH itself makes of options under a configuration that would give all away."""
    config = tmp_path / "config"
    config.write_text(HOSTILE)
    done = subprocess.run(["ssh", "-F", config, "-G", *options, "vm"], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_reading_a_file_lends_the_vm_no_agent_and_takes_nobodys_connection(tmp_path: Path) -> None:
    host = Host(
        address="203.0.113.7", user="ubuntu", private_key_file="~/.ssh/key", public_key="ssh-ed25519 AAAA", vm="vm-1"
    )
    found = effective(tmp_path, host._options("/dev/null"))
    assert (found["forwardagent"], found["controlmaster"], found["stricthostkeychecking"]) == ("no", "false", "true")
    assert found.get("controlpath", "none") == "none"


def test_the_tunnel_lends_the_vm_no_agent(tmp_path: Path) -> None:
    script = resources.files("components.openstack.access").joinpath("files", "tunnel.sh").read_text()
    words = script[script.index("ssh -f -N") : script.index('"$USER_NAME@$ADDRESS" </dev/null')].split()
    options = [word for flag, word in pairwise(words) if flag == "-o" and "$" not in word]
    found = effective(tmp_path, [each for word in options for each in ("-o", word)])
    assert (found["forwardagent"], found["stricthostkeychecking"]) == ("no", "true")
