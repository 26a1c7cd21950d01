"""Write the snapshots of all stacks anew (`make snapshots`)."""

from __future__ import annotations

from tests.unit.snapshots import FOLDER, snapshots
from tests.unit.whole_stacks import STACKS, registered

if __name__ == "__main__":
    for old in [*FOLDER.glob("*.txt"), *FOLDER.glob("*.yaml")]:
        old.unlink()
    for stack in STACKS:
        for file, text in snapshots(stack, registered(stack)).items():
            file.write_text(text)
