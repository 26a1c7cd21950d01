"""The first boot of a VM: what cloud-init is handed is valid, and the steps end alike wherever they are cut off."""

import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pulumi
import pytest
import yaml

from components.openstack import catalogue
from components.openstack.first_boot import FirstBootArgs, GpuStackArgs, HostKey, KindArgs, conflicts, runner, user_data
from components.openstack.first_boot.plan import environment
from tests.local.debian import unpacked
from tests.unit.first_boot.machine import DISK, SERIAL, Machine, debian

FILES = Path(__file__).parents[2] / "components" / "openstack" / "first_boot" / "files"
NEWEST, *_, SEED = (release.node_images[0] for release in catalogue.KIND_RELEASES)
PLAIN = FirstBootArgs(
    user="ubuntu",
    authorized_key="ssh-ed25519 AAAA operator",
    host_key=HostKey(private_openssh="-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n", public="ssh-ed25519 AAAA host"),
    volume_id=f"{SERIAL}b6c-0123456789ab",
)
GPU = replace(PLAIN, gpu=GpuStackArgs(), kind=KindArgs(node_image=NEWEST))


def text(args: FirstBootArgs) -> str:
    """Return the user data as the engine would hand it to the provider."""
    found: list[str] = []

    @pulumi.runtime.test
    def made() -> pulumi.Output[None]:
        output = user_data(args)
        return pulumi.Output.all(output, output.is_secret()).apply(lambda both: found.extend(map(str, both)))

    pulumi.runtime.set_mocks(_NoResources())
    made()
    assert found[1] == "True", "it has the host's private key"
    return found[0]


class _NoResources(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        raise AssertionError(args.name)

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(args.token)


def test_what_a_step_recorded_is_on_the_disk_before_it_stands_for_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves the old file or the new one: the content first, then its name, then the folder that has it."""
    done: list[str] = []
    sync, replaced = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        done.append(f"{place.name}: {place.read_text()}" if place.is_file() else "the folder")
        sync(descriptor)

    def renamed(part: Path, file: Path) -> Path:
        done.append(f"{part.name} is {file.name}")
        return replaced(part, file)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    file = tmp_path / "marker"
    file.write_text("before")
    runner.write(file, "after")
    assert done == ["marker.part: after", "marker.part is marker", "the folder"]
    assert file.read_text() == "after"
    assert [*tmp_path.iterdir()] == [file]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A VM with GPU and cluster after a first boot without an interruption."""
    machine = Machine.make(tmp_path_factory.mktemp("ready"), text(GPU), gpu=True)
    assert machine.up()["state"] == "ready", machine.log
    return machine


@pytest.fixture(scope="module")
def cloud_init() -> jsonschema.Draft4Validator:
    """What judges user data by cloud-init's own schema."""
    folder = unpacked("cloud-init")
    (schema,) = folder.rglob("schema-cloud-config-v1.json")
    return jsonschema.Draft4Validator(json.loads(schema.read_text()))


@pytest.mark.parametrize("args", [PLAIN, GPU, replace(PLAIN, kind=KindArgs(node_image=SEED))])
def test_cloud_init_knows_all_of_the_user_data(args: FirstBootArgs, cloud_init: jsonschema.Draft4Validator) -> None:
    given = text(args)
    assert given.startswith("#cloud-config\n")
    assert [error.message for error in cloud_init.iter_errors(yaml.safe_load(given))] == []


def test_cloud_init_does_judge(cloud_init: jsonschema.Draft4Validator) -> None:
    assert list(cloud_init.iter_errors({"write_files": [{"content": "no path"}]}))


def test_the_host_has_the_key_that_it_is_given_and_no_other() -> None:
    config = yaml.safe_load(text(PLAIN))
    assert config["ssh_keys"] == {
        "ed25519_private": PLAIN.host_key.private_openssh,
        "ed25519_public": PLAIN.host_key.public,
    }
    assert config["ssh_deletekeys"] is True
    assert config["ssh_pwauth"] is False
    (user,) = config["users"]
    assert (user["name"], user["ssh_authorized_keys"]) == ("ubuntu", ["ssh-ed25519 AAAA operator"])


def test_the_steps_are_on_the_console_which_nova_shows() -> None:
    files = {file["path"]: file["content"] for file in yaml.safe_load(text(PLAIN))["write_files"]}
    assert "StandardOutput=journal+console\n" in files["/etc/systemd/system/mlbatch-first-boot.service"]


def test_more_than_nova_takes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the user data is \d+ bytes in base64, and Nova takes 65535"):
        text(replace(PLAIN, authorized_key="x" * 65536))


def test_an_image_of_nodes_that_no_kind_was_published_with_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"no release of kind in the catalogue .* kindest/node:v1\.30\.0; it has kindest"
    ):
        text(replace(PLAIN, kind=KindArgs(node_image="kindest/node:v1.30.0")))


