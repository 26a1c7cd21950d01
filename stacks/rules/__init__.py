"""What no single value of the settings shows: sums, names that clash, jobs that could never run.

A rule works on the sections that could be read, and says nothing about those that could not.
"""

from __future__ import annotations

from stacks.problems import Problem
from stacks.reading import Parts
from stacks.rules import platform


def check(parts: Parts) -> list[Problem]:
    """Return what is wrong with the settings as a whole."""
    return [problem for rules in (platform,) for problem in rules.check(parts)]
