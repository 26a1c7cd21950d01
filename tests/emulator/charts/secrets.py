"""Release Secrets in Helm's format."""

import base64
import gzip
import json
from typing import Any

from emulator.charts.sources import STUB_OF


def release_secret(
    name: str = "r", namespace: str = "ns", revision: int = 1, status: str = "deployed", stub_of: str = ""
) -> dict[str, Any]:
    """Return the Secret of one revision."""
    metadata = {"name": "chart", "version": "1.2.3", "annotations": {STUB_OF: stub_of}}
    release = {
        "name": name,
        "namespace": namespace,
        "version": revision,
        "info": {"status": status, "description": "done"},
        "chart": {"metadata": metadata},
    }
    content = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode()))).decode()
    labels = {"owner": "helm", "name": name, "version": str(revision), "status": status}
    return {
        "metadata": {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": namespace, "labels": labels},
        "data": {"release": content},
    }
