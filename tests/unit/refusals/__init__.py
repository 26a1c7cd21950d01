"""The exact text of each settings error that the tests know, and of the warnings.

`make snapshots` writes the texts again. The diff shows a change of a key, a value, a bound or a fix. A file shows the
same explanation once. Other keys with it refer to the first one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, Final
from unittest import mock

from stacks.config import inputs, parsing
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import SettingsError
from stacks.targets.aks.settings import support
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.validation import rules
from tests.unit import (
    test_finetuning,
    test_late_refusals,
    test_network,
    test_object_names,
    test_pretraining,
    test_settings,
    test_vllm_settings,
    test_workload_settings,
)
from tests.unit.configurations import changed
from tests.unit.refusals.cases import cases, interpreted, with_facts

FOLDER: Final = Path(__file__).parent
_DAY: Final = date(2026, 6, 1)
"""The checks use the support dates of this day."""
_KEY: Final = re.compile(r"((?:ssh|ecdsa)-[a-z0-9-]+) AAAA[\w+/]+\.\.\.")
"""A public key, which the tests generate in each run."""
_WHOLE: Final = "interpreted"
_SEPARATOR: Final = "\n---\n"
Raw = Mapping[str, Any]
Case = Raw | tuple[Raw, ClusterFacts | ProjectFacts]


def _network() -> Iterator[Raw]:
    mistakes = test_network.MISTAKES
    of_a_team = [case for case in mistakes if case[0][0] != "dns" and case[0][-1] in ("addresses", "namespaces")]
    for place, found in (("tenancy", mistakes), ("teams.0", of_a_team)):
        for path, value in found:
            yield changed(test_network.valid(), {".".join(map(str, (place, "network", *path))): value})


def _training() -> Iterator[Raw]:
    for module in (test_finetuning, test_pretraining):
        for own in module.MISTAKES:
            yield module.raw(**own)
    for values in test_vllm_settings.MISTAKES:
        yield test_vllm_settings.with_batch(**values)


TABLES: Final[Mapping[str, Callable[[], Iterator[Case]]]] = {
    "azure": lambda: cases("azure"),
    "clusters": lambda: with_facts("clusters"),
    "forms": lambda: chain(cases("secrets"), cases("forms")),
    _WHOLE: lambda: (raw for raw, _ in interpreted()),
    "jobs": lambda: cases("jobs"),
    "late": lambda: iter(test_late_refusals.REFUSED),
    "names": lambda: iter(test_object_names.TAKEN),
    "network": _network,
    "projects": lambda: with_facts("projects"),
    "settings": lambda: (test_settings.changed(path, value) for path, value in test_settings.MISTAKES),
    "targets": lambda: cases("targets"),
    "training": _training,
    "workloads": lambda: (
        test_workload_settings.changed(path, value) for path, value in test_workload_settings.MISTAKES
    ),
}
"""Configurations with one error each, by topic. Some have facts of their cluster or project."""


def texts(name: str) -> str:
    """Return what users read for each configuration of a table."""
    home = mock.patch.dict(os.environ, HOME="/nowhere/home")
    with home, mock.patch.object(support, "today", return_value=_DAY):
        said = [_interpreted(*case) for case in interpreted()] if name == _WHOLE else list(map(_said, TABLES[name]()))
    shown: dict[str, str] = {}
    answers = ["\n".join(_once(text, shown) for text in answer) for answer in said]
    return _KEY.sub(r"\1 AAAA...", _SEPARATOR.join(answers)) + "\n"


def _once(error: str, shown: dict[str, str]) -> str:
    """Return an error. If an earlier key has the same error, return a reference to that key.

    shown: the first line by the other lines.
    """
    key, _, explanation = error.partition("\n")
    if explanation in shown:
        return f"{key}\n    as for {shown[explanation]}"
    if explanation and key not in shown.values():
        shown[explanation] = key
    return error


def _said(case: Case) -> Sequence[str]:
    """Return the errors of a configuration, or its warnings if it has no errors."""
    raw, facts = case if isinstance(case, tuple) else (case, None)
    partial, found = parsing.read(raw)
    if isinstance(facts, ProjectFacts):
        partial.site = facts
    else:
        partial.facts = facts
    wrong = [str(error) for error in [*found, *rules.check(partial)]]
    return wrong or [f"warning: {text}" for text in rules.warnings(partial)]


def _interpreted(raw: Raw, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the errors in the inputs of a stack."""
    try:
        inputs.interpret(raw, base=Path("/nowhere"), environment=environment)
    except SettingsError as error:
        return [str(problem) for problem in error.problems]
    return []
