"""Names as Kubernetes takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from stacks.errors import ConfigError, Path

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def label_errors(path: Path, labels: Mapping[str, str]) -> Iterator[ConfigError]:
    """Yield the labels of a selector that no node can have (k8s.io/apimachinery, pkg/util/validation)."""
    for name, value in labels.items():
        prefix, _, own = name.rpartition("/")
        if not _QUALIFIED.fullmatch(own) or ("/" in name and not is_subdomain(prefix)):
            yield ConfigError(
                path=(*path, name),
                value=value,
                message="Kubernetes would reject this label's name",
                expected="at most 63 letters, digits, -, _ and ., with a letter or digit first and last, behind a "
                "domain and / where it has one",
                hint="write the label as `kubectl get nodes --show-labels` shows it",
            )
        if not _VALUE.fullmatch(value):
            yield ConfigError(
                path=(*path, name),
                value=value,
                message="Kubernetes would reject this label's value",
                expected="at most 63 letters, digits, -, _ and ., with a letter or digit first and last",
                hint="write the value as `kubectl get nodes --show-labels` shows it",
            )


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
