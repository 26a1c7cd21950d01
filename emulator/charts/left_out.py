"""What is left out of a chart here: filters rendered manifests from standard input to standard output for Helm.

A webhook or an aggregated API would be called at the chart's own controllers, which are only simulated: with one in
place the API server would refuse every object that the webhook is about. Helm runs this as its post-renderer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml

POST_RENDERER = (f"--post-renderer={sys.executable}", "--post-renderer-args=-m", f"--post-renderer-args={__name__}")
"""Arguments of Helm that leave out what `kept` drops."""

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService")

_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)


def documents(manifest: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield text and content of each document of a rendered manifest, without those that are empty."""
    for text in _SEPARATOR.split(manifest):
        content = yaml.load(text, Loader=yaml.CSafeLoader)
        if isinstance(content, dict):
            yield text, content


def kept(manifest: str) -> str:
    """Return the manifest without what would be called at simulated controllers."""
    return "".join(f"---{text}" for text, content in documents(manifest) if content["kind"] not in KINDS)


def described(manifest: str) -> list[str]:
    """Return what is not installed, as kind/name: hooks, and what `kept` drops."""
    return sorted(
        {
            f"{content['kind']}/{content['metadata']['name']}"
            for _, content in documents(manifest)
            if content["kind"] in KINDS or "helm.sh/hook" in (content["metadata"].get("annotations") or {})
        }
    )


if __name__ == "__main__":
    sys.stdout.write(kept(sys.stdin.read()))
