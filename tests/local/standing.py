"""The stack on the tests' cluster, which test modules update one after the other."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.local.environment import Project


class Standing:
    """One stack at a time, because installing and destroying the platform takes longer than most tests.

    A module leaves no jobs, and restores its manual changes. A module that needs a cluster without the platform first
    destroys the stack with `down`.
    """

    def __init__(self, make_project: Callable[[str], Project]) -> None:
        self._make_project = make_project
        self._stands: Project | None = None
        self._settings: Mapping[str, Any] | None = None

    def up(self, stack: str, settings: Callable[[Project], Mapping[str, Any]]) -> Project:
        """Return the stack of this name, updated to settings that are created for its project.

        The previous module's settings need no update.
        """
        if self._stands is None or self._stands.stack != stack:
            self.down()
            self._stands = self._make_project(stack)
        wanted = settings(self._stands)
        if wanted != self._settings:
            self._settings = None
            self._stands.configure(wanted)
            self._stands.up()
            self._settings = wanted
        return self._stands

    def down(self) -> None:
        """Destroy the current stack."""
        project, self._stands, self._settings = self._stands, None, None
        if project is not None:
            project.destroy()
