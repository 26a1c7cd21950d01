"""The cluster that a kubeconfig names, and whether it answers."""

import base64
import binascii
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, build_opener, getproxies

import yaml

from stacks.config.engine_yaml import place
from stacks.config.errors import ConfigError, cut, key
from stacks.config.errors import Path as KeyPath
from stacks.settings.kubernetes import KUBECONFIGS, KubernetesSettings, holds_contents
from stacks.settings.mirror import resolve_path

ANSWER_SECONDS: Final = 5.0
"""Seconds that a cluster has to answer."""

_PATH = ("kubernetes", "kubeconfig")
_LOCAL: Final = 'For the local cluster, run `make up` and `eval "$(make -s env)"`'
_OAUTH: Final = "sha256~"
"""Begins the access tokens of OpenShift's own sign-in, which `oc login` writes into a kubeconfig and which end after a
day (OpenShift documentation, "Configuring the internal OAuth server", accessTokenMaxAgeSeconds: 86400)."""
_INLINED: Final = (
    ("cluster", "certificate-authority"),
    ("user", "client-certificate"),
    ("user", "client-key"),
)


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; `problem` says why."""

    def __init__(self, message: str, hint: str, *, path: KeyPath = _PATH, expected: str = KUBECONFIGS) -> None:
        self.problem = ConfigError(path, message, hint, expected=expected)
        super().__init__(str(self.problem))


@dataclass(frozen=True, kw_only=True)
class Kubeconfig:
    """One context of a kubeconfig file, by itself.

    contents: a kubeconfig with this context alone, and files that it names put inside; secret.
    cluster: the name of the cluster's entry. server: its address.
    authority: its certificate authority as PEM, None where the system's are to be trusted.
    insecure: its certificate is not verified. proxy: through which it is reached, None for the environment's.
    ends: its user signs in by a token that ends after a day.
    """

    contents: str
    cluster: str
    server: str
    authority: str | None
    insecure: bool
    proxy: str | None
    ends: bool = False

    def warnings(self) -> Iterator[str]:
        """Yield warnings about an unverified certificate and about a token that expires."""
        if self.insecure:
            yield (
                f"the kubeconfig of cluster {self.cluster} has insecure-skip-tls-verify: an attacker on the network "
                "can pose as the cluster and read the credentials and the stack's secrets. Add the cluster's "
                "certificate-authority-data (`oc login --certificate-authority=FILE`)"
            )
        if self.ends:
            yield (
                f"the kubeconfig of cluster {self.cluster} signs in with a token of `oc login`, which expires after a "
                "day. The state keeps it until the next update; then every command fails with Unauthorized. Sign in "
                "again and run `pulumi up --refresh=false`, or use credentials that last (docs/openshift.md, Sign in)"
            )


def read(settings: KubernetesSettings, *, base: Path, environment: Mapping[str, str]) -> Kubeconfig:
    """Return the context that the settings name, of the file that they name, else of $KUBECONFIG or ~/.kube/config.

    base: the folder for relative paths in the settings. Raises KubeconfigError if the file is absent, is not a
    kubeconfig, or lacks the context.
    """
    try:
        file, named = _file(settings, base, environment)
    except (RuntimeError, ValueError) as error:
        raise _unreadable(settings.kubeconfig or "$KUBECONFIG", settings, str(error)) from None
    document = _load(file, settings, named)
    try:
        return _context(document, file, settings, named)
    except (TypeError, ValueError, AttributeError) as error:
        raise _malformed(file, named, f"an entry has the wrong form ({error})") from None


def _context(document: Mapping[str, Any], file: Path, settings: KubernetesSettings, named: str) -> Kubeconfig:
    """Return the context that is wanted; raises TypeError and the like for entries of another form than kubectl's."""
    wanted = settings.context
    if wanted is None and document.get("current-context"):
        wanted = str(document["current-context"])
    contexts = _entries(document, "contexts", "context")
    if wanted not in contexts:
        raise KubeconfigError(
            f"{file} has no context {wanted!r}" if wanted is not None else f"{file} has no current context",
            "set it to one of these, or run `kubectl config use-context`",
            path=("kubernetes", "context"),
            expected=", ".join(contexts) or "a file with at least one context",
        )
    context = contexts[wanted]
    cluster = _entries(document, "clusters", "cluster").get(str(context.get("cluster")))
    user = _entries(document, "users", "user").get(str(context.get("user")), {})
    server = cluster.get("server") if cluster else None
    if cluster is None or not isinstance(server, str) or urlsplit(server).scheme not in ("https", "http"):
        raise _malformed(file, named, f"context {wanted!r} names no cluster with a server's address")
    partial = {"cluster": dict(cluster), "user": dict(user)}
    for section, entry in _INLINED:
        _inline(partial[section], entry, file, named)
    authority = partial["cluster"].get("certificate-authority-data")
    try:
        pem = base64.b64decode(authority, validate=True).decode() if authority else None
    except (binascii.Error, UnicodeDecodeError, TypeError):
        raise _malformed(file, named, "its certificate-authority-data is not base64") from None
    return Kubeconfig(
        contents=yaml.safe_dump(_alone(str(wanted), context, partial), sort_keys=False),
        cluster=str(context["cluster"]),
        server=server,
        authority=pem,
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        proxy=cluster.get("proxy-url"),
        ends=str(user.get("token", "")).startswith(_OAUTH),
    )


