"""The programs on the nodes: labels from Hyper-V's pairs, and scratch disks through fake commands of a node."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from components.azure.agents import hyperv_labels
from components.azure.aks import LOCAL_DISKS
from components.kubernetes.in_cluster import Api
from components.nodes.agents import commands, node, nvme_scratch
from components.nodes.agents.commands import Answer, CommandError, done, on_the_node
from components.nodes.agents.local_disks import Device, ScratchError, array_of
from components.nodes.agents.scratch_space import Scratch


def record_of(key: str, value: str) -> bytes:
    return key.encode().ljust(512, b"\0") + value.encode().ljust(2048, b"\0")


class TestHypervLabels:
    def test_each_pair_is_a_label(self) -> None:
        pool = record_of("PhysicalHostName", "LON23PrdApp04") + record_of("HostingSystemEditionId", "168")
        assert hyperv_labels.wanted(pool, []) == {
            "hyperv/PhysicalHostName": "LON23PrdApp04",
            "hyperv/HostingSystemEditionId": "168",
        }

    def test_a_record_cut_short_or_empty_is_left_out(self) -> None:
        pool = record_of("A", "1") + record_of("", "2") + record_of("B", "3")[:-1]
        assert hyperv_labels.wanted(pool, []) == {"hyperv/A": "1"}

    @pytest.mark.parametrize(
        ("text", "label"),
        [
            ("host one", "host-one"),
            ("-x.y_z-", "x.y_z"),
            ("a" * 70, "a" * 63),
            ("ä", ""),
            ("{1B2C}", "1B2C"),
            ("a" * 62 + "..", "a" * 62),
        ],
    )
    def test_a_value_becomes_one_that_a_label_may_have(self, text: str, label: str) -> None:
        assert hyperv_labels.label_part(text) == label

    def test_a_pool_gone_wild_gives_a_bounded_number_of_labels(self) -> None:
        pool = b"".join(record_of(f"K{number:03}", "1") for number in range(100))
        assert len(hyperv_labels.wanted(pool, [])) == 32

    def test_the_partition_key_is_that_of_the_one_full_membership(self) -> None:
        assert hyperv_labels.partition_key(["0x8001", "0x7fff", "0xffff", "0x0000"]) == "0x8001"
        assert hyperv_labels.partition_key(["0x8001", "0x8002"]) is None
        assert hyperv_labels.partition_key(["0x7fff", "junk"]) is None

    def test_stale_labels_go_and_those_of_others_stay(self) -> None:
        present = {"hyperv/A": "1", "hyperv/Gone": "2", "ib/pkey": "0x8001", "team": "blue"}
        assert hyperv_labels.changes(present, {"hyperv/A": "1", "hyperv/B": "3"}) == {
            "hyperv/B": "3",
            "hyperv/Gone": None,
            "ib/pkey": None,
        }

    def test_each_port_has_its_own_keys(self, tmp_path: Path) -> None:
        for device, key in (("mlx5_1", "0x8002"), ("mlx5_0", "0x8001"), ("eth0", "0x8003")):
            (tmp_path / device / "ports" / "1" / "pkeys").mkdir(parents=True)
            (tmp_path / device / "ports" / "1" / "pkeys" / "0").write_text(f"{key}\n")
        assert hyperv_labels.port_keys(tmp_path) == ["0x8001", "0x8002"]
        assert hyperv_labels.port_keys(tmp_path / "absent") == []

    def test_the_nodes_labels_are_brought_up_to_date_every_five_minutes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own, ran = FakeNode(hyperv__Gone="1"), list[Any]()
        (tmp_path / "pool").write_bytes(record_of("A", "1"))
        monkeypatch.setattr(hyperv_labels, "POOL", tmp_path / "pool")
        monkeypatch.setattr(hyperv_labels, "INFINIBAND", tmp_path)
        monkeypatch.setattr(node.Node, "own", lambda: own)
        monkeypatch.setattr(node, "run", lambda *given: ran.append(given))
        hyperv_labels.main()
        ((work, period, port),) = ran
        assert (period, port) == (300, 8081)
        assert work() is True
        assert own.held == {"hyperv/A": "1"}


class Asked(Api):
    """An API server with one node that records its requests."""

    def __init__(self) -> None:
        self.node: Any = {"metadata": {}}
        self.asked: list[tuple[str, str, Any]] = []

    def get(self, path: str, **query: str) -> Any:
        self.asked.append(("GET", path, None))
        return self.node

    def patch(self, path: str, body: Any, **query: str) -> Any:
        self.asked.append(("PATCH", path, body))
        return self.node


class TestNode:
    def test_it_reads_and_changes_the_labels_of_its_node_alone(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = Asked()
        monkeypatch.setenv("NODE_NAME", "gpu/0")
        monkeypatch.setattr(Api, "in_cluster", lambda: api)
        own = node.Node.own()
        assert own.labels() == {}
        api.node = {"metadata": {"labels": {"team": "blue"}}}
        assert own.labels() == {"team": "blue"}
        caplog.set_level(logging.INFO)
        own.label({})
        assert [method for method, _, _ in api.asked] == ["GET", "GET"], "nothing is sent for no changes"
        own.label({"a": "1", "b": None})
        assert api.asked[1:] == [
            ("GET", "/api/v1/nodes/gpu/0", None),
            ("PATCH", "/api/v1/nodes/gpu/0", {"metadata": {"labels": {"a": "1", "b": None}}}),
        ]
        assert caplog.messages == ["labels changed: {'a': '1', 'b': None}"]


class _EndError(Exception):
    """Ends the loop that has no end."""


class TestRun:
    @staticmethod
    def pauses(
        monkeypatch: pytest.MonkeyPatch, outcomes: Sequence[bool | Exception], period: float = 100
    ) -> tuple[list[float], list[bool]]:
        """Return after how many seconds each round is followed by another, and whether it was ready then."""
        left, found, ready, health = list(outcomes), list[float](), list[bool](), list[node.Health]()

        def work() -> bool:
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        def sleep(seconds: float) -> None:
            found.append(seconds)
            ready.append(health[0].is_ready)
            if not left:
                raise _EndError

        monkeypatch.setattr(node, "_serve", lambda given, port: health.append(given))
        monkeypatch.setattr(node.time, "sleep", sleep)
        with pytest.raises(_EndError):
            node.run(work, period, 0)
        return found, ready

    def test_after_failures_it_tries_again_sooner_and_never_more_often_than_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found, ready = self.pauses(monkeypatch, [True, *[False] * 8, True, False])
        assert found == [100, 60, 60, 60, 60, 60, 60, 60, 60, 100, 60]
        assert ready == [True, *[False] * 8, True, False]
        assert self.pauses(monkeypatch, [False] * 7)[0] == [2, 4, 8, 16, 32, 60, 60]
        assert self.pauses(monkeypatch, [False] * 4, period=5)[0] == [2, 4, 5, 5]

    def test_what_network_server_or_file_raise_is_a_failed_round(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        raised = [OSError("disk"), HTTPException("cut off"), ValueError("no JSON"), KeyError("metadata")]
        found, ready = self.pauses(monkeypatch, [*raised, True])
        assert (found, ready) == ([2, 4, 8, 16, 100], [*[False] * 4, True])
        assert caplog.messages == [f"this round failed: {error}" for error in raised]
        with pytest.raises(ZeroDivisionError):
            self.pauses(monkeypatch, [ZeroDivisionError()])

    def test_probes_are_answered(self) -> None:
        time = 0.0
        health = node.Health(60, now=lambda: time)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        before = threading.active_count()
        node._serve(health, port)
        assert threading.active_count() == before + 1

        def status(path: str) -> int:
            try:
                return int(urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).status)
            except HTTPError as error:
                return error.code

        assert (status("/healthz"), status("/readyz")) == (200, 503)
        health.passed(True)
        assert (status("/healthz"), status("/readyz")) == (200, 200)
        time = 240.0
        assert (status("/healthz"), status("/readyz")) == (503, 200)


class TestCommands:
    @pytest.fixture
    def ran(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[tuple[Any, Any]]]:
        """Have every command end as given. Return the commands and their time limits."""
        asked: list[tuple[Any, Any]] = []

        def ends(outcome: Any) -> list[tuple[Any, Any]]:
            def run(command: Any, *, timeout: float, **_: Any) -> Any:
                asked.append((command, timeout))
                if isinstance(outcome, Exception):
                    raise outcome
                return subprocess.CompletedProcess(command, *outcome)

            monkeypatch.setattr(commands.subprocess, "run", run)
            return asked

        return ends

    def test_they_are_the_nodes_own(self, ran: Any) -> None:
        asked = ran((0, "/dev/md127\n", "a warning"))
        assert on_the_node(["findmnt", "/scratch"]) == Answer(0, "/dev/md127\n")
        assert asked == [(["nsenter", "--target", "1", "--mount", "--", "findmnt", "/scratch"], 600)]

    def test_one_that_failed_says_why(self, ran: Any) -> None:
        ran((32, "half", "mount: no such device\n"))
        assert on_the_node(["mount", "/scratch"]) == Answer(32, "mount: no such device\n")
        with pytest.raises(CommandError, match=r"^`mount /scratch` ended with 32: mount: no such device$"):
            done(on_the_node, "mount", "/scratch")

    def test_one_that_does_not_end_is_told(self, ran: Any) -> None:
        ran(subprocess.TimeoutExpired("mkfs.ext4", 600))
        with pytest.raises(CommandError, match=r"^`mkfs.ext4 /dev/md127` took longer than 600 s$"):
            on_the_node(["mkfs.ext4", "/dev/md127"])

    def test_of_what_it_said_the_end_is_told(self) -> None:
        with pytest.raises(CommandError) as error:
            done(lambda command: Answer(1, "a" * 600 + "\n"), "ls")
        assert str(error.value) == "`ls` ended with 1: " + "a" * 500


class TestHealth:
    def test_a_program_whose_rounds_do_not_end_is_not_alive(self) -> None:
        time = 0.0
        health = node.Health(300, now=lambda: time)
        assert (health.is_alive, health.is_ready) == (True, False)
        time = 1199.0
        assert health.is_alive
        health.passed(True)
        time = 2398.0
        assert (health.is_alive, health.is_ready) == (True, True)
        time = 2400.0
        assert not health.is_alive


@dataclass
class Machine:
    """A node with disks. The agent's commands change it."""

    models: dict[str, str] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    partitioned: set[str] = field(default_factory=set)
    members: list[str] = field(default_factory=list)
    array: str = ""
    filesystem: str = ""
    mounted: str = ""
    immutable: bool = False
    left_behind: str = ""
    broken: set[str] = field(default_factory=set)
    mounted_elsewhere: bool = False
    makes_nothing: bool = False
    ran: list[list[str]] = field(default_factory=list)

    @classmethod
    def with_disks(cls, count: int, model: str = "Microsoft NVMe Direct Disk v2") -> Machine:
        return cls(models={f"/dev/nvme{number}n1": model for number in range(count)})

    def reboot(self) -> None:
        """Unmount everything; Linux then finds the array and names it by itself."""
        self.mounted = ""
        if self.members:
            self.array = "/dev/md127"

    def __call__(self, command: Sequence[str]) -> Answer:
        self.ran.append(list(command))
        if command[0] in self.broken:
            return Answer(1, f"{command[0]}: broken")
        answer: Answer = getattr(self, f"_{command[0].replace('.', '_')}")(list(command[1:]))
        return answer

    def did(self, name: str) -> list[list[str]]:
        return [command for command in self.ran if command[0] == name]

    def _lsblk(self, _: list[str]) -> Answer:
        return Answer(0, json.dumps({"blockdevices": [self._disk(path) for path in self.models]}))

    def _disk(self, path: str) -> dict[str, Any]:
        children: list[dict[str, Any]] = []
        own = self.signatures.get(path)
        mounts: list[str | None] = [None]
        if path in self.partitioned:
            children = [{"path": f"{path}p1", "type": "part", "model": None, "fstype": "ext4", "mountpoints": ["/"]}]
        elif self.array and path in self.members:
            mount = [self.mounted] if self.mounted == self.array else [None]
            child = {"path": self.array, "type": "raid0", "model": None, "fstype": self.filesystem or None}
            children = [{**child, "mountpoints": ["/pv-disks/scratch"] if mount[0] else [None]}]
        elif len(self.models) == 1:
            own = own or self.filesystem
            is_mounted = self.mounted == path or self.mounted_elsewhere
            mounts = ["/pv-disks/scratch"] if is_mounted else [None]
        entry: dict[str, Any] = {
            "path": path,
            "type": "disk",
            "model": f"{self.models[path]}   ",
            "fstype": own or None,
        }
        entry["mountpoints"] = mounts
        return {**entry, "children": children} if children else entry

    def _findmnt(self, arguments: list[str]) -> Answer:
        return Answer(0, f"{self.mounted}\n") if self.mounted else Answer(1, "")

    def _readlink(self, arguments: list[str]) -> Answer:
        return Answer(0, f"{arguments[-1]}\n")

    def _mdadm(self, arguments: list[str]) -> Answer:
        if self.makes_nothing:
            return Answer(0, "")
        disks = [argument for argument in arguments if argument.startswith("/dev/nvme")]
        self.members, self.array = disks, "/dev/md127"
        self.signatures = dict.fromkeys(disks, "linux_raid_member")
        if "--create" in arguments:
            self.filesystem = ""
        return Answer(0, "")

    def _udevadm(self, _: list[str]) -> Answer:
        return Answer(0, "")

    def _mkfs_ext4(self, _: list[str]) -> Answer:
        self.filesystem = "ext4"
        return Answer(0, "")

    def _mkfs_xfs(self, _: list[str]) -> Answer:
        self.filesystem = "xfs"
        return Answer(0, "")

    def _mkdir(self, _: list[str]) -> Answer:
        return Answer(0, "")

    def _chattr(self, arguments: list[str]) -> Answer:
        assert not self.mounted, "the file system itself must stay writable"
        self.immutable = arguments[0] == "+i"
        return Answer(0, "")

    def _ls(self, _: list[str]) -> Answer:
        return Answer(0, self.left_behind)

    def _mount(self, arguments: list[str]) -> Answer:
        assert self.immutable, "the bare folder could be written to"
        self.mounted = arguments[-2]
        return Answer(0, "")

    def _chmod(self, _: list[str]) -> Answer:
        assert self.mounted, "the bare folder would be opened"
        return Answer(0, "")


