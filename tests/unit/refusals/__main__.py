"""Write the texts of all settings errors again (`make snapshots`)."""

from tests.unit.refusals import FOLDER, TABLES, texts

if __name__ == "__main__":
    for name in TABLES:
        (FOLDER / f"{name}.txt").write_text(texts(name))
