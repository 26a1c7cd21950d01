"""Waiting for a VM's first boot, by the marker that it leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.openstack.access.host import Host, HostError, WrongHostKeyError

MARKER: Final = "/var/lib/mlbatch/first-boot.json"
KUBECONFIG: Final = "/var/lib/mlbatch/kubeconfig"
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

    Raises FirstBootError when it failed, when it takes longer than these seconds, or when another host answers.
    """
    end = time.monotonic() + seconds
    said = ""
    while True:
        news, marker = _ask(host)
        if news != said:
            say(news)
            said = news
        if marker is not None and marker["state"] == "ready":
            return FirstBoot(versions=marker["versions"], checks=marker["checks"], kubeconfig=host.read(KUBECONFIG))
        if marker is not None and marker["state"] == "failed":
            raise FirstBootError(_failure(host, marker))
        if time.monotonic() + pause > end:
            raise FirstBootError(
                f"the first boot of {host.address} was not done within {seconds:.0f} s; at the end: {news}. It goes on "
                f"by itself: run the update again, with a longer bound if need be"
            )
        time.sleep(pause)


def _ask(host: Host) -> tuple[str, dict[str, Any] | None]:
    """Return what to say, and the marker when there is one."""
    try:
        text = host.read(MARKER)
    except WrongHostKeyError as error:
        raise FirstBootError(str(error)) from None
    except HostError as error:
        return f"it does not answer ({error})", None
    if text is None:
        return "it is up, and cloud-init at work", None
    marker = json.loads(text)
    return f"{marker['state']}, step '{marker['step']}'", marker


def _failure(host: Host, marker: Mapping[str, Any]) -> str:
    log = "\n".join(f"  {line}" for line in marker["log"])
    return (
        f"the first boot of {host.address} failed in step '{marker['step']}': {marker['message']}. The end of its log, "
        f"/var/log/mlbatch-first-boot.log:\n{log}\nOnce the cause is gone, reboot the VM: it goes on with that step"
    )
