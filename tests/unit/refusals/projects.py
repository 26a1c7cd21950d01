"""Errors that depend on facts of an OpenStack project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from stacks.targets.cpouta.key_file import Obstacle
from stacks.targets.cpouta.project_facts import FlavorFacts, ProjectFacts, Room, RuleFacts, ServerFacts, VolumeFacts
from tests.unit.test_cpouta_project import FACTS, GONE, NAMED, NOTED, OTHER_KEY, TestWhatIsThere, existing
from tests.unit.test_cpouta_settings import shipped

_FULL: Final = TestWhatIsThere.FULL
_NO_ROOM: Final = {name: Room(limit=room.used, used=room.used) for name, room in FACTS.quotas.items()}
_WHOLE: Final = VolumeFacts(size_gib=500, status="available", has_system=False)
_CLUSTER: Final = "Kubernetes 1.34.0, port 6443"
_WEB: Final = {"name": "web", "port": 443, "source": "203.0.113.7/32"}
_GPU_FLAVORS: Final = {
    name: FlavorFacts(cores=14 * gpus, memory_mib=114_688 * gpus)
    for gpus, name in ((1, "gpu.1.1gpu"), (2, "gpu.1.2gpu"))
}
_TIGHT: Final[Mapping[str, Room]] = {
    "instances": Room(limit=8, used=8),
    "cores": Room(limit=8, used=3),
    "memory": Room(limit=32_768, used=2048),
    "volumes": Room(limit=2, used=2),
    "gigabytes": Room(limit=1000, used=600),
    "floating addresses": Room(limit=2, used=2),
    "security groups": Room(limit=10, used=10),
    "security group rules": Room(limit=100, used=98),
    "ports": Room(limit=5, used=5),
}

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
    (shipped(), replace(FACTS, obstacle=Obstacle("other users can read the file", "chmod 600 it"))),
    (shipped(), replace(FACTS, key_pair=OTHER_KEY)),
    (shipped(bootVolume=80), replace(FACTS, quotas=_NO_ROOM)),
    (shipped(ports=[{"name": "web", "port": 443, "source": "192.0.2.0/24"}]), replace(_FULL, quotas=_NO_ROOM)),
    (shipped(volume={"size": 400}), _FULL),
    (shipped(**NAMED), FACTS),
    (shipped(**NAMED), replace(FACTS, existing=replace(_WHOLE, has_system=True))),
    (shipped(**NAMED), replace(FACTS, existing=replace(_WHOLE, status="error"))),
    (shipped(**NAMED), replace(FACTS, existing=replace(_WHOLE, servers=frozenset({"b", "a"})))),
    (shipped(**NAMED), replace(FACTS, existing=replace(_WHOLE, size_gib=74))),
    (shipped(**NAMED), replace(FACTS, existing=replace(_WHOLE, kind="capacity"))),
    (shipped(kind={"kubernetes": "1.31.12"}), _runs("standard.xxlarge", "Kubernetes 1.34.0, port 6443")),
    (shipped(kind={"apiPort": 6444}), _runs("standard.xxlarge", "Kubernetes 1.34.0, port 6443")),
    (shipped(), replace(FACTS, routes={"project_2001234": frozenset({""}), "other": frozenset({"public"})})),
    *((shipped(), replace(FACTS, ambiguous=frozenset({name, "elsewhere"}))) for name in ("project_2001234", "public")),
    *((shipped(), replace(FACTS, quotas={**FACTS.quotas, what: room})) for what, room in _TIGHT.items()),
    (shipped(), replace(FACTS, quotas={"ports": Room(limit=5, used=7)})),
    (shipped(volume={"size": 601}), _FULL),
    (shipped(bootVolume=101), _FULL),
    *(
        (shipped(kind=kind), facts)
        for kind in ({"kubernetes": "1.31.12"}, {"apiPort": 6444})
        for facts in (NOTED, replace(GONE, volume=replace(_WHOLE, status="in-use", cluster=_CLUSTER)))
    ),
    (shipped(**NAMED), existing(status="reserved")),
    (shipped(**NAMED), existing(cluster="Kubernetes 1.33.4, port 6443")),
    # what is warned of
    (shipped(kind={"kubernetes": "1.31.12", "recreate": True}), NOTED),
    (shipped(), replace(FACTS, own_images=frozenset({"Ubuntu-22.04"}))),
    (shipped(), replace(FACTS, doubles={"floating ip": ("a1", "a2"), "volume": ("v1", "v2", "v3")})),
    (shipped(flavor="gpu.1.1gpu"), replace(_runs("standard.xxlarge"), flavors=_GPU_FLAVORS)),
    (shipped(flavor="gpu.1.2gpu"), replace(_runs("gpu.1.1gpu"), flavors=_GPU_FLAVORS)),
    (
        shipped(ports=[_WEB]),
        _lets_in(
            ("22", "203.0.113.7/32", "SSH from me"),
            ("22", "198.51.100.7/32", "SSH from me"),
            ("443", "198.51.100.7/32", "web"),
            ("22", "0.0.0.0/0", ""),
            ("all", None, ""),
        ),
    ),
    *(
        (shipped(), _lets_in(rule))
        for rule in (
            ("22", "0.0.0.0/0", "SSH from everywhere"),
            ("22", "0.0.0.0/0", "SSH from me"),
            ("22", "198.51.100.7/32", "SSH from nobody"),
            ("8080", "198.51.100.7/32", "SSH from me"),
            ("443", "198.51.100.0/24", "web"),
            ("22", "other-group", "helper"),
        )
    ),
    (
        shipped(),
        replace(
            _FULL,
            other_groups={
                "default": (
                    RuleFacts(ports="22", source="0.0.0.0/0", description=""),
                    RuleFacts(ports="all", source=None, description=""),
                ),
                "new": (),
            },
        ),
    ),
    (shipped(), replace(_FULL, unguarded=("p2",), is_left_out=True)),
    (shipped(), replace(_FULL, is_left_out=True)),
    (shipped(flavor="standard.3xlarge"), _runs("standard.xxlarge")),
    (shipped(), _runs("hpc.6.14core")),
    (shipped(), _runs("gpu.1.1gpu")),
    (shipped(), _lets_in(("all", None, ""), ("22", "0.0.0.0/0", "SSH from me"), ("8080", "group", "helper"))),
)
