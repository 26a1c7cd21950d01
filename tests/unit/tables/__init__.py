"""Large tables of tests: a YAML file for each test file, with a key for each table."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


def table(test: str, key: str) -> Any:
    """Return a table of a test file, which is named without `test_`."""
    return _tables(test)[key]


@cache
def _tables(test: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(f"{test}.yaml").read_text())
