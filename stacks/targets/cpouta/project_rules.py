"""Checks that the project has the flavor, image, network, pool and quotas, before anything is created."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from components.openstack.first_boot.plan import HOST_PORTS
from components.openstack.flavors import FLAVORS
from components.openstack.notes import CLUSTER, SSH_RULE, cluster_note
from stacks.config.errors import MISSING, ConfigError, Path, instead, key, listed
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.derived.partial import PartialSettings
from stacks.settings.cidr import DOCUMENTATION, within
from stacks.settings.mlops import MlopsSettings
from stacks.settings.nvshare import NvshareSettings
from stacks.settings.tenancy import QueueingSettings
from stacks.targets.cpouta.firewall import SSH_PORT
from stacks.targets.cpouta.interfaces import FORWARDED_PORTS
from stacks.targets.cpouta.project_facts import ProjectFacts, VolumeFacts
from stacks.targets.cpouta.settings import (
    FLAVOR,
    IMAGES,
    LEAST_VOLUME,
    SECTION,
    TOO_SLOW,
    CpoutaGpuSettings,
    OpenstackSettings,
)
from stacks.validation.mlops import chosen

_RAY_CORES: Final = 4
"""Additional resources that the platform's setup.sh requires for Ray."""

_REGISTRY: Final = 5001
"""Port of the registry next to kind on the VM's loopback (components/openstack/first_boot/files/registry.sh)."""
_RULES_OF_A_GROUP: Final = 2
"""Neutron adds two egress rules, for IPv4 and IPv6, to each new security group, and counts them."""


def fits(partial: PartialSettings, openstack: OpenstackSettings) -> Iterator[ConfigError]:
    """Yield errors of settings that the VM or its cluster cannot support.

    NVshare's own rules check its nodes.
    """
    gpu, nvshare = partial.section(CpoutaGpuSettings), partial.section(NvshareSettings)
    mlops, queueing = partial.section(MlopsSettings), partial.section(QueueingSettings)
    flavor = openstack.machine
    yield from _api_port(openstack)
    if nvshare is not None and nvshare.enabled and flavor.gpus and gpu is not None and not gpu.operator:
        yield ConfigError(
            ("nvshare", "enabled"),
            "NVshare requests the GPU like a pod, and pods cannot request GPUs while mlbatch:gpu.operator is false",
            "set mlbatch:gpu.operator and mlbatch:gpu.featureDiscovery to true, or remove the key",
        )
    if gpu is not None and gpu.operator and not flavor.gpus:
        yield ConfigError(
            ("gpu", "operator"),
            f"flavor {flavor.name} has no GPU",
            f"remove the key, or set {key((*SECTION, 'flavor'))} to another one",
            expected=f"false, or a flavor with GPUs: {listed(name for name, one in FLAVORS.items() if one.gpus)}",
        )
    if gpu is not None and gpu.operator and gpu.install_driver:
        yield ConfigError(
            ("gpu", "installDriver"),
            "the VM's first boot installs the driver, and a second driver would break it",
            "remove the key",
            expected=f"false; {key((*SECTION, 'gpu', 'driver'))} sets the driver",
        )
    if gpu is not None and gpu.operator and not gpu.install_toolkit:
        yield ConfigError(
            ("gpu", "installToolkit"),
            "the first boot configures NVIDIA's runtime only for Docker. kind's node is a container with its "
            "own containerd, so pods would not see GPUs",
            "remove the key",
        )
    if mlops is None or not mlops.enabled or (deployment := chosen(mlops)) is None:
        return
    ray = _RAY_CORES if queueing is not None and queueing.enabled and queueing.kuberay.enabled else 0
    if flavor.cores < deployment.cores + ray:
        enough = [name for name, one in FLAVORS.items() if one.cores >= deployment.cores + ray]
        yield ConfigError(
            ("mlops", "option"),
            f"{deployment.overlay} needs {deployment.cores + ray} cores, and flavor {flavor.name} has {flavor.cores}",
            f"set {key((*SECTION, 'flavor'))} to {enough[0]}, or remove the key; the default is pipelines with KServe",
            expected=f"a smaller deployment, or a flavor with enough cores: {listed(enough)}",
        )


