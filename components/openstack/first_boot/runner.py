"""Runs the steps of a VM's first boot in their order, each until it has succeeded once.

systemd starts it at every boot. It runs in the VM, by the system's Python (3.10 on Ubuntu 22.04), and needs no package.
What it knows comes from `/etc/mlbatch/first-boot.json`: the steps, each a program beside this one, and what they are
told. A step says by its exit code how it ended (DONE, REBOOT, REFUSED); one that failed is tried again, so each has to
bear being run again from anywhere. Its completion is on the disk before the next one starts: after a reboot or a power
cut the rest is run.

The marker, `/var/lib/mlbatch/first-boot.json`, tells the state at any time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PLAN = Path("/etc/mlbatch/first-boot.json")
FOLDER = Path("/var/lib/mlbatch")
MARKER = FOLDER / "first-boot.json"
STATE = FOLDER / "first-boot.d"
RESULTS = STATE / "results"
LOG = Path("/var/log/mlbatch-first-boot.log")
BOOT = Path("/proc/sys/kernel/random/boot_id")
DONE, REBOOT, REFUSED = 0, 10, 11
"""How a step ends: it is done; it wants a boot first; no other attempt would help. Else it is tried again."""
TAIL = 20
"""Lines of the log in the marker of a failure."""


def write(file: Path, text: str) -> None:
    """Replace a file, whole or not at all, whenever the power is cut."""
    part = file.with_name(f"{file.name}.part")
    with part.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def mark(state: str, step: str, message: str = "", log: tuple[str, ...] = ()) -> None:
    """Say in the marker how far it is in this boot, with what the steps recorded."""
    recorded = {
        kind: {file.name: file.read_text().strip() for file in sorted((RESULTS / kind).glob("*"))}
        for kind in ("versions", "checks")
    }
    told = {"state": state, "step": step, "message": message, "log": log, "boot": BOOT.read_text().strip()}
    write(MARKER, json.dumps({**told, **recorded}, indent=2))


def say(text: str) -> None:
    """Write a line into the log and on the VM's console."""
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}"
    print(f"mlbatch: {line}", flush=True)
    with LOG.open("a") as log:
        log.write(f"{line}\n")


def attempt(step: dict[str, object], environment: dict[str, str]) -> int:
    """Run a step once; return its exit code, or 124 where it took too long."""
    program = Path(__file__).with_name(f"{step['name']}.sh")
    own = {"STATE": str(STATE), "RESULTS": str(RESULTS), "REBOOT": str(REBOOT), "REFUSED": str(REFUSED)}
    with LOG.open("ab") as log:
        return subprocess.run(
            ["timeout", "--kill-after=60", str(step["seconds"]), program],
            env={**os.environ, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ).returncode


def run(step: dict[str, object], environment: dict[str, str]) -> int:
    """Run a step until it is done, wants a boot, is refused or was tried often enough; return its last exit code."""
    attempts = int(str(step["attempts"]))
    code = DONE
    for number in range(1, attempts + 1):
        say(f"{step['name']}: attempt {number} of {attempts}")
        code = attempt(step, environment)
        if code in (DONE, REBOOT, REFUSED):
            break
        say(f"{step['name']}: ended with {code}")
        if number < attempts:
            time.sleep(float(environment["PAUSE"]))
    return code


def main() -> int:
    """Run what is not done yet; 1 when a step failed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    plan = json.loads(PLAN.read_text())
    for step in plan["steps"]:
        name = step["name"]
        done = STATE / f"{name}.done"
        if done.exists():
            continue
        mark("running", name)
        code = run(step, plan["environment"])
        if code == REBOOT:
            say(f"{name}: boots once more")
            return subprocess.run(["systemctl", "reboot"]).returncode
        if code != DONE:
            tail = LOG.read_text(errors="replace").splitlines()[-TAIL:]
            mark("failed", name, f"step '{name}' ended with {code}", tuple(tail))
            print(*tail, sep="\n", flush=True)
            return 1
        write(done, "")
        say(f"{name}: done")
    mark("ready", plan["steps"][-1]["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
