"""Checks that each GPU node has a place in the topology."""

from collections.abc import Iterator, Mapping, Sequence

from components.scheduling.packing import Packing
from stacks.config.errors import ConfigError, Path, few, instead, key, listed
from stacks.derived.partial import PartialSettings
from stacks.settings.scheduling import LEAST_LEVELS, SakkaraSettings, SchedulingSettings

_GROUPS: Path = ("scheduling", "sakkara", "groups")
_LEVELS: Path = ("scheduling", "topology", "levels")


def check(partial: PartialSettings) -> Iterator[ConfigError]:
    """Yield errors of Kueue levels without labeled nodes, and of Sakkara groups that are not a tree of the nodes."""
    scheduling = partial.section(SchedulingSettings)
    for index, (_, without, every) in enumerate(_unlabelled(partial)):
        if without and every:
            yield ConfigError(
                (*_LEVELS, index),
                f"these GPU nodes lack this label: {few(without)}; Kueue would not admit any job",
                "label the nodes, or remove the level",
            )
    if scheduling is None or scheduling.packing is not Packing.SAKKARA:
        return
    if not scheduling.sakkara.groups or len(scheduling.sakkara.levels) < LEAST_LEVELS:
        return
    errors = [*_twice(scheduling.sakkara), *_cycles(scheduling.sakkara)]
    errors = errors or [*_levels(scheduling.sakkara)]
    yield from errors
    facts = partial.facts
    target = partial.target
    if errors or target is None or facts is None or not facts.nodes:
        return
    if len(target.node_selectors(partial)) == 1 + len(
        target.further(partial)
    ):  # those of a pool given whole are unknown
        yield from _nodes(scheduling.sakkara, [node.name for node in facts.nodes])


def warnings(partial: PartialSettings) -> Iterator[str]:
    """Yield a warning for each level whose label some GPU nodes lack: Kueue does not use those nodes."""
    for index, (level, without, every) in enumerate(_unlabelled(partial)):
        if without and not every:
            path = key((*_LEVELS, index))
            yield f"{path}: these GPU nodes lack the label {level}: {few(without)}; Kueue does not use them"


def _unlabelled(partial: PartialSettings) -> Iterator[tuple[str, list[str], bool]]:
    """Yield each level, the GPU nodes that lack its label, and whether all of them lack it."""
    scheduling = partial.section(SchedulingSettings)
    nodes = partial.facts.nodes if partial.facts is not None else ()
    for level in scheduling.topology.levels if scheduling is not None else ():
        without = [node.name for node in nodes if level not in node.labels]
        yield level, without, len(without) == len(nodes)


def _twice(sakkara: SakkaraSettings) -> Iterator[ConfigError]:
    """Yield errors of duplicate group names, and of members of two groups."""
    first: dict[str, Path] = {}
    homes: dict[str, str] = {}
    for index, group in enumerate(sakkara.groups):
        path: Path = (*_GROUPS, index, "name")
        if first.setdefault(group.name, path) != path:
            yield ConfigError(
                path, f"{key(first[group.name])} already has this name", "merge the two groups, or rename one"
            )
            continue
        for position, member in enumerate(group.members):
            if member in homes:
                yield ConfigError(
                    (*_GROUPS, index, "members", position),
                    f"this member is already in {homes[member]}",
                    f"remove it here, or from {homes[member]}",
                )
            homes.setdefault(member, group.name)


def _members(sakkara: SakkaraSettings) -> Mapping[str, Sequence[str]]:
    return {group.name: group.members for group in sakkara.groups}


def _cycles(sakkara: SakkaraSettings) -> Iterator[ConfigError]:
    """Yield one group of each cycle of groups."""
    members, told = _members(sakkara), set[str]()
    for index, group in enumerate(sakkara.groups):
        ring = _way_back(group.name, members)
        if ring and not told & {*ring}:
            told |= {*ring}
            yield ConfigError(
                (*_GROUPS, index, "members"),
                f"{' is in '.join([*reversed(ring), ring[-1]])}: a group cannot contain itself",
                f"remove {ring[1] if len(ring) > 1 else ring[0]} from {group.name}",
            )


def _way_back(name: str, members: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the groups on a path from a group down to itself, or no groups without such a path."""
    ways, seen = [[name]], {name}
    for way in ways:
        for member in members.get(way[-1], ()):
            if member == name:
                return way
            if member in members and member not in seen:
                seen.add(member)
                ways.append([*way, member])
    return []


def _levels(sakkara: SakkaraSettings) -> Iterator[ConfigError]:
    """Yield errors of groups at the wrong level of the tree."""
    members, depth = _members(sakkara), len(sakkara.levels)
    inner = {member for names in members.values() for member in names}
    at = {name: 1 for name in members if name not in inner}
    waiting = list(at)
    for name in waiting:
        for member in members[name]:
            if member in members:
                at[member] = at[name] + 1
                waiting.append(member)
    for index, group in enumerate(sakkara.groups):
        nodes = [member for member in group.members if member not in members]
        lowest = at[group.name] == depth - 1
        if at[group.name] >= depth or (nodes and not lowest) or (lowest and len(nodes) < len(group.members)):
            level = sakkara.levels[at[group.name] - 1] if at[group.name] <= depth else "below the nodes"
            yield ConfigError(
                (*_GROUPS, index, "members"),
                f"this group is at level {level}, and the levels are {listed(sakkara.levels)}",
                "put groups between, take some out, or name other mlbatch:scheduling.sakkara.levels",
                expected=f"nodes in groups of level {sakkara.levels[-2]}, and groups in all others",
            )


def _nodes(sakkara: SakkaraSettings, known: Sequence[str]) -> Iterator[ConfigError]:
    """Yield errors of leaves that are not GPU nodes, and of GPU nodes without a group, which Sakkara does not use."""
    members = _members(sakkara)
    for index, group in enumerate(sakkara.groups):
        for position, member in enumerate(group.members):
            if member not in members and member not in known:
                yield ConfigError(
                    (*_GROUPS, index, "members", position),
                    "there is no GPU node and no group with this name",
                    instead(member, known, "write it as `kubectl get nodes` shows it"),
                    expected=few(known),
                )
    leaves = {member for names in members.values() for member in names}
    left = [name for name in known if name not in leaves]
    if left:
        yield ConfigError(
            _GROUPS,
            f"these GPU nodes are in no group: {few(left)}; quotas count them, and no job would be placed there",
            "add them to their groups",
        )
