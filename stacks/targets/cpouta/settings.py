"""The configuration of target `cpouta`: the VM, who may reach it, its volume, and the cluster on it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from components.images import Reference
from components.kubernetes.node_pool import NodeShape
from components.nodes.machines import Machine
from components.openstack import catalogue
from components.openstack.first_boot import GpuStackArgs, conflicts
from components.openstack.flavors import BOOT_VOLUME, FLAVORS, FLOATING_IP_RATE, VOLUME_RATES, Flavor, volume_rate
from components.openstack.notes import cluster_note
from stacks.config.errors import MISSING, UNKNOWN, ConfigError, Path, instead, key, listed
from stacks.settings import PlatformSettings
from stacks.settings.cidr import Network
from stacks.settings.gpu import ProvidedGpuSettings
from stacks.settings.model import SettingsModel, choice
from stacks.settings.monitoring import MonitoringSettings
from stacks.settings.tenancy import QueueingSettings, TenancySettings
from stacks.targets.cpouta import firewall, values
from stacks.targets.cpouta.firewall import OpeningSettings, Rule

SECTION: Final[Path] = ("openstack",)
FLAVOR: Final[Path] = (*SECTION, "flavor")

DEFAULT_UBUNTU: Final = catalogue.UBUNTUS[0]
IMAGES: Final[Mapping[str, str]] = {f"Ubuntu-{release}": release for release in catalogue.UBUNTUS}
"""CSC's images of them, by name (CSCfi/csc-user-guide, docs/cloud/pouta/images.md)."""
NODE_IMAGES: Final[Mapping[str, str]] = {
    str(Reference.parse(image).tag).removeprefix("v"): image
    for release in catalogue.KIND_RELEASES
    for image in release.node_images
}
"""By the version of Kubernetes that is in them."""
LEAST_VOLUME: Final = 75
"""GiB: 49 that the MLOps platform's six claims ask for with its deployment option 4, and the 25 GB that its setup.sh
wants free for images."""

LEAST_GPU_BOOT_VOLUME: Final = 40
"""GiB: the system, and CUDA's packages of 3 GB three times, as they are fetched, as a repository, and installed."""
MOST_KEYS: Final = 12_000
"""Characters of other people's public keys: about 16 of RSA with 4096 bits, or 120 of Ed25519. They are in the user
data, beside the programs of the first boot, and Nova takes 65535 bytes of it in base64; a letter that is not ASCII
counts as several there."""
TOO_SLOW: Final = "capacity"
"""A type of volumes that CSC has for files at rest: too slow for databases such as the cluster's."""


class VolumeSettings(SettingsModel):
    """Volume for Docker's data: images, the cluster and its volumes. It is kept when the VM is replaced."""

    size: Annotated[int, Field(ge=1, le=16_384)] = 500
    """Size in GiB. It can only grow."""
    type: str = "standard"
    """Volume type. `capacity` is cheaper, but too slow for databases."""
    existing: values.VolumeId | None = None
    """ID of an existing volume, for example of another project. The stack attaches it and keeps its file system. It
    does not change or delete it. Omit size and type.
    """
    protect: bool = True
    """Refuse updates and `pulumi destroy` that delete the volume. If false, the volume leaves the stack and stays in
    the project.
    """


class GpuStackSettings(SettingsModel):
    """NVIDIA's software on a VM with GPUs. The versions must match each other."""

    driver: str = catalogue.DRIVERS[0]
    """Branch of the driver."""
    cuda: str = next(iter(catalogue.CUDA))
    """Version of CUDA."""
    toolkit: str = catalogue.TOOLKITS[0]
    """Version of NVIDIA's container toolkit, with Debian's revision."""

    @property
    def stack(self) -> GpuStackArgs:
        return GpuStackArgs(driver=self.driver, cuda=self.cuda, toolkit=self.toolkit)


