"""Names of a team's members, users and groups, as an identity provider gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stacks.config.errors import ConfigError, Path

USER: Final = "user"
GROUP: Final = "group"
_SYSTEM: Final = "system:"
_SYSTEM_GROUPS: Final[Mapping[str, str]] = {
    "system:authenticated": "everybody who signs in is in this group, so that the team would be open to all",
    "system:unauthenticated": "whoever does not sign in is in this group, so that the team would be open to the world",
    "system:masters": "whoever is in this group may do everything in the cluster already, and no team holds them",
    "system:nodes": "the kubelets are in this group, so that a stolen node would be in the team",
    "system:serviceaccounts": "every pod with a token is in this group, those of the other teams among them",
}
"""Groups that Kubernetes itself puts requests into, and what a team of them would be (kubernetes.io,
reference/access-authn-authz/rbac and authentication)."""
_NAMESPACE_ACCOUNTS: Final = "system:serviceaccounts:"


def check(path: Path, names: tuple[str, ...], what: str) -> Iterator[ConfigError]:
    """Yield the names that nobody can have, or that are not the team's to have. what: USER or GROUP."""
    provided = f"the name that the cluster's identity provider gives the {what}"
    for position, name in enumerate(names):
        wrong, hint = "", f"write the {what}'s own name"
        if not name.strip():
            wrong, hint = f"a {what}'s name is not empty", "write the name, or remove the entry"
        elif name != name.strip() or not name.isprintable():
            wrong = "there are blanks around this name, or characters in it that cannot be seen"
        elif name.startswith(_SYSTEM):
            wrong = _belongs_to_kubernetes(name, what)
        elif name in names[:position]:
            wrong, hint = f"the team has this {what} already", "remove the second entry"
            provided = f"each {what} once"
        if wrong:
            yield ConfigError(path=(*path, position), value=name, message=wrong, expected=provided, hint=hint)


def _belongs_to_kubernetes(name: str, what: str) -> str:
    if what == GROUP and name.startswith(_NAMESPACE_ACCOUNTS):
        return "the pods of a namespace are in this group, whoever runs them"
    reason = _SYSTEM_GROUPS.get(name, "") if what == GROUP else ""
    return reason or f"names that start with {_SYSTEM} belong to Kubernetes"
