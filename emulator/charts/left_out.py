"""What is left out of a chart here: filters rendered manifests from standard input to standard output for Helm.

A webhook or an aggregated API would be called at the chart's own controllers, which are only played: with one in
place the API server would refuse every object that the webhook is about. Helm runs this as its post-renderer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import yaml

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService")

_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)
_KIND = re.compile(r'^ ?"?kind"?: *"?(\w+)"?', re.MULTILINE)
_NAME = re.compile(r'^\s*"?metadata"?:(?:.|\n)*?^\s+"?name"?: *["\']?([\w.-]+)', re.MULTILINE)
_HOOK = re.compile(r'["\']?helm\.sh/hook["\']?:')


def documents(manifest: str) -> list[str]:
    """Return the documents of a rendered manifest, without those that are empty or comments only."""
    texts = _SEPARATOR.split(manifest)
    return [text for text in texts if any(line.strip() and not line.startswith("#") for line in text.splitlines())]


def kept(manifest: str) -> str:
    """Return the manifest without what would be called at played controllers."""
    return "".join(f"---{text}" for text in documents(manifest) if _kind(text) not in KINDS)


def described(manifest: str) -> list[str]:
    """Return what is not installed, as kind/name: hooks, and what `kept` drops."""
    return sorted(set(_described(documents(manifest))))


def _described(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        if _kind(text) in KINDS or _HOOK.search(text):
            name = _NAME.search(text)
            yield f"{_kind(text)}/{name[1] if name else '?'}"


def _kind(text: str) -> str:
    found = _KIND.search(text)
    if found is not None:
        return found[1]
    # Parsing is for what is not laid out as templates usually are: most manifests are large.
    document = yaml.load(text, Loader=yaml.CSafeLoader)
    return str(document.get("kind", "")) if isinstance(document, dict) else ""


if __name__ == "__main__":
    sys.stdout.write(kept(sys.stdin.read()))
