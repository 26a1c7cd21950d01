"""Reduces the manifests of a mirror into this folder: python -m tests.unit.releases .local/dev/mirror."""

import json
import sys
from pathlib import Path

from components import catalogue
from tests.unit.releases import FOLDER, definitions, reduced

for artifact in catalogue.ARTIFACTS:
    (FOLDER / artifact.file).write_text(reduced((Path(sys.argv[1]) / artifact.file).read_text()))
definitions.FILE.write_text(f"{json.dumps(definitions.of_mirror(Path(sys.argv[1])), indent=1)}\n")
