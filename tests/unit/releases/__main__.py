"""Reduces the manifests of a mirror into this folder: python -m tests.unit.releases .local/dev/mirror."""

import sys
from pathlib import Path

import yaml

from components import catalogue
from tests.unit.releases import FOLDER, definitions, reduced

for artifact in catalogue.ARTIFACTS:
    (FOLDER / artifact.file).write_text(reduced((Path(sys.argv[1]) / artifact.file).read_text()))
# What the mirror of another stack has, such as an OpenShift's, is left as it is.
schemas = {**definitions.stored(), **definitions.of_mirror(Path(sys.argv[1]))}
definitions.FILE.write_text(yaml.safe_dump(schemas, sort_keys=False, width=120, default_flow_style=None))