def check_answers(kubeconfig: Kubeconfig, *, seconds: float = ANSWER_SECONDS) -> None:
    """Check that the API server is ready. Raises KubeconfigError if it does not confirm that in time.

    A rejected request (401, 403) counts as an answer. Permissions are checked later.
    """
    try:
        tls = ssl.create_default_context(cadata=kubeconfig.authority)
    except ssl.SSLError as error:
        raise silent(kubeconfig, f"its certificate authority cannot be read: {error.reason}") from None
    if kubeconfig.insecure:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    proxies = {"https": kubeconfig.proxy, "http": kubeconfig.proxy} if kubeconfig.proxy else getproxies()
    try:
        opener = build_opener(HTTPSHandler(context=tls), ProxyHandler(proxies))
        opener.open(f"{kubeconfig.server.rstrip('/')}/readyz", timeout=seconds).close()
    except HTTPError as error:
        if error.code not in (401, 403):
            raise silent(kubeconfig, f"it is not ready (HTTP {error.code})") from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise silent(kubeconfig, f"no answer within {seconds:g} s: {reason}") from None
    except (HTTPException, ValueError, AttributeError) as error:
        raise silent(kubeconfig, f"its address or its proxy's address is invalid: {error}") from None


def _file(settings: KubernetesSettings, base: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """Return the file and the source of its name. If $KUBECONFIG has several files, return the first that exists."""
    if settings.kubeconfig is not None:
        return resolve_path(settings.kubeconfig, base), "the setting"
    if variable := environment.get("KUBECONFIG"):
        if holds_contents(variable):
            raise KubeconfigError(
                "$KUBECONFIG contains a kubeconfig instead of the path of a file",
                "set the variable KUBECONFIG to the path of a file: `export KUBECONFIG=<file>`",
            )
        files = [resolve_path(name, base) for name in variable.split(os.pathsep) if name]
        return next((file for file in files if file.exists()), files[0]), "$KUBECONFIG"
    return resolve_path("~/.kube/config", base), "the default ~/.kube/config"


def _unreadable(what: str, settings: KubernetesSettings, reason: str) -> KubeconfigError:
    other = "set it to another file" if settings.kubeconfig else f"set {key(_PATH)}, or export KUBECONFIG"
    return KubeconfigError(
        f"{cut(what)} cannot be read: {reason}",
        f"check the path, or {other}. {_LOCAL}",
    )


def _load(file: Path, settings: KubernetesSettings, named: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except OSError as error:
        raise _unreadable(f"{file} (from {named})", settings, str(error.strerror)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _malformed(file, named, f"{place(error)} is not valid YAML") from None
    except ValueError as error:
        raise _unreadable(f"the path (from {named})", settings, str(error)) from None
    if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        raise _malformed(file, named, "it is not of kind Config")
    return document


def _entries(document: Mapping[str, Any], section: str, content: str) -> dict[Any, dict[str, Any]]:
    entries = document.get(section)
    if not isinstance(entries, list):
        return {}
    return {
        str(entry.get("name")): entry[content]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get(content), dict)
    }


def _inline(part: dict[str, Any], entry: str, file: Path, named: str) -> None:
    """Put a file that an entry names, relative to the kubeconfig, into the entry's `-data` form."""
    if (name := part.pop(entry, None)) is None or f"{entry}-data" in part:
        return
    try:
        part[f"{entry}-data"] = base64.b64encode((file.parent / name).read_bytes()).decode()
    except OSError as error:
        # The value may be the key itself instead of its file.
        what = entry if entry == "client-key" else f"{entry} {cut(str(name))}"
        raise _malformed(file, named, f"its {what} cannot be read: {error.strerror}") from None


def _alone(name: str, context: Mapping[str, Any], partial: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": dict(context)}],
        "clusters": [{"name": context["cluster"], "cluster": dict(partial["cluster"])}],
        "users": [{"name": context.get("user"), "user": dict(partial["user"])}],
    }


def _malformed(file: Path, named: str, reason: str) -> KubeconfigError:
    wrong = f"{file} (from {named}) is not a valid kubeconfig: {reason}"
    return KubeconfigError(wrong, "correct the file, or name another one")


def silent(kubeconfig: Kubeconfig, reason: str) -> KubeconfigError:
    """Return the error of a cluster that does not answer as required."""
    return KubeconfigError(
        f"cluster {kubeconfig.cluster} at {kubeconfig.server} does not answer: {reason}",
        f"start the cluster, or name another kubeconfig or context. {_LOCAL}",
        expected="a kubeconfig whose cluster answers; a preview needs it too",
    )