@pytest.mark.parametrize(
    ("gpu", "ubuntu", "expected"),
    [
        (GpuStackArgs(), "22.04", []),
        (GpuStackArgs(), "24.04", []),
        (GpuStackArgs(), "26.04", ["CUDA 12.9 is packaged for Ubuntu 22.04 or 24.04, and the image has 26.04"]),
        (
            GpuStackArgs(cuda="13.0"),
            "22.04",
            ["CUDA 13.0 has no package in the catalogue, and 12.9 is the last one for a P100: set 12.9 or 12.2"],
        ),
        (
            GpuStackArgs(driver="470", toolkit="1.17.8-1"),
            "22.04",
            [
                "container toolkit 1.17.8-1 is not one that is known to be safe: set 1.20.1-1 or 1.20.0-1 or 1.19.1-1",
                f"CUDA 12.9 needs driver 575 or later, and 470 is older ({catalogue.CUDA['12.9'].source})",
            ],
        ),
        (
            GpuStackArgs(driver="595"),
            "22.04",
            ["driver 595 is not a branch that can be installed, and 580 is the last one for a P100: set 580"],
        ),
    ],
)
def test_what_does_not_go_together_is_said(gpu: GpuStackArgs, ubuntu: str, expected: list[str]) -> None:
    assert list(conflicts(gpu, ubuntu, "Tesla-P100-PCIE-16GB")) == expected


def test_the_cluster_is_reached_on_loopback_alone() -> None:
    files = {file["path"]: file["content"] for file in yaml.safe_load(text(GPU))["write_files"]}
    config = yaml.safe_load(files["/etc/mlbatch/kind.yaml"])
    assert config["networking"] == {"ipFamily": "dual", "apiServerAddress": "127.0.0.1", "apiServerPort": 6443}
    (node,) = config["nodes"]
    mappings = node["extraPortMappings"]
    assert {mapping["listenAddress"] for mapping in mappings} == {"127.0.0.1"}
    node_ports = {30950: 5000, 31000: 6000, 31001: 6001, 31002: 6002, 31003: 6003, 31004: 6004, 31005: 6005}
    assert {mapping["containerPort"]: mapping["hostPort"] for mapping in mappings} == {80: 80, 443: 443, **node_ports}
    assert node["image"] == NEWEST
    assert node["extraMounts"] == [{"hostPath": "/dev/null", "containerPath": "/var/run/nvidia-container-devices/all"}]