class FakeNode(node.Node):
    """A node whose labels are a dictionary. Records every write."""

    def __init__(self, **labels: str) -> None:
        self.held = {name.replace("__", "/").replace("_", "-"): value for name, value in labels.items()}
        self.written: list[dict[str, str | None]] = []

    def labels(self) -> dict[str, str]:
        return dict(self.held)

    def label(self, changes: Any) -> None:
        self.written.append(dict(changes))
        for name, value in changes.items():
            if value is None:
                self.held.pop(name, None)
            else:
                self.held[name] = value


READY = {"mlbatch/nvme-scratch": "ready"}


def round_on(machine: Machine, own: FakeNode, filesystem: str = "ext4") -> bool:
    return nvme_scratch.round_of(Scratch(machine, "/pv-disks/scratch", filesystem, LOCAL_DISKS), own)


class TestScratch:
    def test_blank_disks_become_one_file_system_and_the_node_says_so(self) -> None:
        machine, own = Machine.with_disks(8), FakeNode()
        assert round_on(machine, own)
        assert own.held == READY
        (create,) = machine.did("mdadm")
        assert create == [
            "mdadm",
            "--create",
            "/dev/md/mlbatch-scratch",
            "--run",
            "--level=0",
            "--chunk=512K",
            "--name=mlbatch-scratch",
            "--homehost=any",
            "--raid-devices=8",
            *(f"/dev/nvme{number}n1" for number in range(8)),
        ]
        (make,) = machine.did("mkfs.ext4")
        assert make[-3:] == ["-E", "stride=128,stripe-width=1024", "/dev/md127"]
        (mount,) = machine.did("mount")
        assert mount == ["mount", "--options", "nodev,nosuid,noatime,discard", "/dev/md127", "/pv-disks/scratch"]
        # Pods that are not root write there too, and delete only what is their own.
        assert machine.did("chmod") == [["chmod", "1777", "/pv-disks/scratch"]]

    def test_a_second_round_changes_nothing(self) -> None:
        machine, own = Machine.with_disks(8), FakeNode()
        round_on(machine, own)
        machine.ran.clear()
        own.written.clear()
        assert round_on(machine, own)
        assert {command[0] for command in machine.ran} == {"findmnt", "lsblk", "readlink"}
        assert own.written == []

    def test_after_a_reboot_the_array_is_mounted_again_and_keeps_its_data(self) -> None:
        machine, own = Machine.with_disks(8), FakeNode()
        round_on(machine, own)
        machine.reboot()
        machine.ran.clear()
        own.written.clear()
        assert round_on(machine, own)
        assert not machine.did("mdadm")
        assert not machine.did("mkfs.ext4")
        assert own.written == [{"mlbatch/nvme-scratch": None}, READY]

    def test_after_a_reboot_a_folder_with_files_does_not_pass_for_the_scratch_space(self) -> None:
        machine, own = Machine.with_disks(8), FakeNode(mlbatch__nvme_scratch="ready")
        machine.left_behind = "lost+found\ncheckpoint-17\n"
        machine.broken = {"mdadm"}
        with pytest.raises(CommandError, match="mdadm"):
            round_on(machine, own)
        assert own.held == {}
        assert machine.immutable

    def test_an_array_that_is_not_assembled_is_and_its_data_stays(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        round_on(machine, own)
        machine.reboot()
        machine.array = ""
        machine.ran.clear()
        assert round_on(machine, own)
        (assemble,) = machine.did("mdadm")
        assert assemble[1:4] == ["--assemble", "--run", "/dev/md/mlbatch-scratch"]
        assert not machine.did("mkfs.ext4")

    def test_one_disk_needs_no_array(self) -> None:
        machine, own = Machine.with_disks(1, "Microsoft NVMe Direct Disk"), FakeNode()
        assert round_on(machine, own)
        assert not machine.did("mdadm")
        assert machine.did("mkfs.ext4")[0][-1] == "/dev/nvme0n1"

    def test_other_nvme_disks_are_never_touched(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        machine.models["/dev/nvme8n1"] = "MSFT NVMe Accelerator v1.0"
        machine.models["/dev/nvme9n1"] = "Microsoft NVMe Direct Disk v2"
        machine.partitioned = {"/dev/nvme9n1"}
        assert round_on(machine, own)
        touched = [argument for command in machine.ran for argument in command]
        assert not {"/dev/nvme8n1", "/dev/nvme9n1"} & set(touched)
        assert machine.members == ["/dev/nvme0n1", "/dev/nvme1n1"]

    def test_a_disk_with_something_on_it_is_left_alone(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        machine.signatures = {"/dev/nvme1n1": "LVM2_member"}
        with pytest.raises(ScratchError, match=r"LVM2_member"):
            round_on(machine, own)
        assert not machine.did("mdadm")
        assert own.held == {}

    def test_a_replaced_disk_is_not_filled_up_in_silence(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        machine.signatures = {"/dev/nvme1n1": "linux_raid_member"}
        with pytest.raises(ScratchError, match="a disk was replaced"):
            round_on(machine, own)
        assert own.held == {}

    def test_another_file_system_is_not_overwritten(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        round_on(machine, own)
        machine.reboot()
        with pytest.raises(ScratchError, match="ext4, not xfs"):
            round_on(machine, own, "xfs")
        assert own.held == {}

    def test_a_mount_of_something_else_is_not_the_scratch_space(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode(mlbatch__nvme_scratch="ready")
        machine.mounted = "/dev/sda1"
        with pytest.raises(ScratchError, match="/dev/sda1"):
            round_on(machine, own)
        assert own.held == {}

    def test_a_node_without_local_disks_is_not_ready(self) -> None:
        own = FakeNode()
        with pytest.raises(ScratchError, match="no local NVMe disk"):
            round_on(Machine(), own)
        assert own.held == {}

    def test_xfs_knows_the_arrays_geometry(self) -> None:
        machine = Machine.with_disks(8)
        assert round_on(machine, FakeNode(), "xfs")
        assert machine.did("mkfs.xfs") == [["mkfs.xfs", "-d", "su=512k,sw=8", "/dev/md127"]]

    @pytest.mark.parametrize(
        ("children", "missing"),
        [
            ({"/dev/nvme0n1": "/dev/md1"}, ["/dev/nvme1n1"]),
            ({"/dev/nvme0n1": "/dev/md1", "/dev/nvme1n1": "/dev/md2"}, []),
        ],
    )
    def test_disks_that_are_not_one_array_are_left_alone(self, children: dict[str, str], missing: list[str]) -> None:
        disks = [
            Device(
                path=path,
                kind="disk",
                model="",
                filesystem="",
                mounts=(),
                children=[
                    Device(path=array, kind="raid0", model="", filesystem="", mounts=(), children=())
                    for array in [children.get(path)]
                    if array
                ],
            )
            for path in ("/dev/nvme0n1", "/dev/nvme1n1")
        ]
        with pytest.raises(ScratchError) as error:
            array_of(disks)
        assert str(error.value) == (
            f"the local disks are not one array: {sorted(children.values())}, and without one: {missing}"
        )

    def test_an_array_that_is_mounted_elsewhere_is_left_there(self) -> None:
        machine, own = Machine.with_disks(1), FakeNode()
        machine.filesystem = "ext4"
        machine.mounted_elsewhere = True
        with pytest.raises(ScratchError, match=r"^/dev/nvme0n1 is mounted at /pv-disks/scratch already$"):
            round_on(machine, own)
        assert not machine.did("mount")

    def test_an_array_that_mdadm_does_not_make_is_told(self) -> None:
        machine, own = Machine.with_disks(2), FakeNode()
        machine.makes_nothing = True
        with pytest.raises(ScratchError, match=r"^mdadm has made no array of \['/dev/nvme0n1', '/dev/nvme1n1'\]$"):
            round_on(machine, own)
        assert own.held == {}

    def test_the_program_cleans_up_only_where_the_space_can_be_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        machine, own, ran, cleaned = Machine.with_disks(1), FakeNode(), list[Any](), list[Any]()
        monkeypatch.setenv("POD_UID", "1-2-3")
        monkeypatch.setattr(node.Node, "own", lambda: own)
        monkeypatch.setattr(nvme_scratch, "on_the_node", machine)
        monkeypatch.setattr(node, "run", lambda *given: ran.append(given))
        monkeypatch.setattr(nvme_scratch.Folders, "clean", lambda folders: cleaned.append(vars(folders)))
        nvme_scratch.main("/pv-disks/scratch", "xfs", LOCAL_DISKS)
        ((work, period, port),) = ran
        assert (period, port) == (60, 8082)
        assert work() is True
        assert machine.filesystem == "xfs"
        assert [(found["_folder"], found["_own_pod"]) for found in cleaned] == [("/pv-disks/scratch", "1-2-3")]
        monkeypatch.setattr(nvme_scratch, "round_of", lambda scratch, own: False)
        assert work() is False
        assert len(cleaned) == 1