class KindSettings(SettingsModel):
    """The cluster on the VM: Kubernetes in Docker (kind), with one node."""

    kubernetes: Annotated[str, choice("Kubernetes of kind", tuple(NODE_IMAGES))] = next(iter(NODE_IMAGES))
    """Version of Kubernetes that kind has an image for. Layers that need a later version are refused. kind cannot
    upgrade a cluster. Before you update this program, write the version of an existing cluster.
    """
    api_port: Annotated[int, Field(ge=1024, le=65535)] = 6443
    """Port number of the API server on the VM's loopback interface. It is reachable only through SSH."""

    recreate: bool = False
    """Allow a change of `kubernetes` or `apiPort` on an existing VM. The first boot of the new VM then deletes the
    cluster on the volume with all its data. If false, the change is refused.
    """

    @property
    def node_image(self) -> str:
        return NODE_IMAGES[self.kubernetes]

    @property
    def note(self) -> str:
        """The text that identifies the cluster's settings."""
        return cluster_note(self.kubernetes, self.api_port)


class CustomFlavorSettings(SettingsModel):
    """A flavor of an OpenStack other than CSC's."""

    name: str
    """Name of the flavor."""
    cores: Annotated[int, Field(ge=1, le=1024)]
    """Number of cores."""
    memory: Annotated[int, Field(ge=1, le=65_536)]
    """Memory in GiB, rounded down."""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """Number of NVIDIA GPUs."""
    gpu: str = ""
    """Model of the GPUs, as the label `nvidia.com/gpu.product` has it."""

    @property
    def flavor(self) -> Flavor:
        return Flavor(name=self.name, cores=self.cores, memory_gib=self.memory, gpus=self.gpus, gpu=self.gpu)