def test_shellcheck_finds_nothing() -> None:
    command = [debian() / "usr/bin/shellcheck", "--external-sources", *sorted(FILES.glob("*.sh"))]
    done = subprocess.run(command, cwd=FILES, capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0


def test_the_marker_has_versions_and_checks(ready: Machine) -> None:
    marker = ready.marker
    assert marker["state"] == "ready"
    assert marker["versions"] == {
        "cuda": "12.9.86",
        "docker": "29.9.0",
        "kind": "kind v0.33.0 go1.26.5 linux/amd64",
        "kubernetes": "v1.35.8",
        "nvidia-container-toolkit": "1.20.1-1",
        "nvidia-driver": "580.178.04",
        "ubuntu": "24.04",
    }
    assert set(marker["checks"]) == {"gpus-in-cluster", "hello-world", "nbody", "nvcc", "nvidia-smi"}
    assert marker["checks"]["hello-world"] == "Hello from Docker!"


def test_the_log_has_each_step_with_its_end(ready: Machine) -> None:
    """docs/cpouta.md has its reader look there; times are in UTC."""
    said = [line.split(" ", 1) for line in ready.log.splitlines() if line[4:5] == "-" and line[19:20] == "Z"]
    ends = [text for _, text in said if text.endswith((": done", ": boots once more"))]
    names = [step["name"] for step in ready.plan["steps"]]
    assert [each for each in ends if each.endswith("done")] == [f"{name}: done" for name in names]
    assert "reboot: boots once more" in ends or "driver: boots once more" in ends


def test_docker_is_on_the_volume_with_nvidias_runtime(ready: Machine) -> None:
    daemon = json.loads(ready.path("/etc/docker/daemon.json").read_text())
    assert daemon["data-root"] == "/media/volume/docker"
    assert daemon["mtu"] == 1450, "that of the default route's device"
    assert daemon["features"] == {"containerd-snapshotter": False}
    assert daemon["default-runtime"] == "nvidia"
    assert ready.path("/etc/nvidia-container-runtime.toml").read_text() == (
        "accept-nvidia-visible-devices-as-volume-mounts=true\n"
    )
    kept = ready.kept()
    assert kept["etc/systemd/system/docker.service.d/10-volume.conf"] == (
        "[Unit]\nRequiresMountsFor=/media/volume\n[Service]\nExecStartPre=-/usr/sbin/xfs_growfs /media/volume\n"
    )
    assert kept["etc/fstab"].splitlines()[1:] == [
        "UUID=UUID /media/volume xfs defaults,nofail,x-systemd.device-timeout=60s 0 2"
    ]
    held = {name.removeprefix("var/lib/held.") for name in kept if name.startswith("var/lib/held.")}
    assert held == {
        "containerd.io",
        "docker-buildx-plugin",
        "docker-ce",
        "docker-ce-cli",
        "docker-compose-plugin",
        "libnvidia-container-tools",
        "libnvidia-container1",
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "nvidia-driver-580-server",
    }
    packages = ("docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin", "docker-compose-plugin")
    assert [kept[f"var/lib/packages/{name}"] for name in packages] == [
        "5:29.9.0-1~ubuntu.24.04~noble\n",
        "5:29.9.0-1~ubuntu.24.04~noble\n",
        "2.3.6-1~ubuntu.24.04~noble\n",
        "0.38.0-1~ubuntu.24.04~noble\n",
        "5.6.0-1~ubuntu.24.04~noble\n",
    ]
    assert kept["var/lib/packages/libnvidia-container1"] == "1.20.1-1\n"


def test_the_kubeconfig_is_the_users_alone(ready: Machine) -> None:
    kubeconfig = ready.path("/var/lib/mlbatch/kubeconfig")
    assert kubeconfig.read_text() == "server: https://127.0.0.1:6443\n"
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


def test_the_kubeconfig_is_nobody_elses_while_the_cluster_starts(ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    machine.take_volume(ready)
    machine.boot()
    assert machine.boot(cut=("kubectl", "before"))
    waiting = machine.path("/var/lib/mlbatch/first-boot.d/kind.kubeconfig")
    assert waiting.read_text() == "server: https://127.0.0.1:6443\n"
    assert waiting.stat().st_mode & 0o777 == 0o600


def test_that_the_cluster_is_finished_is_on_the_volume_for_good_before_anything_else_happens(tmp_path: Path) -> None:
    """A folder has a new name only once it is written itself: a cut would leave the note of a cluster that was begun,
    which the first boot of another VM removes, with all that it holds since."""
    machine = Machine.make(tmp_path, text(replace(PLAIN, kind=KindArgs(node_image=NEWEST))), gpu=False)
    assert machine.up()["state"] == "ready", machine.log
    calls = [call.split(" ", 1)[1] for call in machine.calls]
    synced = ["sync /media/volume/.mlbatch/kind.part", "sync /media/volume/.mlbatch"]
    create = next(at for at, call in enumerate(calls) if call.startswith("kind create"))
    assert calls[create - 2 : create] == synced
    assert calls[create + 1].startswith("docker update --restart")
    assert calls[create + 2 : create + 4] == synced


def test_the_cluster_comes_up_again_after_a_boot(ready: Machine) -> None:
    before = ready.kept()
    ready.boot()
    assert [name for name in before if name.endswith("control-plane/running")] != []
    assert ready.kept() == before
    assert [call for call in ready.calls if "create" in call or "install" in call] == []


def test_a_power_cut_anywhere_ends_like_none(ready: Machine, tmp_path: Path) -> None:
    """Each boot is interrupted some calls later than the last one, until one completes."""
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    cuts = 0
    for boot in range(60):
        cuts += machine.boot(cut=(2 + boot, ("before", "after")[boot % 2]))
        if machine.path("/var/lib/mlbatch/first-boot.json").exists() and machine.marker["state"] != "running":
            break
    assert machine.marker["state"] == "ready", "it ends after every power cut"
    assert cuts > 10
    assert machine.kept() == ready.kept()


@pytest.mark.parametrize("command", ["mkfs.xfs", "apt-get", "curl", "kind"])
def test_a_power_cut_in_the_middle_of_a_command_ends_like_none(command: str, ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    assert machine.boot(cut=(command, "middle")) or machine.boot(cut=(command, "middle"))
    assert machine.up(3)["state"] == "ready", machine.log
    assert machine.kept() == ready.kept()


def failed(machine: Machine, step: str) -> str:
    """Return the log of a first boot that fails at a step."""
    marker = machine.up()
    assert (marker["state"], marker["step"]) == ("failed", step)
    return "\n".join(marker["log"])


def test_a_failed_step_is_repeated_ten_times_and_continues_at_the_next_boot(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    (machine.folder / "machine/offline").touch()
    assert "apt-get: Could not resolve" in failed(machine, "packages")
    assert machine.log.count("packages: attempt") == 10
    (machine.folder / "machine/offline").unlink()
    assert machine.up()["state"] == "ready"


def test_a_new_kernel_runs_before_anything_is_installed_and_nothing_restarts_the_unit(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    (machine.folder / "machine/kernel").touch()
    (machine.folder / "machine/libraries").touch()
    machine.boot()
    assert machine.log.endswith("packages: boots once more\n")
    machine.boot()
    assert machine.marker["state"] == "ready", machine.log
    assert not (machine.folder / "machine/kernel").exists()


def test_a_volume_that_comes_from_another_vm_keeps_its_data_and_its_cluster(ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    machine.take_volume(ready)
    (data,) = (machine.folder / "volumes").iterdir()
    (data / "docker" / "containers" / "mlops-platform-control-plane" / "data").write_text("a database")
    before = digest(machine.disk)
    assert machine.up()["state"] == "ready", machine.log
    assert digest(machine.disk) == before
    assert (data / "docker/containers/mlops-platform-control-plane/data").read_text() == "a database"
    assert not any(" kind create" in call for call in machine.calls)


def digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def written(disk: Path, content: bytes, *places: int) -> None:
    with disk.open("r+b") as image:
        for place in places:
            image.seek(place)
            image.write(content)


@pytest.mark.parametrize("configuration", ["[inode]\nnrext64=0\n", "[metadata]\nnrext64=0\n", None])
def test_a_volume_of_a_newer_image_can_be_mounted_by_an_older_one(configuration: str | None, tmp_path: Path) -> None:
    """The kernel of Ubuntu 22.04 rejects nrext64, which mkfs.xfs of 24.04 enables by default.

    The second configuration is that of Debian 12, whose own mkfs.xfs rejects it.
    """
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    (machine.folder / "machine/newer-mkfs").touch()
    if configuration is not None:
        (machine.folder / "machine/lts.conf").write_text(configuration)
    machine.tell(XFS_FEATURES="/machine/lts.conf")
    assert machine.up()["state"] == "ready", machine.log
    done = subprocess.run(
        [debian() / "usr/sbin/xfs_db", "-r", "-c", "version", machine.disk],
        env={"LD_LIBRARY_PATH": f"{debian()}/usr/lib/x86_64-linux-gnu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "BIGTIME" in done.stdout
    assert "NREXT64" not in done.stdout


def swap(disk: Path) -> None:
    written(disk, b"SWAPSPACE2", 4086)


def other_xfs(disk: Path) -> None:
    libraries = {"LD_LIBRARY_PATH": f"{debian()}/usr/lib/x86_64-linux-gnu"}
    subprocess.run([debian() / "sbin/mkfs.xfs", "-q", "-L", "mine", disk], check=True, env=libraries)


def no_signature(disk: Path) -> None:
    written(disk, b"an encrypted disk has no header that anybody knows", 8 * 1024 * 1024)


def signature_at_the_end(disk: Path) -> None:
    """Uberblocks of the third label of a pool of ZFS, half a MiB before the end (libblkid, superblocks/zfs.c)."""
    uberblocks = DISK - 512 * 1024 + 128 * 1024
    written(disk, bytes.fromhex("0cb1ba0000000000"), *(uberblocks + number * 1024 for number in range(128)))


@pytest.mark.parametrize("content", [swap, other_xfs, no_signature, signature_at_the_end])
def test_a_volume_with_anything_on_it_is_refused_and_not_written_to(content: Any, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    content(machine.disk)
    before = digest(machine.disk)
    said = failed(machine, "volume")
    assert f"the volume {SERIAL} is not empty" in said
    assert "nothing was written to it" in said
    assert machine.log.count("volume: attempt") == 1
    assert digest(machine.disk) == before


def test_a_volume_that_is_not_attached_fails_by_its_serial(tmp_path: Path) -> None:
    said = failed(Machine.make(tmp_path, text(PLAIN), gpu=False, disk=False), "volume")
    assert f"no disk with the serial {SERIAL} within 0 s: is the volume attached?" in said


def test_docker_does_not_start_when_the_volume_is_gone(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    assert machine.up()["state"] == "ready", machine.log
    (data,) = (machine.folder / "volumes").iterdir()
    data.rename(machine.folder / "elsewhere")
    machine.disk.rename(machine.folder / "gone.img")
    machine.boot()
    assert not machine.path("/media/volume/docker").exists()


def test_a_filesystem_grows_with_its_volume_when_docker_starts(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    assert machine.up()["state"] == "ready", machine.log
    os.truncate(machine.disk, 2 * DISK)
    machine.boot()
    assert machine.path("/var/lib/mlbatch/first-boot.d/volume.done").exists()
    assert (machine.folder / "machine/filesystem").read_text() == f"{2 * DISK}\n"


def test_what_docker_kept_before_is_copied_with_its_attributes(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    old = machine.path("/var/lib/docker/overlay2")
    old.mkdir(parents=True)
    (old / "layer").write_text("bytes")
    (old / "layer").chmod(0o640)
    machine.path("/etc/docker").mkdir()
    machine.path("/etc/docker/daemon.json").write_text('{"log-driver": "local"}')
    assert machine.boot(cut=("jq", "before")) is False
    assert machine.marker["state"] == "ready", machine.log
    (data,) = (machine.folder / "volumes").iterdir()
    copied = data / "docker/overlay2/layer"
    assert (copied.read_text(), copied.stat().st_mode & 0o777) == ("bytes", 0o640)
    daemon = json.loads(machine.path("/etc/docker/daemon.json").read_text())
    assert (daemon["log-driver"], daemon["data-root"]) == ("local", "/media/volume/docker")


def test_a_gpu_stack_without_a_gpu_is_refused(tmp_path: Path) -> None:
    said = failed(Machine.make(tmp_path, text(GPU), gpu=False), "driver")
    assert "this machine has no NVIDIA device: is its flavor one with a GPU?" in said


def test_another_key_of_a_repository_is_refused(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    (machine.folder / "machine/served").write_text(f"{catalogue.DOCKER_KEY.url} 0123\n")
    key = catalogue.DOCKER_KEY
    assert f"the key at {key.url} has the fingerprint '0123', not {key.fingerprint}" in failed(machine, "docker")
    assert not machine.path("/etc/apt/keyrings/docker.asc").exists()


@pytest.mark.parametrize("image", [NEWEST, SEED])
def test_kind_which_runs_as_root_is_checked_by_its_pinned_digest(image: str) -> None:
    told = environment(replace(PLAIN, kind=KindArgs(node_image=image)), f"{SERIAL}b6c-0123456789ab")
    (release,) = (each for each in catalogue.KIND_RELEASES if image in each.node_images)
    assert (told["KIND_URL"], told["KIND_SHA256"]) == (release.kind.url, release.kind.sha256)
    assert len(told["KIND_SHA256"]) == 64


@pytest.mark.parametrize(
    ("digest", "said"),
    [
        ("", "has no digest in the catalogue, and root would run it"),
        ("0" * 64, f"has not the digest sha256:{'0' * 64}"),
    ],
)
def test_a_download_without_its_digest_is_refused(digest: str, said: str, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(replace(PLAIN, kind=KindArgs(node_image=SEED))), gpu=False)
    machine.tell(KIND_SHA256=digest)
    assert f"{catalogue.KIND_RELEASES[-1].kind.url} {said}" in failed(machine, "cluster")
    assert not machine.path("/usr/local/bin/kind").exists()


def test_cuda_is_signed_and_its_repository_is_gone_afterwards(ready: Machine) -> None:
    kept = ready.kept()
    assert kept["var/lib/packages/cuda-toolkit-12-9"] == "12.9.1-1\n"
    assert kept["etc/apt/keyrings/cuda.asc"] == catalogue.CUDA_KEY.fingerprint
    assert "etc/apt/sources.list.d/cuda.list" not in kept


def test_cuda_comes_from_the_repository_of_the_system(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(replace(GPU, gpu=GpuStackArgs(cuda="12.2"))), gpu=True)
    machine.path("/etc/os-release").write_text('VERSION_ID="22.04"\nVERSION_CODENAME=jammy\n')
    assert machine.up()["state"] == "ready", machine.log
    assert machine.marker["versions"]["cuda"] == "12.2.86"


def test_cuda_for_another_system_is_refused(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    machine.path("/etc/os-release").write_text('VERSION_ID="26.04"\nVERSION_CODENAME=resolute\n')
    assert "CUDA 12.9 is packaged for Ubuntu 22.04 24.04, and this is 26.04" in failed(machine, "cuda")


def test_a_cluster_of_other_settings_on_the_volume_is_refused_and_stays(ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(replace(GPU, kind=KindArgs(node_image=SEED))), gpu=True)
    machine.take_volume(ready)
    said = f"on the volume has the node and port '{NEWEST} 6443', and the settings ask for '{SEED} 6443'"
    assert said in failed(machine, "cluster")
    assert any(name.endswith("control-plane/config") for name in machine.kept())


def test_a_cluster_of_other_settings_goes_where_the_settings_let_it(ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(replace(GPU, kind=KindArgs(node_image=SEED, recreate=True))), gpu=True)
    machine.take_volume(ready)
    assert machine.up()["state"] == "ready", machine.log
    (config,) = [name for name in machine.kept() if name.endswith("control-plane/config")]
    assert yaml.safe_load(machine.kept()[config])["nodes"][0]["image"] == SEED


@pytest.mark.parametrize("began_with_gpu", [False, True])
def test_a_cluster_goes_on_where_a_gpu_comes_or_goes(began_with_gpu: bool, ready: Machine, tmp_path: Path) -> None:
    """Users begin with standard.xxlarge, and use a flavor with a GPU after CSC has granted it."""
    plain = text(replace(GPU, gpu=None))
    first = ready if began_with_gpu else Machine.make(tmp_path / "first", plain, gpu=False)
    assert began_with_gpu or first.up()["state"] == "ready", first.log
    second = Machine.make(tmp_path / "second", plain if began_with_gpu else text(GPU), gpu=not began_with_gpu)
    second.take_volume(first)
    assert second.up()["state"] == "ready", second.log
    assert not any(" kind create" in call or " kind delete" in call for call in second.calls)
    assert second.path("/var/lib/mlbatch/kubeconfig").exists()
    seen = {one: each.marker["checks"].get("gpus-in-cluster") for one, each in (("first", first), ("second", second))}
    with_gpu, without = ("first", "second") if began_with_gpu else ("second", "first")
    assert seen == {with_gpu: "GPU 0: Tesla P100-PCIE-16GB (UUID: GPU-0)", without: None}
    assert any(name.endswith("control-plane/ldconfig.real") for name in second.kept()), "NVIDIA's toolkit looks for it"


def test_a_node_that_sees_no_gpu_of_its_vm_is_refused(ready: Machine, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(GPU), gpu=True)
    machine.take_volume(ready)
    (data,) = (machine.folder / "volumes").iterdir()
    (data / "docker/containers/mlops-platform-control-plane/runtime").write_text("runc\n")
    assert machine.up()["state"] == "failed"
    assert "kind's node sees no GPU of this VM, so that none of its pods would" in machine.log
    assert not any(" kind create" in call or " kind delete" in call for call in machine.calls)


def test_without_a_gpu_the_runtime_of_nvidias_name_is_runc(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, text(PLAIN), gpu=False)
    assert machine.up()["state"] == "ready", machine.log
    daemon = json.loads(machine.path("/etc/docker/daemon.json").read_text())
    assert (daemon["default-runtime"], daemon["runtimes"]) == ("nvidia", {"nvidia": {"path": "runc"}})