def _api_port(openstack: OpenstackSettings) -> Iterator[ConfigError]:
    """Yield the error of an API server port that the VM needs for something else. kind cannot change it later."""
    port = openstack.kind.api_port
    users = {
        _REGISTRY: "the registry next to kind uses this port",
        **dict.fromkeys(FORWARDED_PORTS, "a user interface of the MLOps platform is forwarded to this port of the VM"),
        **dict.fromkeys(HOST_PORTS.values(), "a node port of the cluster is mapped to this port of the VM"),
    }
    if port in users:
        yield ConfigError(
            (*SECTION, "kind", "apiPort"),
            users[port],
            "remove the key; the default is 6443",
            expected=f"any port except {listed(sorted(users))}",
        )


def unoffered(partial: PartialSettings, openstack: OpenstackSettings) -> Iterator[str]:
    """Yield a warning about GPUs that pods cannot request.

    The GPU operator needs the labels of Node Feature Discovery (NVIDIA/gpu-operator, controllers/state_manager.go).
    """
    gpu, flavor = partial.section(CpoutaGpuSettings), openstack.machine
    if gpu is not None and not gpu.operator and flavor.gpus and partial.known_teams:
        yield (
            f"mlbatch:gpu.operator is false, so pods cannot request the GPUs of {flavor.name}: teams' GPU jobs "
            f"stay pending. Set it and mlbatch:gpu.featureDiscovery to true"
        )
    if gpu is not None and gpu.operator and not gpu.feature_discovery:
        yield (
            "mlbatch:gpu.featureDiscovery is false, and the GPU operator finds GPU nodes by its labels: pods cannot "
            "request GPUs. Set it to true"
        )


