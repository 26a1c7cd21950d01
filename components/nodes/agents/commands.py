"""The node's own commands, run in its mount namespace by a privileged pod that shares the node's process ids."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

COMMAND_SECONDS = 600


class CommandError(OSError):
    """A command of the node did not do its work; the message says which and why."""


@dataclass(frozen=True)
class Answer:
    """A command's exit status and what it printed."""

    status: int
    text: str


Run = Callable[[Sequence[str]], Answer]
"""Runs a command on the node."""


def done(run: Run, *command: str) -> str:
    """Return what a command printed; raises CommandError when it failed."""
    answer = run(command)
    if answer.status != 0:
        raise CommandError(f"`{' '.join(command)}` ended with {answer.status}: {answer.text.strip()[-500:]}")
    return answer.text


def on_the_node(command: Sequence[str]) -> Answer:
    """Run a command with the node's programs, files and mounts."""
    inside = ["nsenter", "--target", "1", "--mount", "--", *command]
    try:
        ran = subprocess.run(inside, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{' '.join(command)}` took longer than {COMMAND_SECONDS} s") from error
    return Answer(ran.returncode, ran.stdout if ran.returncode == 0 else ran.stderr)
