"""What no single value of the settings shows: sums, names that clash, jobs that could never run.

A rule works on the sections that could be read, and says nothing about those that could not.
"""

from __future__ import annotations

from stacks.problems import Problem
from stacks.reading import Parts
from stacks.rules import azure, gpu, health, monitoring, platform, storage, volcano, workloads
from stacks.settings import Target

_AKS = (azure, gpu, storage, volcano, health, workloads, monitoring)


def check(parts: Parts) -> list[Problem]:
    """Return what is wrong with the settings as a whole."""
    modules = (platform, *(_AKS if parts.target is Target.AKS else ()))
    return [problem for rules in modules for problem in rules.check(parts)]


def warnings(parts: Parts) -> list[str]:
    """Return what is allowed and nobody knows to work, in words for the reader of a run."""
    return gpu.warnings(parts) if parts.target is Target.AKS else []