class OpenstackSettings(SettingsModel):
    """The VM and its resources, in the project of the credentials."""

    name: values.Name = "mlops-platform"
    """Name of the VM, port, volume, key pair and security group. Must be unique in the project."""
    flavor: Annotated[str, choice("flavor", tuple(FLAVORS))] = next(iter(FLAVORS))
    """Flavor of the VM. A change within a family without GPUs resizes and restarts the VM. Any other change replaces
    it.
    """
    custom_flavor: CustomFlavorSettings | None = None
    """Use this flavor in place of `flavor`, on an OpenStack other than CSC's. `sshFrom` may then have private networks,
    and there are no billing units.
    """
    image: str = f"Ubuntu-{DEFAULT_UBUNTU}"
    """Image name. If several images have it, the newest public one is used. The VM keeps its image until you write
    another name.
    """
    ubuntu: Annotated[str, choice("Ubuntu", catalogue.UBUNTUS)] | None = None
    """Ubuntu release of your own image. CSC's images have it in their names."""
    boot_volume: Annotated[int, Field(ge=20, le=16_384)] | None = None
    """Size in GiB of a boot volume, which is deleted with the VM. Default: the flavor's disk."""
    availability_zone: str | None = None
    """Availability zone. Default: any with capacity."""
    network: str
    """Name of the project's network, such as project_2001234."""
    pool: str = "public"
    """External network of the floating address."""
    user: values.User = "ubuntu"
    """User of the image."""
    ssh_public_key: values.PublicKey
    """Public SSH key of the administrator. A change replaces the VM, which reads it at its first boot."""
    other_public_keys: tuple[values.OthersKey, ...] = ()
    """Public SSH keys of other users, including security keys (`sk-ssh-ed25519@openssh.com`). A change replaces the VM.
    To keep it, add the keys to `~/.ssh/authorized_keys` there instead.
    """
    private_key_file: values.KeyFile = "~/.ssh/local-cpouta.pem"
    """File of the private key on the machine that runs Pulumi."""
    ssh_from: Annotated[Mapping[str, Network], values.RuleNames]
    """Networks that can connect by SSH, by a name for each, such as `me: 203.0.113.7/32`."""
    ports: tuple[OpeningSettings, ...] = ()
    """Other ports to open to networks, for programs that you run on the VM yourself. Ports of the cluster and of user
    interfaces are reached through SSH.
    """
    allow_any_source: bool = False
    """Allow networks that contain all addresses, such as 0.0.0.0/0."""
    volume: VolumeSettings = VolumeSettings()
    gpu: GpuStackSettings | None = None
    """NVIDIA's software on a flavor with GPUs. Default: the newest versions that support its GPUs. A VM keeps its
    versions until you write others.
    """
    kind: KindSettings = KindSettings()
    generation: Annotated[int, Field(ge=1, le=9999)] = 1
    """Generation number of the VM. A change replaces the VM, which then has the newest first boot. Address, volume and
    cluster stay. A newer version of this program does not replace the VM.
    """
    first_boot_minutes: Annotated[int, Field(ge=15, le=240)] = 60
    """Maximum minutes to wait for the first boot, which takes at least ten."""

    @property
    def machine(self) -> Flavor:
        return self.custom_flavor.flavor if self.custom_flavor is not None else FLAVORS[self.flavor]

    @property
    def flavor_path(self) -> Path:
        """The key with the flavor's name."""
        return FLAVOR if self.custom_flavor is None else (*SECTION, "customFlavor", "name")

    @property
    def shape(self) -> NodeShape:
        """What the cluster's node has for pods: all of the VM, and the kubelet's default limit of pods."""
        flavor = self.machine
        node = Machine(
            name=flavor.name,
            gpu_product=flavor.gpu,
            cpu=str(flavor.cores),
            memory=f"{flavor.memory_gib}Gi",
            gpus=flavor.gpus,
            pods=110,
            source=flavor.name,
        )
        return node.shape()

    @property
    def rules(self) -> list[Rule]:
        return firewall.rules(self.ssh_from, self.ports)

    @property
    def gpu_stack(self) -> GpuStackArgs | None:
        """NVIDIA's software on the VM, None on one without GPUs."""
        return (self.gpu or GpuStackSettings()).stack if self.machine.gpus else None

    @property
    def release(self) -> str | None:
        """The image's release of Ubuntu, or None if it is unknown."""
        return IMAGES.get(self.image, self.ubuntu)

    @property
    def rates(self) -> Mapping[str, Decimal]:
        """CSC's billing units in an hour, by what is charged for; without a volume of a type that CSC does not list."""
        if self.custom_flavor is not None:
            return {}
        volume = volume_rate(self.volume.type, self.volume.size) if self.volume.existing is None else None
        boot = volume_rate(BOOT_VOLUME, self.boot_volume) if self.boot_volume is not None else None
        found = {"vm": self.machine.rate, "floatingIp": FLOATING_IP_RATE, "volume": volume, "bootVolume": boot}
        return {name: rate for name, rate in found.items() if rate is not None}

    def check(self, path: Path) -> Iterator[ConfigError]:
        yield from firewall.same_names(path, self.ports)
        yield from firewall.check(
            path, self.rules, allow_any_source=self.allow_any_source, is_public=self.custom_flavor is None
        )
        yield from self._volume(path)
        yield from self._image(path)
        keys = sum(map(values.handed, self.other_public_keys))
        if keys > MOST_KEYS:
            yield ConfigError(
                (*path, "otherPublicKeys"),
                f"these keys have {keys} characters in total, which is too much for the user data of the VM's "
                "first boot",
                "use keys of type ssh-ed25519 (up to 120), or add some to the VM's ~/.ssh/authorized_keys",
                expected=f"at most {MOST_KEYS} characters in total",
                value=MISSING,
            )
        if self.machine.gpus and self.boot_volume is not None and self.boot_volume < LEAST_GPU_BOOT_VOLUME:
            yield ConfigError(
                (*path, "bootVolume"),
                "NVIDIA's driver and CUDA do not fit next to the system",
                "remove the key; the default is the flavor's own disk",
                expected=f"at least {LEAST_GPU_BOOT_VOLUME} GiB",
            )
        if self.gpu is not None and not self.machine.gpus:
            yield ConfigError(
                (*path, "gpu"),
                f"flavor {self.machine.name} has no GPU",
                f"remove the section, or set {key((*path, 'flavor'))} to {_with_gpus()[0]}",
                expected=f"no section, or a flavor with GPUs: {listed(_with_gpus())}",
                value=MISSING,
            )
        if self.gpu_stack is not None and self.release is not None:
            yield from self._software(path, self.gpu_stack, self.release)

    def _image(self, path: Path) -> Iterator[ConfigError]:
        said = key((*path, "ubuntu"))
        if self.release is None:
            yield ConfigError(
                (*path, "image"),
                "this is not one of CSC's images of the Ubuntu releases that the first boot supports",
                instead(self.image, IMAGES, f"remove the key; the default is Ubuntu-{DEFAULT_UBUNTU}"),
                expected=f"{listed(IMAGES)}, or an image of your own with its release in {said}",
            )
        elif self.ubuntu not in (None, self.release):
            yield ConfigError(
                (*path, "ubuntu"),
                f"{self.image} is CSC's image of Ubuntu {self.release}, which sets the release",
                "remove the key",
            )

    def _software(self, path: Path, stack: GpuStackArgs, release: str) -> Iterator[ConfigError]:
        product = self.machine.gpu
        wrong = list(conflicts(stack, release, product))
        if wrong:
            default = GpuStackSettings().stack
            is_image = not list(conflicts(stack, DEFAULT_UBUNTU, product))
            other_image = f"set {key((*path, 'image'))} to Ubuntu-{DEFAULT_UBUNTU}"
            both = f"remove the section, and {other_image}" if list(conflicts(default, release)) else ""
            yield ConfigError(
                (*path, "image" if is_image else "gpu"),
                "; ".join(wrong),
                other_image if is_image else both or "remove the section; these are the defaults",
                value=UNKNOWN if is_image else MISSING,
                expected=f"driver {default.driver}, CUDA {default.cuda} and toolkit {default.toolkit} on an image of "
                f"Ubuntu {DEFAULT_UBUNTU}",
            )

    def _volume(self, path: Path) -> Iterator[ConfigError]:
        volume = self.volume
        if volume.existing is not None:
            for name in sorted({"size", "type"} & volume.model_fields_set):
                yield ConfigError(
                    (*path, "volume", name),
                    f"{key((*path, 'volume', 'existing'))} names a volume, which the stack does not change",
                    f"remove the key, or {key((*path, 'volume', 'existing'))} for a new volume",
                )
            return
        if volume.size < LEAST_VOLUME:
            yield ConfigError(
                (*path, "volume", "size"),
                "the volume is too small for the platform's images and volumes",
                "remove the key; the default is 500",
                expected=f"at least {LEAST_VOLUME} GiB",
            )
        if volume.type == TOO_SLOW:
            yield ConfigError(
                (*path, "volume", "type"),
                "CSC's capacity volumes are for archives, and too slow for databases such as the cluster's",
                "remove the key",
                expected=listed(kind for kind in VOLUME_RATES if kind != TOO_SLOW),
            )


