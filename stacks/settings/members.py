"""Names of a team's members, users and groups, as an identity provider gives them."""

from collections.abc import Iterator, Mapping
from typing import Final

from stacks.config.errors import ConfigError, Path

USER: Final = "user"
GROUP: Final = "group"
_SYSTEM: Final = "system:"
_SYSTEM_GROUPS: Final[Mapping[str, str]] = {
    "system:authenticated": "all signed-in users are in this group, so the team would be open to all of them",
    "system:unauthenticated": "all anonymous requests are in this group, so the team would be open to the world",
    "system:masters": "members of this group have all rights in the cluster. A team cannot limit them",
    "system:nodes": "the kubelets are in this group, so a compromised node would be in the team",
    "system:serviceaccounts": "all pods with a token are in this group, also those of other teams",
}
"""Groups that Kubernetes itself puts requests into, and what a team of them would be (kubernetes.io,
reference/access-authn-authz/rbac and authentication)."""
_NAMESPACE_ACCOUNTS: Final = "system:serviceaccounts:"


def check(path: Path, names: tuple[str, ...], what: str) -> Iterator[ConfigError]:
    """Yield errors of names that are invalid, duplicate or reserved. what: USER or GROUP."""
    provided = f"the {what}'s name in the cluster's identity provider"
    for position, name in enumerate(names):
        wrong, hint = "", f"write the name of the {what} in your identity provider, or remove the entry"
        if not name.strip():
            wrong = f"the {what}'s name is empty"
        elif name != name.strip() or not name.isprintable():
            wrong = "this name has spaces around it, or contains invisible characters"
        elif name.startswith(_SYSTEM):
            wrong = _belongs_to_kubernetes(name, what)
        elif name in names[:position]:
            wrong, hint = f"duplicate {what}", "remove the second entry"
            provided = f"each {what} once"
        if wrong:
            yield ConfigError((*path, position), wrong, hint, expected=provided)


def _belongs_to_kubernetes(name: str, what: str) -> str:
    if what == GROUP and name.startswith(_NAMESPACE_ACCOUNTS):
        return "all pods of a namespace are in this group"
    reason = _SYSTEM_GROUPS.get(name, "") if what == GROUP else ""
    return reason or f"names that start with {_SYSTEM} belong to Kubernetes"
