"""Wait for a VM's first boot, which writes a marker file."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from components.openstack.access.host import (
    KEY_VARIABLE,
    CommandError,
    Host,
    HostError,
    RefusedKeyError,
    WrongHostKeyError,
)

MARKER: Final = "/var/lib/mlbatch/first-boot.json"
KUBECONFIG: Final = "/var/lib/mlbatch/kubeconfig"
BOOT: Final = "/proc/sys/kernel/random/boot_id"
"""File with an ID that changes with each boot (random(4)). The marker has the ID of the boot that wrote it."""
REFUSED_SECONDS: Final = 300.0
"""Seconds that a refused key is tolerated. cloud-init creates the user before sshd starts (cloud-init.service)."""
PAUSE: Final = 10.0
"""Seconds between two requests."""


class FirstBootError(RuntimeError):
    """The first boot failed or timed out. The message has the step, the reason and the fix."""


@dataclass(frozen=True, kw_only=True)
class FirstBoot:
    """The results of a first boot.

    versions, checks: from its marker.
    kubeconfig: None without a cluster.
    """

    versions: Mapping[str, str]
    checks: Mapping[str, str]
    kubeconfig: str | None


def wait(host: Host, seconds: float, say: Callable[[str], None], pause: float = PAUSE) -> FirstBoot:
    """Wait until a VM's first boot is done. Calls `say` for each change of state.

    Raises FirstBootError if it failed, takes longer than these seconds, another host answers, or the key is refused for
    minutes.
    """
    end = time.monotonic() + seconds
    said = ""
    refused_since: float | None = None
    while True:
        answer = _ask(host)
        news, marker = _printable(answer.text), answer.marker
        now = time.monotonic()
        refused_since = (refused_since or now) if answer.is_refused else None
        if refused_since is not None and (now - refused_since >= REFUSED_SECONDS or now + pause > end):
            raise FirstBootError(_refused(host, news))
        if news != said:
            say(news)
            said = news
        if marker is not None and marker["state"] == "ready":
            return FirstBoot(versions=marker["versions"], checks=marker["checks"], kubeconfig=answer.kubeconfig)
        if marker is not None and marker["state"] == "failed":
            raise FirstBootError(_printable(_failure(host, marker)))
        if now + pause > end:
            raise FirstBootError(
                f"the first boot of {host.address} was not done within {seconds:.0f} s; at the end: {news}. It goes on "
                f"by itself: run the update again, with a longer bound if need be"
            )
        time.sleep(pause)


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """The state that a VM reports.

    text: for the user.
    marker, kubeconfig: None until they exist and are valid.
    """

    text: str
    marker: Mapping[str, Any] | None = None
    kubeconfig: str | None = None
    is_refused: bool = False


def _ask(host: Host) -> _Answer:
    try:
        return _read(host)
    except WrongHostKeyError as error:
        raise FirstBootError(str(error)) from None
    except RefusedKeyError as error:
        return _Answer(text=f"it refuses the key ({error})", is_refused=True)
    except CommandError as error:
        return _Answer(text=f"it is up ({error})")
    except HostError as error:
        return _Answer(text=f"it does not answer ({error})")


def _read(host: Host) -> _Answer:
    text = host.read(MARKER)
    if text is None:
        return _Answer(text="it is up, and cloud-init at work")
    marker: dict[str, Any] = json.loads(text)
    if marker["state"] == "failed" and _is_of_another_boot(host, marker):
        return _Answer(text=f"it has booted again, to go on with step '{marker['step']}'")
    kubeconfig = host.read(KUBECONFIG) if marker["state"] == "ready" else None
    return _Answer(text=f"{marker['state']}, step '{marker['step']}'", marker=marker, kubeconfig=kubeconfig)


def _printable(text: str) -> str:
    """Return a VM's output without control characters, which could affect the user's terminal."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def _is_of_another_boot(host: Host, marker: Mapping[str, Any]) -> bool:
    """Return whether the VM has booted since it wrote the marker. It then continues and soon writes a new one.

    Older markers have no boot ID.
    """
    return "boot" in marker and marker["boot"] != (host.read(BOOT) or "").strip()


def _refused(host: Host, news: str) -> str:
    why = (
        "it has to be the private half of mlbatch:openstack.sshPublicKey, without a passphrase unless an agent has it"
        if Path(host.key_file).is_file()
        else "there is no such file on this machine"
    )
    return (
        f"{host.address} does not let {host.user} in with the key {host.key_file} "
        f"(mlbatch:openstack.privateKeyFile, or ${KEY_VARIABLE}): {news}. Waiting does not help: {why}"
    )


def _failure(host: Host, marker: Mapping[str, Any]) -> str:
    log = "\n".join(f"  {line}" for line in marker["log"])
    return (
        f"the first boot of {host.address} failed in step '{marker['step']}': {marker['message']}. The end of its log, "
        f"/var/log/mlbatch-first-boot.log:\n{log}\nOnce the cause is gone, reboot the VM: it goes on with that step"
    )
