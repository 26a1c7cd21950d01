"""Who may talk to the local API server: static tokens and the kubeconfigs that carry them."""

from __future__ import annotations

import base64
import csv
import io
import secrets
from dataclasses import dataclass

import yaml

from emulator.cluster.layout import NODE_NAME, Layout, write_private

CONTEXT = "mlbatch-local"
ADMINISTRATOR = "admin"

_USERS: dict[str, tuple[str, ...]] = {
    ADMINISTRATOR: ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    "kwok": ("system:masters",),
    f"system:node:{NODE_NAME}": ("system:masters", "system:nodes"),
}

KUBECONFIGS: dict[str, str] = {
    "controller-manager.kubeconfig": "system:kube-controller-manager",
    "scheduler.kubeconfig": "system:kube-scheduler",
    "kwok.kubeconfig": "kwok",
    "kubelet.kubeconfig": f"system:node:{NODE_NAME}",
}
"""File in the secrets folder -> user whose token it carries."""


@dataclass(frozen=True)
class Account:
    """How to reach the API server: URL, PEM of its authority, bearer token."""

    server: str
    authority: str
    token: str


def ensure_tokens(layout: Layout) -> dict[str, str]:
    """Return a token for each user, made at random once and kept in the API server's token file.

    The file's format is `token,user,uid,"group,group"` (Kubernetes documentation, "Static token file").
    """
    tokens = _load_tokens(layout)
    for user in _USERS:
        tokens.setdefault(user, secrets.token_urlsafe(32))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for user, groups in _USERS.items():
        writer.writerow([tokens[user], user, user, ",".join(groups)])
    write_private(layout.token_file, text.getvalue())
    return {user: tokens[user] for user in _USERS}


def _load_tokens(layout: Layout) -> dict[str, str]:
    try:
        rows = list(csv.reader(layout.token_file.read_text().splitlines()))
    except OSError:
        return {}
    return {row[1]: row[0] for row in rows if len(row) >= 3 and row[0]}


def write_kubeconfigs(layout: Layout, api_port: int) -> None:
    """Write the administrator's kubeconfig and those of the cluster's own processes; all of mode 0600."""
    tokens = ensure_tokens(layout)
    authority = layout.secret("ca.crt").read_text()
    server = f"https://127.0.0.1:{api_port}"
    for name, user in KUBECONFIGS.items():
        write_private(layout.secret(name), _kubeconfig(Account(server, authority, tokens[user]), user))
    account = Account(server, authority, tokens[ADMINISTRATOR])
    write_private(layout.paths.kubeconfig, _kubeconfig(account, ADMINISTRATOR))


def _kubeconfig(account: Account, user: str) -> str:
    authority = base64.b64encode(account.authority.encode()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": {"server": account.server, "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": account.token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def read_kubeconfig(text: str) -> Account:
    """Return the account in a kubeconfig written by this module.

    Raises ValueError when the text is not such a kubeconfig.
    """
    try:
        document = yaml.safe_load(text)
        cluster = document["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return Account(cluster["server"], authority, document["users"][0]["user"]["token"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"not a kubeconfig of the local cluster: {error!r}") from error
