"""The exact text of each settings error that the tests know, and of the warnings.

`make snapshots` writes the texts again. The diff shows a change of a key, a value, a bound or a fix. A file shows the
same explanation once. A key with the same explanation names the first one.
"""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final
from unittest import mock

from stacks.config import inputs, parsing
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import SettingsError
from stacks.settings import support_end
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.validation import rules
from tests.unit.refusals.cases import cases, interpreted, with_facts

FOLDER: Final = Path(__file__).parent
_DAY: Final = date(2026, 6, 1)
"""The checks use the support dates of this day."""
_KEY: Final = re.compile(r"((?:ssh|ecdsa)-[a-z0-9-]+) AAAA[\w+/]+\.\.\.")
"""A public key, which the tests generate in each run."""
_OF_A_PLACE: Final = ("clusters", "projects")
"""Tables with the facts of a cluster or an OpenStack project."""
_SEPARATOR: Final = "\n---\n"
Raw = Mapping[str, Any]


TABLES: Final = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem != "accepted")
"""Topics, each with the configurations of `cases.py`."""


def texts(name: str) -> str:
    """Return what users read for each configuration of a table."""
    home = mock.patch.dict(os.environ, HOME="/nowhere/home")
    with home, mock.patch.object(support_end, "today", return_value=_DAY):
        if name == "interpreted":
            said = [_interpreted(*case) for case in interpreted()]
        elif name in _OF_A_PLACE:
            said = [_said(*case) for case in with_facts(name)]
        else:
            said = [_said(raw) for raw in cases(name)]
    shown: dict[str, str] = {}
    answers = ["\n".join(_once(text, shown) for text in answer) for answer in said]
    return _KEY.sub(r"\1 AAAA...", _SEPARATOR.join(answers)) + "\n"


def _once(error: str, shown: dict[str, str]) -> str:
    """Return an error. If an earlier key has the same error, return a reference to that key.

    shown: the first line by the other lines.
    """
    key, _, explanation = error.partition("\n")
    if explanation in shown:
        return f"{key}  (as for {shown[explanation]})"
    if explanation and key not in shown.values():
        shown[explanation] = key
    return error


def _said(raw: Raw, facts: ClusterFacts | ProjectFacts | None = None) -> Sequence[str]:
    """Return the errors of a configuration, or its warnings if it has no errors."""
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
