"""Waiting for a VM's first boot, by the marker that it leaves."""

from __future__ import annotations

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
"""Another one after each boot (random(4)); the marker has that of the boot in which it was written."""
REFUSED_SECONDS: Final = 300.0
"""For how long a key may be refused: cloud-init lets the user in before sshd starts (cloud-init.service)."""
PAUSE: Final = 10.0
"""Seconds between two questions."""


class FirstBootError(RuntimeError):
    """The first boot failed or is not done in time; the message says in which step, why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class FirstBoot:
    """What a first boot left. versions, checks: as its marker has them. kubeconfig: None without a cluster."""

    versions: Mapping[str, str]
    checks: Mapping[str, str]
    kubeconfig: str | None


def wait(host: Host, seconds: float, say: Callable[[str], None], pause: float = PAUSE) -> FirstBoot:
    """Wait until a VM's first boot is done; `say` is told each time something changes.

    Raises FirstBootError when it failed, when it takes longer than these seconds, when another host answers, or when
    the key is refused for minutes.
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
    """What a VM says of itself. text: what to tell. marker, kubeconfig: None before they are there to be believed."""

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
    """Return what a VM has said without what would act in the terminal of who reads it."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def _is_of_another_boot(host: Host, marker: Mapping[str, Any]) -> bool:
    """Whether the VM has booted since: it goes on then, and says so in a moment. Older markers do not say."""
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
