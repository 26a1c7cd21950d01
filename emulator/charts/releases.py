"""Helm's records of a release: Secrets of type helm.sh/release.v1, one for each revision."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.charts.sources import STUB_OF

SELECTOR = "owner=helm"
"""Label selector of all release Secrets (helm.sh/helm/v3, pkg/storage/driver/secrets.go)."""


@dataclass(frozen=True)
class Release:
    """One revision of a release.

    status: deployed, failed, pending-install, superseded and so on.
    stub_of: source of a stub's schema, empty for upstream's own chart.
    """

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str
    stub_of: str

    @classmethod
    def of(cls, secret: Mapping[str, Any]) -> Release:
        """Decode a release Secret: base64 of base64 of gzipped JSON."""
        content = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        found = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        chart = found["chart"]["metadata"]
        return cls(
            name=found["name"],
            namespace=found["namespace"],
            revision=found["version"],
            status=found["info"]["status"],
            chart=chart["name"],
            version=chart["version"],
            stub_of=(chart.get("annotations") or {}).get(STUB_OF, ""),
        )


def newest(secrets: Iterable[Mapping[str, Any]]) -> list[Release]:
    """Return the newest revision of each release."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for secret in sorted(secrets, key=lambda secret: int(secret["metadata"]["labels"]["version"])):
        found[secret["metadata"]["namespace"], secret["metadata"]["labels"]["name"]] = secret
    return [Release.of(secret) for secret in found.values()]
