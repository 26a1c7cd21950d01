"""Files that only their owner may look into."""

import resource
from pathlib import Path

import pytest

from runner.files import write_private


def test_a_file_that_cannot_be_written_stays_as_it_was_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """For a writer, a limit of 0 bytes has the effect of a full disk."""
    file = tmp_path / "state.json"
    write_private(file, "before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_private(file, "after")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("state.json", "before")]
