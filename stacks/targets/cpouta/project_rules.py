"""What the project has to offer before anything is made: flavor, image, network, pool, and room in its quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from components.openstack import catalogue
from components.openstack.flavors import FLAVORS
from components.openstack.notes import CLUSTER, SSH_RULE, cluster_note
from stacks.config.errors import ConfigError, Path, key, listed, nearest
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.derived.partial import PartialSettings
from stacks.settings.addresses import DOCUMENTATION, within
from stacks.settings.mlops import MlopsSettings
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.targets.cpouta.firewall import SSH_PORT
from stacks.targets.cpouta.interfaces import LOCAL_PORTS
from stacks.targets.cpouta.project_facts import ProjectFacts, VolumeFacts
from stacks.targets.cpouta.settings import IMAGES, LEAST_VOLUME, SECTION, TOO_SLOW, CpoutaGpuSettings, OpenstackSettings
from stacks.validation.mlops import chosen

_RAY_CORES: Final = 4
"""What the platform's setup.sh wants on top for Ray."""

_REGISTRY: Final = 5001
"""Of the VM's loopback, where the registry beside kind listens (components/openstack/first_boot/files/registry.sh)."""
_RULES_OF_A_GROUP: Final = 2
"""Neutron gives each new security group two, which let out everything by IPv4 and IPv6, and counts them."""


def fits(partial: PartialSettings, openstack: OpenstackSettings) -> Iterator[ConfigError]:
    """Yield what the settings ask of the VM and its cluster, and neither can give.

    NVshare says itself which nodes it needs.
    """
    gpu, mlops, queueing = (
        partial.section(CpoutaGpuSettings),
        partial.section(MlopsSettings),
        partial.section(QueueingSettings),
    )
    flavor = openstack.machine
    yield from _api_port(openstack)
    nvshare = partial.section(NvshareSettings)
    if nvshare is not None and nvshare.enabled and flavor.gpus and gpu is not None and not gpu.operator:
        operator = key(("gpu", "operator"))
        yield ConfigError(
            path=("nvshare", "enabled"),
            value=True,
            message=f"NVshare takes the GPU as a pod does, and nobody offers it to pods while {operator} is false",
            expected=f"{operator} and {key(('gpu', 'featureDiscovery'))} true beside it",
            hint="set both, or remove the key",
        )
    if gpu is not None and gpu.operator and not flavor.gpus:
        yield ConfigError(
            path=("gpu", "operator"),
            value=True,
            message=f"flavor {flavor.name} has no GPU",
            expected=f"false, or a flavor with GPUs: {listed(name for name, one in FLAVORS.items() if one.gpus)}",
            hint=f"remove the key, or set {key((*SECTION, 'flavor'))} to another one",
        )
    if gpu is not None and gpu.operator and gpu.install_driver:
        yield ConfigError(
            path=("gpu", "installDriver"),
            value=True,
            message="the VM's first boot installs the driver, and a second one would break it",
            expected=f"false; {key((*SECTION, 'gpu', 'driver'))} says which",
            hint="remove the key",
        )
    if gpu is not None and gpu.operator and not gpu.install_toolkit:
        yield ConfigError(
            path=("gpu", "installToolkit"),
            value=False,
            message="the first boot sets up NVIDIA's runtime for Docker alone: kind's node is a container with a "
            "containerd of its own, and pods there would see no GPU",
            expected="true where the operator offers the GPUs",
            hint="remove the key",
        )
    if mlops is None or not mlops.enabled or (deployment := chosen(mlops)) is None:
        return
    ray = _RAY_CORES if queueing is not None and queueing.enabled and queueing.kuberay.enabled else 0
    if flavor.cores < deployment.cores + ray:
        enough = [name for name, one in FLAVORS.items() if one.cores >= deployment.cores + ray]
        yield ConfigError(
            path=("mlops", "option"),
            value=mlops.option,
            message=f"{deployment.overlay} needs {deployment.cores + ray} cores, and flavor {flavor.name} has "
            f"{flavor.cores}",
            expected=f"a smaller deployment, or a flavor with as many: {listed(enough)}",
            hint=f"remove the key for pipelines with KServe, or set {key((*SECTION, 'flavor'))} to {enough[0]}",
        )


