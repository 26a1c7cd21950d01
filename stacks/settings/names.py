"""Names as Kubernetes takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stacks.errors import ConfigError, Path

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_label(name: str) -> bool:
    """Whether a name is an RFC 1123 label, as namespaces and most objects of ours need."""
    return _LABEL.fullmatch(name) is not None and len(name) <= LABEL_LENGTH


def is_subdomain(name: str) -> bool:
    """Whether a name is an RFC 1123 subdomain."""
    return _SUBDOMAIN.fullmatch(name) is not None and len(name) <= SUBDOMAIN_LENGTH


def label_error(path: Path, name: str) -> Iterator[ConfigError]:
    """Yield the mistake of a name that is no RFC 1123 label, with one that might do."""
    if is_label(name):
        return
    simpler = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LABEL_LENGTH].strip("-")
    reason = f"it has {len(name)} characters" if len(name) > LABEL_LENGTH else "it has other characters"
    yield ConfigError(
        path=path,
        value=name,
        message=f"Kubernetes would reject this name: {reason}",
        expected=f"at most {LABEL_LENGTH} of a-z, 0-9 and -, with a letter or digit first and last (RFC 1123 label)",
        hint=f"for example {simpler!r}" if simpler else "write a name of such characters",
    )
