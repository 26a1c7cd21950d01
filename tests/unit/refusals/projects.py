"""Mistakes that show against what an OpenStack project says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from stacks.targets.cpouta.key_file import Obstacle
from stacks.targets.cpouta.project_facts import ProjectFacts, Room, RuleFacts, ServerFacts, VolumeFacts
from tests.unit.test_cpouta_project import FACTS, VOLUME, TestWhatIsThere
from tests.unit.test_cpouta_settings import shipped

_FULL: Final = TestWhatIsThere.FULL
_NO_ROOM: Final = {name: Room(limit=room.used, used=room.used) for name, room in FACTS.quotas.items()}
_WHOLE: Final = VolumeFacts(size_gib=500, status="available", has_system=False)
_EXISTING: Final = {"volume": {"existing": VOLUME}}
_OTHER: Final = "ssh-ed25519 AAAAother somebody"

Case = tuple[Mapping[str, Any], ProjectFacts]


def _runs(flavor: str, cluster: str = "") -> ProjectFacts:
    """A stack whose VM has a flavor."""
    server = ServerFacts(flavor=flavor, cluster=cluster)
    return replace(_FULL, server=server, quotas={})


def _lets_in(*rules: tuple[str, str | None, str]) -> ProjectFacts:
    found = tuple(RuleFacts(ports=ports, source=source, description=text) for ports, source, text in rules)
    return replace(_FULL, rules=found, quotas={})


OF_PROJECTS: Final[tuple[Case, ...]] = (
    (shipped(flavor="gpu.1.1gpu"), FACTS),
    (shipped(image="Ubuntu-24.04", ubuntu="24.04"), replace(FACTS, images={})),
    (shipped(image="our-ubuntu", ubuntu="22.04"), FACTS),
    (shipped(network="project_2001235"), FACTS),
    (shipped(pool="internet"), FACTS),
    (shipped(availabilityZone="mars"), FACTS),
    (shipped(), replace(FACTS, volume_types=frozenset({"capacity"}))),
    (shipped(), replace(FACTS, obstacle=Obstacle("others may read it", "chmod 600 it"))),
    (shipped(), replace(FACTS, key_pair=_OTHER)),
    (shipped(bootVolume=80), replace(FACTS, quotas=_NO_ROOM)),
    (shipped(ports=[{"name": "web", "port": 443, "source": "192.0.2.0/24"}]), replace(_FULL, quotas=_NO_ROOM)),
    (shipped(volume={"size": 400}), _FULL),
    (shipped(**_EXISTING), FACTS),
    (shipped(**_EXISTING), replace(FACTS, existing=replace(_WHOLE, has_system=True))),
    (shipped(**_EXISTING), replace(FACTS, existing=replace(_WHOLE, status="error"))),
    (shipped(**_EXISTING), replace(FACTS, existing=replace(_WHOLE, servers=frozenset({"b", "a"})))),
    (shipped(**_EXISTING), replace(FACTS, existing=replace(_WHOLE, size_gib=74))),
    (shipped(**_EXISTING), replace(FACTS, existing=replace(_WHOLE, kind="capacity"))),
    (shipped(kind={"kubernetes": "1.31.12"}), _runs("standard.xxlarge", "Kubernetes 1.34.0, port 6443")),
    (shipped(kind={"apiPort": 6444}), _runs("standard.xxlarge", "Kubernetes 1.34.0, port 6443")),
    # what is warned of
    (shipped(flavor="standard.3xlarge"), _runs("standard.xxlarge")),
    (shipped(), _runs("hpc.6.14core")),
    (shipped(), _runs("gpu.1.1gpu")),
    (shipped(), _lets_in(("all", None, ""), ("22", "0.0.0.0/0", "SSH from me"), ("8080", "group", "helper"))),
)
