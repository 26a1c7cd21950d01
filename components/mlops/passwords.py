"""Passwords of the OSS MLOps platform, generated for each cluster. The repository's passwords are public.

Source of names: OSS-MLOPS-PLATFORM/oss-mlops-platform at 087a88b with the pipelines of Kubeflow 1.10.2, all ten
deployments. Each part reads its password from a Secret, with three exceptions: Dex has its user in its configuration,
Grafana has its own default, and the forwarder's Flower has a plain variable.
"""

import base64
import hmac
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import bcrypt
import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.objects import encoded

_MLFLOW_DATABASE: Final = "mlflow-database"
_MLFLOW_STORE: Final = "mlflow-store"
_PIPELINES_DATABASE: Final = "pipelines-database"
_PIPELINES_STORE: Final = "pipelines-store"
_KATIB_DATABASE: Final = "katib-database"
_CLIENT: Final = "sign-in"
_STORE_CLIENT: Final = {"AWS_SECRET_ACCESS_KEY": _MLFLOW_STORE}
_SECRETS: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("auth", "dex-oidc-client"): {"OIDC_CLIENT_SECRET": _CLIENT},
    ("istio-system", "oidc-authservice-client"): {"CLIENT_SECRET": _CLIENT},
    ("kserve-inference", "mysecret"): _STORE_CLIENT,
    ("kubeflow", "aws-secret"): _STORE_CLIENT,
    ("kubeflow", "katib-mysql-secrets"): {"MYSQL_ROOT_PASSWORD": _KATIB_DATABASE},
    ("kubeflow", "mlpipeline-minio-artifact"): {"secretkey": _PIPELINES_STORE},
    ("kubeflow", "mysql-secret"): {"password": _PIPELINES_DATABASE},
    ("kubeflow-user-example-com", "aws-secret"): _STORE_CLIENT,
    ("kubeflow-user-example-com", "mysecret"): _STORE_CLIENT,
    ("mlflow", "mlflow-secret"): {"DB_PASSWORD": _MLFLOW_DATABASE},
    ("mlflow", "mlflow-secrets"): {
        "AWS_SECRET_ACCESS_KEY": _MLFLOW_STORE,
        "DB_PASSWORD": _MLFLOW_DATABASE,
        "MINIO_ROOT_PASSWORD": _MLFLOW_STORE,
    },
}
"""The use of the password in each key of a Secret, by namespace and name. Both ends of a connection have the same use.
"""
_DIGEST: Final = re.compile(r"-[2456789bcdfghkmt]{10}$")
"""Suffix that kustomize adds to the names of the Secrets that it generates (kustomize, api/hasher)."""
_HASH: Final = re.compile(r"(?<=hash: )\S+")
_GRAFANA: Final = "grafana-admin"
_GRAFANA_AT: Final = ("Deployment", "monitoring", "grafana")
_FLOWER: Final = "flower-login"
_FLOWER_AT: Final = ("Deployment", "forwarder", "flower-server")
_DEX_AT: Final = ("ConfigMap", "auth", "dex")
_STORE_AT: Final = ("Deployment", "mlflow", "mlflow-minio")
_OPEN: Final = ("MYSQL_ALLOW_EMPTY_PASSWORD", "MINIO_PROMETHEUS_AUTH_TYPE", "FLOWER_PASSWORD")
"""Variables of containers that allow access without a password."""
_BCRYPT_ROUNDS: Final = 12
"""As in the repository's hash."""
_BASE64: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
_BCRYPT_LETTERS: Final = str.maketrans(f"{_BASE64}+/", f"./{_BASE64}")
"""Maps the alphabet of Base64 to bcrypt's."""


@dataclass(frozen=True, kw_only=True)
class Login:
    """User and password for a part with a user interface, under its name."""

    interface: str
    user: str


_LOGINS: Final[Mapping[tuple[str, str, str], Login]] = {
    _GRAFANA_AT: Login(interface="grafana", user="admin"),
    _DEX_AT: Login(interface="kubeflow", user="user@example.com"),
    _STORE_AT: Login(interface="mlflowObjects", user="minioadmin"),
    _FLOWER_AT: Login(interface="flower", user="flower123"),
}
_USES: Final = {"grafana": "grafana", "kubeflow": "kubeflow", "mlflowObjects": _MLFLOW_STORE, "flower": "flower"}
_MADE: Final = {_GRAFANA_AT: (_GRAFANA, "grafana"), _FLOWER_AT: (_FLOWER, "flower")}
"""Name of a Secret that upstream does not have, and the use of its password, by the part that reads it."""


