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

    def up(self, stack: str, settings: Callable[[Project], Mapping[str, Any]]) -> Project:
        """Return the stack of this name, updated to settings that are created for its project."""
        if self._stands is None or self._stands.stack != stack:
            self.down()
            self._stands = self._make_project(stack)
        self._stands.configure(settings(self._stands))
        self._stands.up()
        return self._stands

    def down(self) -> None:
        """Destroy the current stack."""
        project, self._stands = self._stands, None
        if project is not None:
            project.destroy()
