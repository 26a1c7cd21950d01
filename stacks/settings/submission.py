"""The common keys of all workloads: name, switch and submission."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator

from components.scheduling.priorities import PRIORITIES
from components.workloads.submission import SubmissionMode
from stacks.config.errors import ConfigError, Path, key
from stacks.settings.model import SettingsModel, choice, reject

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


def _one_gang(value: object) -> object:
    if isinstance(value, list):
        reject(
            "a workload can have only one submission mode",
            "choose one; for two modes, run two workloads",
            expected=", ".join(SubmissionMode),
        )
    return value


class SubmissionSettings(SettingsModel):
    """How the job is submitted."""

    gang: Annotated[SubmissionMode, BeforeValidator(_one_gang)] = SubmissionMode.MLBATCH
    """`mlbatch`: through the queue of a team. Only this counts against a quota. `volcano`: as a Volcano job. `none`: as
    a plain Job, whose pods start independently.
    """
    team: str | None = None
    """Team that submits the job. Only for `mlbatch`."""
    user: str | None = None
    """User of the team on whose behalf the job is submitted. Only for `mlbatch`."""
    priority_class: Annotated[str, choice("priority class", tuple(PRIORITIES))] | None = None
    """Priority class of the pods."""


class WorkloadSettings(SettingsModel):
    """Keys of all workloads."""

    name: str
    """Name of the workload and its objects."""
    enabled: bool = False
    """Run it."""
    submission: SubmissionSettings = SubmissionSettings()

    what: ClassVar[str]
    """Name of the workload in messages."""
    no_volcano: ClassVar[str] = ""
    """Reason why Volcano cannot start it; empty if it can."""

    @property
    def queued(self) -> bool:
        """Whether a team's queue admits it."""
        return self.submission.gang is SubmissionMode.MLBATCH

    def check(self, path: Path) -> Iterator[ConfigError]:
        if not self.enabled:
            return
        yield from name_error((*path, "name"), self.name, str(path[-1]))
        where, gang = (*path, "submission"), self.submission.gang
        for name, value in (("team", self.submission.team), ("user", self.submission.user)):
            if value is not None and not self.queued:
                yield ConfigError(
                    (*where, name),
                    f"a {name} submits jobs through a queue, which gang: {gang} bypasses; the two exclude each other",
                    f"remove the key, or set {key((*where, 'gang'))} to mlbatch",
                )
        if gang is SubmissionMode.VOLCANO and self.no_volcano:
            yield ConfigError(
                (*where, "gang"), self.no_volcano, f"set {key((*where, 'gang'))} to mlbatch", expected="mlbatch, none"
            )


def name_error(path: Path, name: str, section: str) -> Iterator[ConfigError]:
    """Yield the error of an invalid workload name. section: its key, which the fix suggests."""
    if not _NAME.fullmatch(name):
        yield ConfigError(
            path,
            "Kubernetes would reject this name, or names that are derived from it",
            f"for example {section}",
            expected="at most 40 of a-z, 0-9 and -, with a letter first and a letter or digit last",
        )