def password(main: pulumi.Output[str], use: str) -> pulumi.Output[str]:
    """Return the password of one use, 32 hexadecimal digits that each run derives from the main password."""
    return pulumi.Output.secret(main.apply(lambda text: derived(text, use)))


def derived(main: str, use: str) -> str:
    """Return the digits for a use. With an HMAC, none of them reveals another one or the main password."""
    return hmac.new(main.encode(), use.encode(), "sha256").hexdigest()[:32]


def with_own(document: Document, main: pulumi.Output[str]) -> Document | None:
    """Return an object with its own passwords, or None for an object that bypasses them.

    Empty passwords are not accepted, and the object store's metrics need a password too. MLflow has no password, but no
    gateway leads to it, and `boundary` limits its clients.
    """
    kind, namespace, name = _identity(document)
    if (kind, namespace, name) == ("VirtualService", "mlflow", "mlflow"):
        return None
    if kind == "Secret":
        _replace(document, main, _SECRETS.get((namespace, _DIGEST.sub("", name)), {}))
    if (kind, namespace, name) == _DEX_AT and "config.yaml" in (document.get("data") or {}):
        document["data"]["config.yaml"] = _with_hash(document["data"]["config.yaml"], main)
    if kind in ("Deployment", "StatefulSet"):
        for container in document["spec"]["template"]["spec"]["containers"]:
            _close(container)
    if (kind, namespace, name) == _GRAFANA_AT:
        (container,) = document["spec"]["template"]["spec"]["containers"]
        container.setdefault("env", []).append(_from_secret("GF_SECURITY_ADMIN_PASSWORD", _GRAFANA, "password"))
    return document


def added(documents: list[Document], main: pulumi.Output[str]) -> Iterator[Document]:
    """Yield Secrets for existing parts that have none upstream: Grafana's administrator, Flower's user."""
    for reader in map(_identity, documents):
        if reader in _MADE:
            name, use = _MADE[reader]
            yield {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": reader[1]},
                "data": {"password": encoded(password(main, use))},
            }


def logins(documents: list[Document], main: pulumi.Output[str]) -> Mapping[str, Any]:
    """Return user and password by the name of the user interface."""
    found = [_LOGINS[each] for each in map(_identity, documents) if each in _LOGINS]
    return {
        login.interface: {"user": login.user, "password": password(main, _USES[login.interface])} for login in found
    }


def _identity(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _replace(document: Document, main: pulumi.Output[str], uses: Mapping[str, str]) -> None:
    if not uses:
        return
    plain = {key: text for key, text in (document.pop("stringData", None) or {}).items() if key not in uses}
    if plain:
        document["stringData"] = plain
    own = {key: encoded(password(main, use)) for key, use in uses.items()}
    document["data"] = {**(document.get("data") or {}), **own}


def _with_hash(settings: str, main: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.secret(main.apply(lambda text: _HASH.sub(lambda _: _hashed(text), settings)))


def _hashed(main: str) -> str:
    """Return the hash for Dex. A random salt would change it in each run, so the main password determines it."""
    salt = base64.b64encode(bytes.fromhex(derived(main, "salt of kubeflow"))).decode().rstrip("=")
    settings = f"$2b${_BCRYPT_ROUNDS}${salt.translate(_BCRYPT_LETTERS)}".encode()
    return bcrypt.hashpw(derived(main, "kubeflow").encode(), settings).decode()


def _close(container: dict[str, Any]) -> None:
    """Remove the access without a password.

    These are MySQL without a password, MinIO's public metrics (by default they need a token), and Flower's password.
    """
    env = container.get("env") or []
    names = {variable["name"] for variable in env}
    kept = [each for each in env if each["name"] not in _OPEN]
    if "FLOWER_PASSWORD" in names:
        kept.append(_from_secret("FLOWER_PASSWORD", _FLOWER, "password"))
    if "MYSQL_ALLOW_EMPTY_PASSWORD" in names and "MYSQL_ROOT_PASSWORD" not in names:
        kept.append(_from_secret("MYSQL_ROOT_PASSWORD", "mysql-secret", "password"))
    if kept != env:
        container["env"] = kept


def _from_secret(variable: str, secret: str, key: str) -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