def offers(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield errors of names that the project does not have, and of a private key that cannot be used."""
    if facts.obstacle is not None:
        yield ConfigError((*SECTION, "privateKeyFile"), facts.obstacle.message, facts.obstacle.hint)
    yield from _flavor(openstack, facts)
    wanted = (
        ("image", openstack.image, [name for name in sorted(facts.images) if name in IMAGES or openstack.ubuntu]),
        ("network", openstack.network, sorted(facts.networks)),
        ("pool", openstack.pool, sorted(facts.pools)),
        ("availabilityZone", openstack.availability_zone, sorted(facts.zones)),
    )
    for field, name, there in wanted:
        is_known = field != "image" or openstack.release is not None  # otherwise the section's own check reports it
        if name is not None and name not in there and is_known:
            yield _absent((*SECTION, field), name, there)
    for field, name in (("network", openstack.network), ("pool", openstack.pool)):
        if name in facts.ambiguous:
            yield ConfigError(
                (*SECTION, field),
                "the project has several networks with this name",
                "rename one of them: `openstack network list`, then `openstack network set --name`",
            )
    volume = openstack.volume
    if volume.existing is None and volume.type not in facts.volume_types:
        yield _absent((*SECTION, "volume", "type"), volume.type, sorted(facts.volume_types))
    yield from _route(openstack, facts)
    yield from _volume(openstack, facts)
    yield from _cluster(openstack, facts)
    yield from _key_pair(openstack, facts)


def _flavor(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield the error of a missing flavor, or of a custom one with other cores or memory than queues would count."""
    custom, wanted = openstack.custom_flavor, openstack.machine
    offered = [name for name in facts.flavors if custom is not None or name in FLAVORS]
    if wanted.name not in offered:
        yield _absent(openstack.flavor_path, wanted.name, offered)
    elif custom is not None:
        found = facts.flavors[wanted.name]
        if (wanted.cores, wanted.memory_gib) != (found.cores, found.memory_mib // 1024):
            yield ConfigError(
                (*SECTION, "customFlavor"),
                f"{wanted.name} has {found.cores} cores and {found.memory_mib // 1024} GiB of memory",
                "write these numbers",
                value=MISSING,
            )


def _key_pair(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield the error of an existing key pair: Nova stores them by user, and names must be unique."""
    there = facts.key_pair
    if facts.server is not None or there is None or there.split()[:2] == openstack.ssh_public_key.split()[:2]:
        return
    yield ConfigError(
        (*SECTION, "name"),
        "the user of these credentials already has a key pair with this name, another key and no VM: "
        "OpenStack would reject a second one in the middle of the update",
        f"set another name, or, if the key pair is unused, run `openstack keypair delete {openstack.name}`, which "
        "does not remove keys from VMs",
    )


def _route(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield the error of a network without a router to the pool: its VMs could not get a floating address."""
    network, pool = openstack.network, openstack.pool
    led = facts.routes.get(network)
    if led is None or pool in led or pool not in facts.pools:
        return
    fit = sorted(name for name, pools in facts.routes.items() if pool in pools)
    router = f"{network}-router"
    yield ConfigError(
        (*SECTION, "network"),
        f"no router connects this network to {pool}, so the VM could not get a floating address",
        f"`openstack router create --external-gateway {pool} {router}`, then "
        f"`openstack router add subnet {router} <subnet>` with the network's subnet from `openstack subnet list`",
        expected=listed(fit) if fit else f"a network with a router to {pool}",
    )


def _cluster(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[ConfigError]:
    """Yield the error of a cluster that differs from that on the volume: the first boot of a new VM would reject it."""
    kind, had = openstack.kind, _noted(openstack, facts)
    if had in ("", kind.note) or kind.recreate:
        return
    moved = had.startswith(cluster_note(kind.kubernetes, 0).removesuffix("0"))
    volume = openstack.volume.existing or openstack.name
    by_now = (
        f"; or, if the volume already has that, run `openstack volume set --property '{CLUSTER}={kind.note}' {volume}`"
        if facts.server is None
        else ""
    )
    yield ConfigError(
        (*SECTION, "kind", "apiPort" if moved else "kubernetes"),
        f"the cluster on the volume has {had}, which kind cannot change, and the first boot of a new VM would "
        "reject it",
        f"write what it has, or save the cluster's data and set {key((*SECTION, 'kind', 'recreate'))} to "
        f"true, which deletes the cluster with all of its data{by_now}",
        expected=had,
    )


def _noted(openstack: OpenstackSettings, facts: ProjectFacts) -> str:
    """Return the cluster on the volume.

    The VM's record is newer, because a stack does not change a volume that the settings name.
    """
    server, volume = facts.server, facts.volume if openstack.volume.existing is None else facts.existing
    if server is not None and (volume is None or not volume.servers or server.id in volume.servers):
        return server.cluster
    return volume.cluster if volume is not None else ""


def _absent(path: Path, name: str, there: list[str]) -> ConfigError:
    is_flavor = path == FLAVOR and name in FLAVORS
    other = "use one of those"
    return ConfigError(
        path,
        f"the project has no {_WORDS[path[-1]]} with this name",
        f"ask CSC's service desk for it; until then {other}" if is_flavor else instead(name, there, other),
        expected=listed(there),
    )


_WORDS: Mapping[str | int, str] = {
    "flavor": "flavor",
    "name": "flavor",
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
                (*path, "size"),
                f"the volume has {facts.volume.size_gib} GiB, and volumes cannot shrink",
                "set it to the current size",
            )
        return
    found, there = facts.existing, (*path, "existing")
    if found is None:
        yield ConfigError(
            there,
            "the project has no volume with this ID",
            "`openstack volume list` prints them; accept a transfer from another project first",
        )
    elif found.has_system:
        yield ConfigError(
            there,
            "this volume was created from an image. The stack would have to format it, which deletes its data",
            "set the ID of a data volume, or remove the key. The stack then creates a volume",
        )
    elif (wrong := _unfit(found, facts.server.id if facts.server is not None else "")) is not None:
        message, hint = wrong
        yield ConfigError(
            there,
            message,
            hint,
            expected=f"a volume of at least {LEAST_VOLUME} GiB that is available or attached to the stack's VM",
        )


def _unfit(volume: VolumeFacts, server: str) -> tuple[str, str] | None:
    """Return why the platform cannot use a volume, and the fix, or None if it can. server: ID of the stack's VM."""
    another = "set the ID of another volume, or remove the key. The stack then creates a volume"
    others = volume.servers - {server}
    if others:
        return (
            f"it is attached to VM {listed(sorted(others))}",
            f"run `openstack server remove volume {min(others)} <volume>` first",
        )
    if volume.status != "available" and not volume.servers:
        return (
            f"its status is {volume.status}, so it cannot be attached",
            f"wait until `openstack volume show` shows available; if it stays {volume.status}, {another}",
        )
    if volume.size_gib < LEAST_VOLUME:
        return f"the platform's images and volumes do not fit into its {volume.size_gib} GiB", another
    if volume.kind == TOO_SLOW:
        return f"it is of type {TOO_SLOW}, too slow for databases such as the cluster's", another
    return None


@dataclass(frozen=True, kw_only=True)
class Need:
    """An additional amount of a quota that the stack needs. unit: of the numbers. path: of the setting."""

    amount: int
    path: Path
    unit: str = ""


def needs(openstack: OpenstackSettings, facts: ProjectFacts) -> Mapping[str, Need]:
    """Return the amounts that the stack does not have yet, by quota."""
    flavor, server = facts.flavors.get(openstack.machine.name), facts.server
    old = facts.flavors.get(server.flavor) if server is not None else None
    boots, booted = openstack.boot_volume or 0, server.boot_volume_gib if server is not None else 0
    own = openstack.volume.existing is None
    has = facts.volume.size_gib if facts.volume is not None else 0
    by_flavor, by_name = openstack.flavor_path, (*SECTION, "name")
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
    """Yield errors of quotas that are too small, with the missing amount."""
    for what, need in needs(openstack, facts).items():
        quota = facts.quotas.get(what)
        if quota is None or quota.limit is None or need.amount <= 0:
            continue
        free = quota.limit - quota.used
        if need.amount > free:
            yield ConfigError(
                need.path,
                f"the project's quota of {what} is {need.amount - free}{need.unit} too small: the stack needs "
                f"{need.amount}{need.unit}, and {quota.used}{need.unit} of {quota.limit}{need.unit} are used",
                "request more from the cloud's operator (CSC: servicedesk@csc.fi), or delete unused resources",
                value=MISSING,
            )


def another_password(partial: PartialSettings, openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield a warning about a volume of another stack, whose databases have that stack's password."""
    mlops, volume, server = partial.section(MlopsSettings), facts.existing, facts.server
    if mlops is None or not mlops.enabled or volume is None or not volume.cluster or MLOPS_PASSWORD in partial.secrets:
        return
    if server is None or server.id not in volume.servers:
        secret = key((MLOPS_PASSWORD,))
        yield (
            f"{key((*SECTION, 'volume', 'existing'))} names a volume with a cluster, and {secret} is not set. The "
            "platform's databases there accept only the password of the stack that created them. If that is another "
            f"stack, print its password with `pulumi stack output {MLOPS_PASSWORD} --show-secrets`, and set it here "
            f"with `pulumi config set --secret {secret}`"
        )


def examples(openstack: OpenstackSettings) -> Iterator[str]:
    """Yield warnings about networks that are reserved for documentation, such as those of the example."""
    for who, source in openstack.ssh_from.items():
        if within(source, DOCUMENTATION):
            yield (
                f"{key((*SECTION, 'sshFrom', who))}: {source} is reserved for examples (RFC 5737, RFC 3849), and no "
                "client has such an address. Write your public address, which `curl -4 https://api.ipify.org` prints"
            )


def warnings(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield warnings about additional access, and about the existing VM and its changes."""
    yield from _failed(facts)
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
            f"{path}: {old.name} {_has(old.gpus)} and {new.name} {_has(new.gpus)}, so the first boot differs and the "
            "VM is replaced. Its address and its volume with its data remain. The data on its own disk is deleted"
        )
    elif old.resized_within != new.resized_within:
        why = "a VM with GPUs would not boot again" if old.gpus else "most VMs fail in another family of flavors"
        yield (
            f"{path}: CSC does not support a resize from {old.name} to {new.name} ({why}), so the VM is replaced. Its "
            "address and its volume with its data remain. The data on its own disk is deleted"
        )
    else:
        yield f"{path}: the VM is resized from {old.name} to {new.name}, which restarts it"


def _failed(facts: ProjectFacts) -> Iterator[str]:
    """Yield a warning about a VM in status ERROR. An update without a refresh considers it created."""
    if facts.server is not None and facts.server.error:
        yield (
            f"the VM {facts.server.id} has the status ERROR: {facts.server.error}. Once the cause is gone, replace it; "
            "address, volume and cluster remain: `pulumi up --refresh=false --replace "
            "'**compute/instance:Instance::machine'`"
        )


def _image(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield a warning about an image with the name of one of CSC's that is not public and so not CSC's."""
    if openstack.image in IMAGES and openstack.image in facts.own_images:
        yield (
            f"{key((*SECTION, 'image'))}: {openstack.image} is the name of an image of CSC's, but the project's image "
            "with that name is not public. A user uploaded it or shared it with the project, and its content is "
            f"unknown. Check its owner with `openstack image show {facts.images[openstack.image]}`"
        )


def _recreated(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield a warning that the cluster on the volume and its data will be deleted, which a preview does not show."""
    kind, had = openstack.kind, _noted(openstack, facts)
    if kind.recreate and had not in ("", kind.note):
        yield (
            f"{key((*SECTION, 'kind', 'recreate'))}: the first boot of the new VM REMOVES THE CLUSTER ON THE VOLUME, "
            f"which has {had}, WITH ALL OF ITS DATA, and creates one with {kind.note}. Save the data first, or remove "
            "the key and write the settings that the cluster has"
        )


def _doubles(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield warnings about resources outside the state, which are charged. Only the state knows the stack's own."""
    for kind, identifiers in facts.doubles.items():
        look = "; check its data first" if kind == "volume" else ""
        yield (
            f"the project has more than one {kind} of {openstack.name}, and the stack uses at most one: "
            f"{listed(identifiers)}. An update that was killed or got no answer leaves one behind, and so does a "
            "destroy with a kept volume. Find the stack's own with `pulumi stack --show-ids`, and delete others with "
            f"`openstack {kind} delete`{look}"
        )


def _opened(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield warnings about rules that are not in the settings.

    A refresh does not find rules that users added, because no resource represents them. A changed rule causes no
    warning: it has the description of the stack's own rules, and allows few addresses.
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
            f"the security group {group} allows {rule.source or 'everyone'} (port: {rule.ports}{mark}), which is not "
            "in the settings. This update removes the rule if this stack created it. Otherwise a user did. Find it "
            f"with `openstack security group rule list {group}`, and remove it with `openstack security group rule "
            "delete`"
        )


def _ports(openstack: OpenstackSettings, facts: ProjectFacts) -> Iterator[str]:
    """Yield warnings about other security groups of the VM, and about ports outside the stack's group.

    Users can change them with "Edit Security Groups" in the dashboard.
    """
    name = openstack.name
    for group, rules in facts.other_groups.items():
        let_in = [f"{rule.source or 'everyone'} (port: {rule.ports})" for rule in rules]
        yield (
            f"the VM is also in the security group {group}, which this stack did not add. The group allows "
            f"{listed(let_in) if let_in else 'no connections yet'}. Remove the VM from it with "
            f"`openstack server remove security group {name} {group}`"
        )
    for port in facts.unguarded:
        yield (
            f"port security of the VM's port {port} is switched off, so no rule applies and everyone can connect to "
            f"all ports. Switch it on with `openstack port set --enable-port-security --security-group {name} {port}`"
        )
    if facts.is_left_out and not facts.unguarded:
        yield (
            f"the VM's port {name} is not in the security group {name}, so the settings' rules do not apply. Pulumi "
            f"does not add it. Run `openstack port set --security-group {name} {name}`"
        )


def _has(gpus: int) -> str:
    return "has GPUs" if gpus else "has none"
