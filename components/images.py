"""References of container images: what they name, and what has rights on a node without saying exactly which image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

_CONTAINERS: Final = ("initContainers", "containers")
_NODE_RIGHTS: Final = frozenset({"ALL", "SYS_ADMIN", "CAP_SYS_ADMIN"})
"""Capabilities with which a process can become root of its node."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """`<repository>[:<tag>][@<digest>]`: with a digest, the tag is for people alone, and the digest says what is run.

    repository: with the registry's host. digest: `sha256:` and 64 hexadecimal digits.
    Source: distribution/reference, reference.go.
    """

    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Return the parts of a reference. A colon before the last slash is that of a registry's port."""
        name, _, digest = text.partition("@")
        head, slash, last = name.rpartition("/")
        last, _, tag = last.partition(":")
        return cls(repository=f"{head}{slash}{last}", tag=tag or None, digest=digest or None)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag is not None else ""
        return f"{self.repository}{tag}{f'@{self.digest}' if self.digest is not None else ''}"

    def with_tag(self, tag: str) -> Reference:
        """Return the reference of a tag: with this one's digest if it is this one's tag."""
        return self if tag == self.tag else Reference.parse(f"{self.repository}:{tag}")

    def without_digest(self) -> Reference:
        """Return the reference of what the tag names at the time."""
        return replace(self, digest=None)


def unpinned_privileged(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the images without a digest whose containers have rights on their node, of an object that makes pods.

    Those are privileged containers, those with a capability that amounts to it, and all of a pod in the node's process
    ids or network.
    """
    spec = body.get("spec") or {}
    spec = spec.get("jobTemplate", {}).get("spec") or spec
    pod = spec if body.get("kind") == "Pod" else (spec.get("template") or {}).get("spec") or {}
    shares_node = any(pod.get(field) for field in ("hostPID", "hostIPC", "hostNetwork"))
    for field in _CONTAINERS:
        for container in pod.get(field) or ():
            image = container.get("image")
            has_rights = shares_node or _is_privileged(container.get("securityContext") or {})
            if has_rights and isinstance(image, str) and Reference.parse(image).digest is None:
                yield image


def _is_privileged(context: Mapping[str, Any]) -> bool:
    added = (context.get("capabilities") or {}).get("add") or ()
    return bool(context.get("privileged")) or not _NODE_RIGHTS.isdisjoint(added)
