"""Which folders of a scratch space are removed: real folders, and the node's own commands."""

import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from components.nodes.agents import nvme_scratch, scratch_folders
from components.nodes.agents.commands import Answer, CommandError
from components.nodes.agents.scratch_folders import GRACE_SECONDS, Folders

AGENT = "00000000-0000-4000-8000-000000000000"
BLUE = "11111111-1111-4111-8111-111111111111"
RED = "22222222-2222-4222-8222-222222222222"


class Machine:
    """A node's scratch space and its kubelet's folder. Commands run there. The test sets the clock."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scratch, self.pods, self.time = root / "scratch", root / "pods", 1000.0
        self.replaced: dict[str, Answer] = {}
        monkeypatch.setattr(scratch_folders, "PODS", str(self.pods))
        self.scratch.mkdir()
        (self.pods / AGENT / "volumes").mkdir(parents=True)
        self.folders = self.started()

    def started(self) -> Folders:
        return Folders(self.run, str(self.scratch), AGENT, now=lambda: self.time)

    def run(self, command: Sequence[str]) -> Answer:
        if command[0] in self.replaced:
            return self.replaced[command[0]]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        return Answer(ran.returncode, ran.stdout if ran.returncode == 0 else ran.stderr)

    def pod(self, uid: str) -> Path:
        """Have a pod run that mounts its folder; return that."""
        (self.pods / uid / "volume-subpaths" / "scratch" / "main" / "0").mkdir(parents=True)
        folder = self.scratch / uid
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "checkpoints" / "step-1").write_text(uid)
        return folder

    def end(self, uid: str) -> None:
        """End a pod, whose object is still there: the kubelet takes its mounts down and keeps the pod's own folder."""
        subprocess.run(["rm", "-r", self.pods / uid / "volume-subpaths"], check=True)

    def rounds(self, count: int = 2, seconds: float = GRACE_SECONDS) -> list[str]:
        """Return the names that are left after some rounds with a pause between them."""
        for index in range(count):
            self.time += seconds if index else 0
            self.folders.clean()
        return sorted(entry.name for entry in self.scratch.iterdir())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_folder_goes_after_its_pod_and_those_of_running_pods_stay(machine: Machine) -> None:
    machine.pod(BLUE)
    red = machine.pod(RED)
    assert machine.rounds() == [BLUE, RED]
    machine.end(BLUE)
    assert machine.rounds() == [RED]
    assert (red / "checkpoints" / "step-1").read_text() == RED


def test_a_folder_goes_with_a_pod_of_which_nothing_is_left(machine: Machine) -> None:
    machine.pod(BLUE)
    subprocess.run(["rm", "-r", machine.pods / BLUE], check=True)
    assert machine.rounds() == []


def test_a_folder_that_is_about_to_be_mounted_stays(machine: Machine) -> None:
    (machine.scratch / BLUE).mkdir()
    assert machine.rounds(2, GRACE_SECONDS - 1) == [BLUE]
    machine.pod(BLUE)
    assert machine.rounds(3) == [BLUE]


def test_a_pause_of_use_starts_the_grace_anew(machine: Machine) -> None:
    machine.pod(BLUE)
    machine.end(BLUE)
    machine.rounds(1)
    (machine.pods / BLUE / "volume-subpaths").mkdir()
    machine.time += GRACE_SECONDS
    machine.rounds(1)
    machine.end(BLUE)
    assert machine.rounds(1) == [BLUE]


def test_what_is_no_pods_folder_is_left_alone(machine: Machine) -> None:
    (machine.scratch / "lost+found").mkdir()
    (machine.scratch / "olmo" / "checkpoints").mkdir(parents=True)
    (machine.scratch / RED).write_text("a file")
    (machine.scratch / f"{BLUE}.bak").mkdir()
    assert machine.rounds(3) == [f"{BLUE}.bak", RED, "lost+found", "olmo"]


def test_no_link_is_followed(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "kept").mkdir(parents=True)
    (machine.scratch / BLUE).symlink_to(other)
    (machine.pod(RED) / "out").symlink_to(other)
    machine.end(RED)
    assert machine.rounds() == [BLUE]
    assert (other / "kept").is_dir()


def test_a_deletion_that_takes_longer_than_a_round_goes_on_in_the_next(machine: Machine) -> None:
    machine.pod(BLUE)
    machine.end(BLUE)
    machine.replaced["timeout"] = Answer(124, "")
    assert machine.rounds() == [f"{BLUE}.ended"], "out of the way before it is gone"
    machine.replaced.clear()
    machine.folders = machine.started()
    assert machine.rounds(1) == []


def test_a_round_deletes_for_a_bounded_time(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []
    whole = machine.run
    monkeypatch.setattr(machine, "run", lambda command: ran.append(command) or whole(command))
    machine.folders = machine.started()
    machine.pod(BLUE)
    machine.end(BLUE)
    machine.rounds()
    (removal,) = [command for command in ran if "rm" in command]
    assert removal[:2] == ["timeout", "20"]
    assert "--one-file-system" in removal


def test_nothing_goes_where_the_kubelet_keeps_its_pods_elsewhere(machine: Machine) -> None:
    machine.pod(BLUE)
    subprocess.run(["rm", "-r", machine.pods / BLUE, machine.pods / AGENT], check=True)
    for _ in range(3):
        machine.time += GRACE_SECONDS
        with pytest.raises(CommandError, match="keeps its pods elsewhere"):
            machine.folders.clean()
    assert [entry.name for entry in machine.scratch.iterdir()] == [BLUE]


def test_nothing_goes_while_the_kubelets_folder_cannot_be_read(machine: Machine) -> None:
    machine.pod(BLUE)
    subprocess.run(["rm", "-r", machine.pods], check=True)
    with pytest.raises(CommandError, match="find"):
        machine.folders.clean()


def test_the_space_is_of_use_also_while_nothing_can_be_removed(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.replaced["find"] = Answer(1, "Input/output error")
    with caplog.at_level(logging.WARNING):
        nvme_scratch.clean(machine.folders)
    assert "Input/output error" in caplog.text
