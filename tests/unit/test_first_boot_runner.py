"""The program that runs the steps of a VM's first boot, with test steps: its output, and when it stops."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.openstack.first_boot import runner


class Boots:
    """A VM's folders, and the steps of its plan."""

    def __init__(self, folder: Path, paused: list[float]) -> None:
        self.folder, self.paused, self.steps = folder, paused, list[dict[str, Any]]()

    def step(self, name: str, script: str, attempts: int = 3, seconds: float = 20) -> None:
        self.steps.append({"name": name, "attempts": attempts, "seconds": seconds})
        (self.folder / f"{name}.sh").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / f"{name}.sh").chmod(0o755)

    def boot(self) -> int:
        plan = {"steps": self.steps, "environment": {"PAUSE": "7.5", "TOLD": "what"}}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        return runner.main()

    @property
    def marker(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "marker.json").read_text()))

    @property
    def log(self) -> list[str]:
        """The lines of the log, without their times."""
        time = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ")
        return [time.sub("", line) for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boots:
    places = {
        "__file__": str(tmp_path / "runner.py"),
        "PLAN": tmp_path / "plan.json",
        "MARKER": tmp_path / "marker.json",
        "STATE": tmp_path / "state",
        "RESULTS": tmp_path / "state" / "results",
        "LOG": tmp_path / "log",
        "BOOT": tmp_path / "boot",
    }
    (tmp_path / "boot").write_text("5a80468e\n")
    for name, place in places.items():
        monkeypatch.setattr(runner, name, place)
    paused: list[float] = []
    monkeypatch.setattr(runner.time, "sleep", paused.append)
    return Boots(tmp_path, paused)


def test_each_step_runs_once_in_its_order_and_what_it_recorded_is_in_the_marker(boots: Boots) -> None:
    boots.step("one", 'mkdir -p "$RESULTS/versions" && echo " 28.5.2 " > "$RESULTS/versions/docker"')
    boots.step("two", 'mkdir -p "$RESULTS/checks"; echo "$TOLD $REBOOT $REFUSED $STATE" > "$RESULTS/checks/told"')
    assert boots.boot() == 0
    assert boots.marker == {
        "state": "ready",
        "step": "two",
        "message": "",
        "log": [],
        "boot": "5a80468e",
        "versions": {"docker": "28.5.2"},
        "checks": {"told": f"what 10 11 {boots.folder}/state"},
    }
    once = ["one: attempt 1 of 3", "one: done", "two: attempt 1 of 3", "two: done"]
    assert boots.log == once
    assert sorted(file.name for file in (boots.folder / "state").glob("*.done")) == ["one.done", "two.done"]
    boots.step("three", f"cp {boots.folder}/marker.json {boots.folder}/seen")
    assert boots.boot() == 0
    assert boots.log == [*once, "three: attempt 1 of 3", "three: done"]
    seen = json.loads((boots.folder / "seen").read_text())
    assert (seen["state"], seen["step"]) == ("running", "three")


def test_a_step_that_fails_is_tried_again_after_a_pause_each(boots: Boots) -> None:
    boots.step("one", "true")
    boots.step("shaky", f"echo x >> {boots.folder}/tries; exec [ $(wc -l < {boots.folder}/tries) -ge 3 ]")
    assert boots.boot() == 0
    assert boots.paused == [7.5, 7.5]
    assert boots.log[2:] == [
        "shaky: attempt 1 of 3",
        "shaky: ended with 1",
        "shaky: attempt 2 of 3",
        "shaky: ended with 1",
        "shaky: attempt 3 of 3",
        "shaky: done",
    ]


def test_one_that_keeps_failing_ends_the_boot_with_the_end_of_its_log(
    boots: Boots, capsys: pytest.CaptureFixture[str]
) -> None:
    boots.step(
        "broken", "i=1; while [ $i -le 30 ]; do echo line $i; i=$((i+1)); done; echo why >&2; exit 3", attempts=2
    )
    boots.step("never", "true")
    assert boots.boot() == 1
    assert boots.paused == [7.5]
    marker = boots.marker
    said = (marker["state"], marker["step"], marker["message"])
    assert said == ("failed", "broken", "step 'broken' ended with 3")
    *lines, last = marker["log"]
    assert lines == [*(f"line {number}" for number in range(13, 31)), "why"]
    assert last.endswith("Z broken: ended with 3")
    assert len(marker["log"]) == 20
    # The console, which the user reads without SSH, has each step and the end of the log.
    console = capsys.readouterr().out.splitlines()
    assert console[-20:] == marker["log"]
    assert [line.split("Z ")[1] for line in console[:-20]] == [
        "broken: attempt 1 of 2",
        "broken: ended with 3",
        "broken: attempt 2 of 2",
        "broken: ended with 3",
    ]
    assert not list((boots.folder / "state").glob("*.done"))


def test_one_that_is_refused_is_not_tried_again(boots: Boots) -> None:
    boots.step("volume", "exit 11")
    assert boots.boot() == 1
    assert (boots.log, boots.paused) == (["volume: attempt 1 of 3"], [])
    assert boots.marker["message"] == "step 'volume' ended with 11"


def test_one_that_takes_too_long_is_ended(boots: Boots) -> None:
    boots.step("slow", "exec sleep 60", attempts=1, seconds=0.1)
    assert boots.boot() == 1
    assert boots.marker["message"] == "step 'slow' ended with 124"


@pytest.mark.parametrize("reboot", ["exit 0", "exit 1"])
def test_one_that_wants_a_boot_gets_one_and_is_run_again_after_it(
    reboot: str, boots: Boots, program: Callable[[str, str], None]
) -> None:
    program("systemctl", f'echo "$@" > {boots.folder}/asked; {reboot}')
    boots.step("driver", f"[ -e {boots.folder}/asked ] || exit 10")
    assert boots.boot() == int(reboot[-1])
    assert (boots.folder / "asked").read_text() == "reboot\n"
    assert boots.log == ["driver: attempt 1 of 3", "driver: boots once more"]
    assert boots.marker["state"] == "running"
    assert boots.boot() == 0
    assert boots.log[2:] == ["driver: attempt 1 of 3", "driver: done"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a program on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return put
