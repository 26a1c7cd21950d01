"""Removes from a node's scratch space the folders of pods that have ended.

A pod's folder has the pod's uid as its name; the kubelet makes it when a container mounts it. It is in use as long as
the kubelet keeps `volume-subpaths` for the pod, which goes when all its containers have ended and its volumes are taken
down (kubernetes/kubernetes, pkg/volume/util/subpath/subpath_linux.go: getSubpathBindTarget, doCleanSubPaths). That is
on the node's disk, so that a reboot or a restart of the kubelet changes nothing.

Other names are left alone, and links are never followed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from components.nodes.agents import node
from components.nodes.agents.commands import CommandError, Run, done

PODS = "/var/lib/kubelet/pods"
"""Where the kubelet keeps what it has of each pod (its --root-dir's default)."""

GRACE_SECONDS = 300.0
"""How long a folder is unused before it goes: the kubelet makes it a moment before it mounts it."""

REMOVAL_SECONDS = 20
"""How long one round deletes; the next one goes on. Terabytes take longer than a round may."""

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDED = ".ended"
_TIMED_OUT = 124


class Folders:
    """The folders of a scratch space.

    own_pod: uid of the pod that this program runs in. The kubelet's folder of it shows that PODS is where this kubelet
    keeps them: elsewhere every pod would seem to have ended.
    """

    def __init__(self, run: Run, folder: str, own_pod: str, now: Callable[[], float] = time.monotonic) -> None:
        self._run, self._folder, self._own_pod, self._now = run, folder, own_pod, now
        self._unused_since: dict[str, float] = {}

    def clean(self) -> None:
        """Remove what is unused for long enough, as much as fits into a round. Raises CommandError.

        A folder is renamed first, so that nobody gets what is half deleted.
        """
        found = self._names()
        uids = {name for name in found if _UID.fullmatch(name)}
        unused = uids - self._used()
        now = self._now()
        self._unused_since = {uid: self._unused_since.get(uid, now) for uid in unused}
        ended = {name for name in found if name.endswith(_ENDED) and _UID.fullmatch(name.removesuffix(_ENDED))}
        for uid in sorted(unused):
            name = f"{uid}{_ENDED}"
            if now - self._unused_since[uid] >= GRACE_SECONDS and name not in ended:
                done(self._run, "mv", "--no-target-directory", self._path(uid), self._path(name))
                node.log.info("the pod of %s has ended: its folder goes", uid)
                ended.add(name)
        if ended:
            self._remove(sorted(ended))

    def _names(self) -> set[str]:
        """Return the names of all folders; a link to one is none."""
        options = ("-mindepth", "1", "-maxdepth", "1", "-type", "d", "-printf", "%f\\n")
        return set(done(self._run, "find", self._folder, *options).splitlines())

    def _used(self) -> set[str]:
        """Return the uids of the pods that still have folders of volumes mounted."""
        options = ("-mindepth", "1", "-maxdepth", "2", "-type", "d", "-printf", "%P\\n")
        kept = [line.partition("/") for line in done(self._run, "find", PODS, *options).splitlines()]
        if self._own_pod not in {uid for uid, _, _ in kept}:
            raise CommandError(f"the kubelet keeps its pods elsewhere than in {PODS}: nothing says which have ended")
        return {uid for uid, _, below in kept if below == "volume-subpaths"}

    def _remove(self, ended: list[str]) -> None:
        paths = [self._path(name) for name in ended]
        answer = self._run(["timeout", str(REMOVAL_SECONDS), "rm", "-r", "--force", "--one-file-system", "--", *paths])
        if answer.status not in (0, _TIMED_OUT):
            raise CommandError(f"some of {len(ended)} folders of ended pods stay: {answer.text.strip()[-500:]}")

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"
