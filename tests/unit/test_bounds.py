"""The bound of recovery: the pages, the long run, game days and scenarios use the same numbers."""

import re
from pathlib import Path

from lab.scenarios.size import BOUND, FAILURE_GRACE, RECOVERY
from stacks.settings.recovery import RecoverySettings
from tests import bounds

DOCS = Path(__file__).resolve().parents[2] / "docs"
DEFAULT = RecoverySettings().recovery_timeout_seconds


def test_the_bound_follows_the_settings_and_the_job() -> None:
    assert bounds.recovery(300) - bounds.recovery(20) == 280
    assert bounds.recovery(300) - bounds.recovery(300, failure_grace=1) == 59


def test_the_page_adds_up_what_the_bound_is_made_of() -> None:
    text = (DOCS / "recovery.md").read_text().partition("## How long it takes\n")[2].partition("\n## ")[0]
    rows = [int(seconds) for seconds in re.findall(r"^\| [^|]+ \| (\d+) \| [^|]*\|$", text, re.MULTILINE)]
    assert rows == [bounds.LOOK, bounds.GRACE, DEFAULT, bounds.REQUEUE, bounds.END, bounds.REST]
    assert f"**{sum(rows)} seconds** with the defaults" in text
    assert sum(rows) == bounds.recovery(DEFAULT)


def test_the_scenarios_page_adds_up_what_its_cluster_is_held_to() -> None:
    text = " ".join((DOCS / "scenarios.md").read_text().split())
    timeout = RECOVERY["recoveryTimeoutSeconds"]
    parts = [bounds.LOOK, FAILURE_GRACE, timeout, bounds.REQUEUE, bounds.END, bounds.REST]
    assert f"{' + '.join(map(str, parts))} = **{BOUND} seconds**" in text
