"""Users of the local API server: static tokens and kubeconfigs."""

import base64
import csv
import io
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from emulator.cluster.layout import NODE_NAME, Layout
from runner.files import write_private

CONTEXT = "mlbatch-local"
TOKENS = "tokens.csv"
"""The API server's static token file, in the secrets folder."""


@dataclass(frozen=True)
class _User:
    """A user and its groups. kubeconfig: file in the secrets folder, empty for the environment's kubeconfig."""

    name: str
    groups: tuple[str, ...] = ()
    kubeconfig: str = ""


_ADMINISTRATOR = _User("admin", ("system:masters",))
_USERS = (
    _ADMINISTRATOR,
    _User("system:kube-controller-manager", kubeconfig="controller-manager.kubeconfig"),
    _User("system:kube-scheduler", kubeconfig="scheduler.kubeconfig"),
    _User("kwok", ("system:masters",), "kwok.kubeconfig"),
    _User(f"system:node:{NODE_NAME}", ("system:masters", "system:nodes"), "kubelet.kubeconfig"),
)


@dataclass(frozen=True)
class Account:
    """A connection to the API server: URL, PEM of its authority, bearer token."""

    server: str
    authority: str
    token: str


def write(layout: Layout, api_port: int) -> None:
    """Write the API server's token file, the administrator's kubeconfig and those of the cluster's own processes.

    Tokens are random, generated once and kept. The format of the token file is `token,user,uid,"group,group"`
    (Kubernetes documentation, "Static token file").
    """
    file = layout.secret(TOKENS)
    kept = {row[1]: row[0] for row in csv.reader(file.read_text().splitlines())} if file.exists() else {}
    tokens = {user.name: kept.get(user.name) or secrets.token_urlsafe(32) for user in _USERS}
    text = io.StringIO()
    rows = ([tokens[user.name], user.name, user.name, ",".join(user.groups)] for user in _USERS)
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_private(file, text.getvalue())
    for user in _USERS:
        path = layout.secret(user.kubeconfig) if user.kubeconfig else layout.paths.kubeconfig
        write_private(path, _kubeconfig(user.name, tokens[user.name], api_port, layout.secret("ca.crt")))


def _kubeconfig(user: str, token: str, api_port: int, authority: Path) -> str:
    data = base64.b64encode(authority.read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{api_port}", "certificate-authority-data": data}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def read_kubeconfig(text: str) -> Account:
    """Return the account in a kubeconfig that this module wrote.

    Raises ValueError for any other text.
    """
    try:
        document = yaml.safe_load(text)
        cluster = document["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return Account(cluster["server"], authority, document["users"][0]["user"]["token"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"not a kubeconfig of the local cluster: {error!r}") from error