def _api_port(openstack: OpenstackSettings) -> Iterator[ConfigError]:
    """Yield a port of the API server that the VM needs otherwise, now or later: kind cannot change it any more."""
    port = openstack.kind.api_port
    if port in {_REGISTRY, *LOCAL_PORTS}:
        yield ConfigError(
            path=(*SECTION, "kind", "apiPort"),
            value=port,
            message="the registry beside kind has this port"
            if port == _REGISTRY
            else "a user interface of the MLOps platform is forwarded by this port of the VM",
            expected=f"another port than {listed(sorted({_REGISTRY, *LOCAL_PORTS}))}",
            hint="remove the key for 6443",
        )


def unoffered(partial: PartialSettings, openstack: OpenstackSettings) -> Iterator[str]:
    """Yield that teams have GPUs which nobody offers to pods."""
    gpu, flavor = partial.section(CpoutaGpuSettings), openstack.machine
    if gpu is not None and not gpu.operator and flavor.gpus and partial.known_teams:
        yield (
            f"{key(('gpu', 'operator'))} is false, so that nobody offers the GPUs of {flavor.name} to pods: jobs of "
            f"teams that ask for one wait; set it and {key(('gpu', 'featureDiscovery'))} to true"
        )


def ended(openstack: OpenstackSettings) -> Iterator[str]:
    """Yield that the Kubernetes of the cluster gets no fixes any more, where kind has a later one."""
    version = openstack.kind.kubernetes
    since = catalogue.ENDED.get(version.rpartition(".")[0])
    if since is not None:
        yield (
            f"{key((*SECTION, 'kind', 'kubernetes'))}: Kubernetes {version} gets no fixes since {since}, not even of "
            "security; take an older one than the default where something needs it, and let nobody in but those you "
            "trust"
        )


