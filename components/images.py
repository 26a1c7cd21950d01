"""Parse references of container images, and find privileged images without a digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

_CONTAINERS: Final = ("initContainers", "containers")
_NODE_RIGHTS: Final = frozenset({"ALL", "SYS_ADMIN", "CAP_SYS_ADMIN"})
"""Capabilities that let a process become root on its node."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """`<repository>[:<tag>][@<digest>]`. With a digest, the tag is only information, and the digest selects the image.

    repository: includes the registry's host.
    digest: `sha256:` and 64 hexadecimal digits.
    Source: distribution/reference, reference.go.
    """

    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Return the parts of a reference. A colon before the last slash belongs to the registry's port."""
        name, _, digest = text.partition("@")
        head, slash, last = name.rpartition("/")
        last, _, tag = last.partition(":")
        return cls(repository=f"{head}{slash}{last}", tag=tag or None, digest=digest or None)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag is not None else ""
        return f"{self.repository}{tag}{f'@{self.digest}' if self.digest is not None else ''}"

    def with_tag(self, tag: str) -> Reference:
        """Return the reference with this tag. It keeps the digest only if the tag stays the same."""
        return self if tag == self.tag else Reference.parse(f"{self.repository}:{tag}")

    def located(self) -> Reference:
        """Return the reference with its registry's host. Without one, Docker Hub is meant (normalize.go)."""
        host, slash, _ = self.repository.partition("/")
        if slash and ("." in host or ":" in host or host == "localhost"):
            return self
        return replace(self, repository=f"docker.io/{'' if slash else 'library/'}{self.repository}")

    def without_digest(self) -> Reference:
        """Return the reference without its digest."""
        return replace(self, digest=None)


def unpinned_privileged(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the images without a digest of containers with rights on their node. body: an object with a pod template.

    These are privileged containers, containers with an equivalent capability, and all containers of a pod in the node's
    process ID namespace or network.
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
