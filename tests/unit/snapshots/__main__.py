"""Write the snapshots of all stacks again (`make snapshots`)."""

from tests.unit.snapshots import FOLDER, snapshots
from tests.unit.whole_stacks import registered

if __name__ == "__main__":
    written = {FOLDER / name: text for name, text in snapshots(registered).items()}
    for old in {*FOLDER.glob("*.txt"), *FOLDER.glob("*.yaml")} - written.keys():
        old.unlink()
    for file, text in written.items():
        file.write_text(text)