def offers(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield what the settings name and the project does not have, and why nobody could sign in to its VM."""
    if facts.obstacle is not None:
        yield ConfigError(
            path=(*SECTION, "privateKeyFile"),
            value=openstack.private_key_file,
            message=facts.obstacle.message,
            expected="the file of sshPublicKey's private half, which the stack reaches the VM by",
            hint=facts.obstacle.hint,
        )
    wanted = (
        ("flavor", openstack.flavor, [name for name in facts.flavors if name in FLAVORS]),
        ("image", openstack.image, [name for name in sorted(facts.images) if name in IMAGES or openstack.ubuntu]),
        ("network", openstack.network, sorted(facts.networks)),
        ("pool", openstack.pool, sorted(facts.pools)),
        ("availabilityZone", openstack.availability_zone, sorted(facts.zones)),
    )
    for field, name, there in wanted:
        if name is not None and name not in there:
            yield _absent((*SECTION, field), name, there)
    for field, name in (("network", openstack.network), ("pool", openstack.pool)):
        if name in facts.ambiguous:
            yield ConfigError(
                path=(*SECTION, field),
                value=name,
                message="the project sees several networks of this name, and nothing says which one is meant",
                expected="a name that one network has",
                hint="give one of them another name: `openstack network list`, then `openstack network set --name`",
            )
    volume = openstack.volume
    if volume.existing is None and volume.type not in facts.volume_types:
        yield _absent((*SECTION, "volume", "type"), volume.type, sorted(facts.volume_types))
    yield from _route(openstack, facts)
    yield from _volume(openstack, facts)
    yield from _cluster(openstack, facts)
    yield from _key_pair(openstack, facts)


def _key_pair(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield a key pair of the user's that is in the way: Nova keeps them by user, and takes no second one of a name."""
    there = facts.key_pair
    if facts.server is not None or there is None or there.split()[:2] == openstack.ssh_public_key.split()[:2]:
        return
    yield ConfigError(
        path=(*SECTION, "name"),
        value=openstack.name,
        message="the user of these credentials has a key pair of this name, with another key, and no VM that it "
        "belongs to: OpenStack would refuse a second one, half-way",
        expected="a name that no key pair has",
        hint=f"set another name; or, if nobody needs that key pair, `openstack keypair delete {openstack.name}`, which "
        "takes no key from any VM",
    )


def _route(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield a network that no router joins to the pool: a floating address could not be given to anything in it."""
    network, pool = openstack.network, openstack.pool
    led = facts.routes.get(network)
    if led is None or pool in led or pool not in facts.pools:
        return
    fit = sorted(name for name, pools in facts.routes.items() if pool in pools)
    router = f"{network}-router"
    yield ConfigError(
        path=(*SECTION, "network"),
        value=network,
        message=f"no router leads from this network to {pool}, so that no floating address would reach the VM",
        expected=listed(fit) if fit else f"a network with a router to {pool}",
        hint=f"`openstack router create --external-gateway {pool} {router}`, then "
        f"`openstack router add subnet {router} <subnet>` with the subnet that `openstack subnet list` has of it",
    )


def _cluster(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield a cluster that the VM's volume does not have: a first boot would refuse it, with the old VM gone."""
    kind, had = openstack.kind, _noted(openstack, facts)
    if had in ("", kind.note) or kind.recreate:
        return
    moved = had.startswith(cluster_note(kind.kubernetes, 0).removesuffix("0"))
    volume = openstack.volume.existing or openstack.name
    by_now = (
        f"; or, where that is on it by now, `openstack volume set --property '{CLUSTER}={kind.note}' {volume}`"
        if facts.server is None
        else ""
    )
    yield ConfigError(
        path=(*SECTION, "kind", "apiPort" if moved else "kubernetes"),
        value=kind.api_port if moved else kind.kubernetes,
        message=f"the cluster on the volume has {had}, which kind cannot change, and the first boot of a new VM would "
        "refuse it",
        expected=had,
        hint=f"write what it has; or save what is in the cluster and set {key((*SECTION, 'kind', 'recreate'))} to "
        f"true, which removes it with all of its data{by_now}",
    )


def _noted(openstack: OpenstackSettings, facts: ProjectFacts) -> str:
    """Return which cluster is on the volume.

    What its VM has is the newer word: no stack writes to a volume that it was told of.
    """
    server, volume = facts.server, facts.volume if openstack.volume.existing is None else facts.existing
    if server is not None and (volume is None or not volume.servers or server.id in volume.servers):
        return server.cluster
    return volume.cluster if volume is not None else ""


def _absent(path: Path, name: str, there: list[str]) -> ConfigError:
    meant = nearest(name, there)
    more = "ask CSC's service desk for it; until then " if path[-1] == "flavor" and name in FLAVORS else ""
    return ConfigError(
        path=path,
        value=name,
        message=f"the project has no {_WORDS[path[-1]]} of this name",
        expected=listed(there),
        hint=more + (f"did you mean {meant}?" if meant and not more else "take one of those"),
    )


_WORDS: Mapping[str | int, str] = {
    "flavor": "flavor",
    "image": "image",
    "network": "network",
    "pool": "external network",
    "availabilityZone": "availability zone of VMs",
    "type": "volume type",
}


def _volume(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    path, volume = (*SECTION, "volume"), openstack.volume
    if volume.existing is None:
        if facts.volume is not None and volume.size < facts.volume.size_gib:
            yield ConfigError(
                path=(*path, "size"),
                value=volume.size,
                message=f"the volume has {facts.volume.size_gib} GiB, and volumes do not shrink",
                expected=f"at least {facts.volume.size_gib}",
                hint="write the size that it has",
            )
        return
    found, there = facts.existing, (*path, "existing")
    if found is None:
        yield ConfigError(
            path=there,
            value=volume.existing,
            message="the project has no volume of this id",
            expected="the id of a volume in the project of the credentials",
            hint="`openstack volume list` prints them; accept a transfer from another project first",
        )
    elif found.has_system:
        yield ConfigError(
            path=there,
            value=volume.existing,
            message="an image was written to this volume, and its data would be lost to a new file system",
            expected="an empty volume, or one that held such a platform's data",
            hint="name another volume, or remove the key for a new one",
        )
    elif (wrong := _unfit(found, facts.server.id if facts.server is not None else "")) is not None:
        message, hint = wrong
        yield ConfigError(
            path=there,
            value=volume.existing,
            message=message,
            expected=f"a volume of at least {LEAST_VOLUME} GiB that is available, or that the stack's VM has",
            hint=hint,
        )


def _unfit(volume: VolumeFacts, server: str) -> tuple[str, str] | None:
    """Return why a volume cannot be the platform's, and what to do, None where it can. server: id of the stack's VM."""
    another = "name another volume, or remove the key for a new one"
    others = volume.servers - {server}
    if others:
        return f"VM {listed(sorted(others))} has it", f"`openstack server remove volume {min(others)} <volume>` first"
    if volume.status != "available" and not volume.servers:
        return (
            f"its status is {volume.status}, in which no VM can take it",
            f"wait until it is available, as `openstack volume show` tells; where it stays {volume.status}, {another}",
        )
    if volume.size_gib < LEAST_VOLUME:
        return f"the platform's images and volumes do not fit into its {volume.size_gib} GiB", another
    if volume.kind == TOO_SLOW:
        return f"it is of type {TOO_SLOW}, too slow for databases such as the cluster's", another
    return None


@dataclass(frozen=True, kw_only=True)
class Need:
    """How much more of something the stack takes than it has. unit: behind the numbers. path: what asks for it."""

    amount: int
    path: Path
    unit: str = ""


def needs(openstack: OpenstackSettings, facts: ProjectFacts) -> Mapping[str, Need]:
    """Return what the stack does not have yet, by quota."""
    flavor, server = facts.flavors.get(openstack.flavor), facts.server
    old = facts.flavors.get(server.flavor) if server is not None else None
    boots, booted = openstack.boot_volume or 0, server.boot_volume_gib if server is not None else 0
    own = openstack.volume.existing is None
    has = facts.volume.size_gib if facts.volume is not None else 0
    by_flavor, by_name = (*SECTION, "flavor"), (*SECTION, "name")
    by_volume = (*SECTION, "volume", "size") if own and openstack.volume.size > has else (*SECTION, "bootVolume")
    open_already = {(rule.ports, rule.source) for rule in facts.rules}
    return {
        "instances": Need(amount=0 if server else 1, path=by_name),
        "cores": Need(amount=(flavor.cores if flavor else 0) - (old.cores if old else 0), path=by_flavor),
        "memory": Need(
            amount=(flavor.memory_mib if flavor else 0) - (old.memory_mib if old else 0), path=by_flavor, unit=" MiB"
        ),
        "volumes": Need(amount=(1 if own and not has else 0) + (1 if boots and not booted else 0), path=by_volume),
        "gigabytes": Need(
            amount=(openstack.volume.size - has if own else 0) + max(boots - booted, 0), path=by_volume, unit=" GiB"
        ),
        "floating addresses": Need(amount=0 if facts.has_address else 1, path=(*SECTION, "pool")),
        "security groups": Need(amount=0 if facts.has_group else 1, path=by_name),
        "security group rules": Need(
            amount=len([rule for rule in openstack.rules if (str(rule.port), rule.source) not in open_already])
            + (0 if facts.has_group else _RULES_OF_A_GROUP),
            path=(*SECTION, "ports" if openstack.ports else "sshFrom"),
        ),
        "ports": Need(amount=0 if facts.has_port else 1, path=by_name),
    }


def room(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield the quotas that do not suffice, and by how much."""
    for what, need in needs(openstack, facts).items():
        quota = facts.quotas.get(what)
        if quota is None or quota.limit is None or need.amount <= 0:
            continue
        free = quota.limit - quota.used
        if need.amount > free:
            yield ConfigError(
                path=need.path,
                message=f"the project's quota of {what} is {need.amount - free}{need.unit} too small: the stack takes "
                f"{need.amount}{need.unit}, and of {quota.limit}{need.unit} {quota.used}{need.unit} are used",
                expected=f"at most {max(free, 0)}{need.unit} more, or a larger quota",
                hint="ask servicedesk@csc.fi for more, or delete what is no longer needed",
            )


def another_password(partial: PartialSettings, openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield that a volume of another stack has databases which know that stack's password."""
    mlops, volume, server = partial.section(MlopsSettings), facts.existing, facts.server
    if mlops is None or not mlops.enabled or volume is None or not volume.cluster or MLOPS_PASSWORD in partial.secrets:
        return
    if server is None or server.id not in volume.servers:
        secret = key((MLOPS_PASSWORD,))
        yield (
            f"{key((*SECTION, 'volume', 'existing'))} names a volume with a cluster on it, and {secret} is not set: "
            "the MLOps platform's databases there know the password of the stack that made them, and unless that was "
            f"this one, nobody gets in by the one that it makes. `pulumi stack output {MLOPS_PASSWORD} --show-secrets` "
            f"of that stack prints it, and `pulumi config set --secret {secret}` takes it"
        )


def examples(openstack: OpenstackSettings) -> Iterator[str]:
    """Yield networks of documents, which are nobody's: the example has some for who is to write their own."""
    for who, source in openstack.ssh_from.items():
        if within(source, DOCUMENTATION):
            yield (
                f"{key((*SECTION, 'sshFrom', who))}: {source} is kept for examples (RFC 5737, RFC 3849), and nobody "
                "comes from there: write the address that the internet sees you by, such as "
                "`curl -4 https://api.ipify.org` prints it"
            )


def warnings(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield who else was let in, and what becomes of the VM that is there."""
    yield from _image(openstack, facts)
    yield from _recreated(openstack, facts)
    yield from _doubles(openstack, facts)
    yield from _opened(openstack, facts)
    yield from _ports(openstack, facts)
    server = facts.server
    old, new = (FLAVORS.get(server.flavor) if server is not None else None), openstack.machine
    if old is None or old.name == new.name:
        return
    path = key((*SECTION, "flavor"))
    if bool(old.gpus) is not bool(new.gpus):
        yield (
            f"{path}: {old.name} {_has(old.gpus)} and {new.name} {_has(new.gpus)}, so that the first boot is another "
            "and the VM is replaced; its address, its volume and what is on that stay, what is on its own disk goes"
        )
    elif old.resized_within != new.resized_within:
        why = "a VM with GPUs would not boot again" if old.gpus else "most VMs do not survive another family of flavors"
        yield (
            f"{path}: a resize from {old.name} to {new.name} is none that CSC offers ({why}), so that the VM is "
            "replaced; its address, its volume and what is on that stay, what is on its own disk goes"
        )
    else:
        yield f"{path}: the VM is resized from {old.name} to {new.name}, which restarts it"


def _image(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield that an image which has the name of one of CSC's is not CSC's, which are public."""
    if openstack.image in IMAGES and openstack.image in facts.own_images:
        yield (
            f"{key((*SECTION, 'image'))}: {openstack.image} is the name of an image of CSC's, and the one that the "
            "project has is not public, so that somebody has uploaded it or shared it with the project, and it can be "
            f"anything: `openstack image show {facts.images[openstack.image]}` says whose it is"
        )


def _recreated(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield that the cluster on the volume goes, with its data: nothing else in a preview says so."""
    kind, had = openstack.kind, _noted(openstack, facts)
    if kind.recreate and had not in ("", kind.note):
        yield (
            f"{key((*SECTION, 'kind', 'recreate'))}: the cluster on the volume, which has {had}, is REMOVED WITH ALL "
            f"OF ITS DATA by the first boot of the new VM, which makes one with {kind.note}; save first what is in it, "
            "or remove the key and write what the cluster has"
        )


def _doubles(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield what no state knows and the project charges: which of several is the stack's only its state can tell."""
    for kind, identifiers in facts.doubles.items():
        look = "; look first what is on it" if kind == "volume" else ""
        yield (
            f"of {openstack.name} there is more than one {kind} in the project, of which the stack has one at most: "
            f"{listed(identifiers)}; an update that was killed or got no answer leaves one behind, and a destroy a "
            "volume that was not protected. `pulumi stack --show-ids` has the stack's own, and "
            f"`openstack {kind} delete` takes another one away{look}"
        )


def _opened(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield the rules that the settings do not say.

    No resource stands for one that somebody else has added, so that no refresh finds it. A rule that is changed is not
    told: it has the description by which the stack knows its own, and lets in few.
    """
    group, said = openstack.name, {(str(rule.port), rule.source) for rule in openstack.rules}
    own = {(f"{SSH_RULE}{who}", str(SSH_PORT)) for who in openstack.ssh_from}
    own |= {(opening.name, str(opening.port)) for opening in openstack.ports}
    for rule in facts.rules:
        is_changed = (rule.description, rule.ports) in own and not rule.is_wide
        if (rule.ports, rule.source) in said or is_changed:
            continue
        mark = f', described as "{rule.description}"' if rule.description else ""
        yield (
            f"the security group {group} lets in {rule.source or 'everybody'} (port: {rule.ports}{mark}), which the "
            "settings do not say: if no update of this stack made the rule, which then goes with this one, somebody "
            f"has opened it; `openstack security group rule list {group}` shows it, and `openstack security group rule "
            "delete` closes it"
        )


def _ports(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield what guards the VM beside the stack's security group, or keeps that from doing so.

    "Edit Security Groups" of the dashboard is how somebody opens a VM who does not look at its group.
    """
    name = openstack.name
    for group, rules in facts.other_groups.items():
        let_in = [f"{rule.source or 'everybody'} (port: {rule.ports})" for rule in rules]
        yield (
            f"the VM is in the security group {group}, too, which this stack has not put it into; the group lets in "
            f"{listed(let_in) if let_in else 'nobody yet'}: `openstack server remove security group {name} {group}` "
            "takes the VM out"
        )
    for port in facts.unguarded:
        yield (
            f"port security of the VM's port {port} is switched off, so that no rule holds and everybody reaches all "
            f"of the VM: `openstack port set --enable-port-security --security-group {name} {port}` switches it on"
        )
    if facts.is_left_out and not facts.unguarded:
        yield (
            f"the VM's port {name} is not in the security group {name}, so that nobody gets in by the settings' rules: "
            f"`openstack port set --security-group {name} {name}` puts it back, and no update does"
        )


def _has(gpus: int) -> str:
    return "has GPUs" if gpus else "has none"
