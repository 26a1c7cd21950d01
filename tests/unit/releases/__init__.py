"""Upstream's released manifests, reduced to the parts that the program reads: unit tests need neither Go nor network.

The definitions lack their schemas: these are nine tenths of the files, and the program does not read them.
`python -m tests.unit.releases FOLDER` reduces the files of a mirror (`make mirror` fills one) into this folder. A test
of the local environment compares both.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parent
_OPEN: Final = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def reduced(text: str) -> str:
    """Return a manifest's documents, with open schemas in its definitions.

    Mappings and lists that contain only scalars are on one line.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [_open(document) for document in yaml.load_all(text, Loader=loader) if document]
    return yaml.safe_dump_all(documents, sort_keys=False, width=120, default_flow_style=None)


def _open(document: dict[str, Any]) -> dict[str, Any]:
    if document["kind"] == "CustomResourceDefinition":
        for version in document["spec"]["versions"]:
            version["schema"] = deepcopy(_OPEN)
    return document