class CpoutaGpuSettings(ProvidedGpuSettings):
    """Drivers and device plugins of the GPU nodes."""

    install_driver: bool = False
    """Let the operator install NVIDIA's driver. Keep false: the VM has a driver, and two drivers break each other."""


class CpoutaQueueingSettings(QueueingSettings):
    """Queues that lend quota to each other, and the operators that run their jobs."""

    enabled: bool = False
    """Install the queues. Without them the stack has no teams, and jobs run first come, first served."""


class CpoutaTenancySettings(TenancySettings):
    """The teams, and the platform's flavor, slack queue and role."""

    enabled: bool = False
    """Create them. Set to false if another tool manages the queues. The stack then has no teams."""


class CpoutaMonitoringSettings(MonitoringSettings):
    """Prometheus, Alertmanager and Grafana.

    The MLOps platform has its own monitoring in the namespace that is the default here.
    """

    enabled: bool = False
    """Install them."""


class CpoutaSettings(PlatformSettings):
    """Configuration of a stack on cPouta. The batch platform's layers are off by default."""

    openstack: OpenstackSettings
    gpu: CpoutaGpuSettings = CpoutaGpuSettings()
    queueing: CpoutaQueueingSettings = CpoutaQueueingSettings()
    tenancy: CpoutaTenancySettings = CpoutaTenancySettings()
    monitoring: CpoutaMonitoringSettings = CpoutaMonitoringSettings()


def _with_gpus() -> list[str]:
    return [name for name, flavor in FLAVORS.items() if flavor.gpus]
