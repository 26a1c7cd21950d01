"""The inputs of the provider resource: checked, compared, and turned into settings."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import UNKNOWN

# The inputs of the provider resource in the schema of pulumi-kubernetes 4.34.2, and what the engine adds to them.
OPTIONS = (
    "alwaysRender",
    "cluster",
    "clusterIdentifier",
    "context",
    "deleteUnreachable",
    "enableConfigMapMutable",
    "enablePatchForce",
    "enableSecretMutable",
    "enableServerSideApply",
    "helmReleaseSettings",
    "kubeClientSettings",
    "kubeconfig",
    "namespace",
    "renderYamlToDirectory",
    "skipUpdateUnreachable",
    "strictMode",
    "suppressDeprecationWarnings",
    "suppressHelmHookWarnings",
    "upsertExistingObjects",
)
_OF_THE_ENGINE = frozenset({"version", "pluginDownloadURL", "pluginChecksums", "__internal", "__pluginDownloadURL"})
_BOOLEANS = tuple(
    name
    for name in OPTIONS
    if name.startswith(("enable", "suppress", "always", "skip", "delete", "upsert")) or name == "strictMode"
)
_RENDERING = ("renderYamlToDirectory", "alwaysRender")
_CLUSTER_KEYS = ("kubeconfig", "context", "cluster")

Inputs = dict[str, Any]
Kubeconfig = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What one provider resource is configured with.

    kubeconfig: the parsed document; context, cluster: overrides of its current context, empty for none.
    namespace: where namespaced objects go that name none. timeout: seconds for one request, 0 for the default.
    """

    kubeconfig: Kubeconfig
    context: str
    cluster: str
    namespace: str
    timeout: float
    config_map_mutable: bool
    secret_mutable: bool
    patch_force: bool
    upsert: bool
    delete_unreachable: bool
    skip_update_unreachable: bool

    @classmethod
    def of(cls, inputs: Inputs, api_server: str | None = None) -> Settings:
        """Read the inputs, as `problems` allows them; raises ProviderError that names the key."""
        for key, reason in problems(inputs, api_server):
            raise ProviderError(f"provider input {key}: {reason}")
        kubeconfig = parse_kubeconfig(inputs["kubeconfig"])
        context = inputs.get("context") or ""
        namespace = inputs.get("namespace") or active_context(kubeconfig, context).get("namespace") or "default"
        client = _structured(inputs.get("kubeClientSettings"))
        return cls(
            kubeconfig=kubeconfig,
            context=context,
            cluster=inputs.get("cluster") or "",
            namespace=namespace,
            timeout=float(client.get("timeout") or 0),
            config_map_mutable=_boolean(inputs.get("enableConfigMapMutable")),
            secret_mutable=_boolean(inputs.get("enableSecretMutable")),
            patch_force=_boolean(inputs.get("enablePatchForce")),
            upsert=_boolean(inputs.get("upsertExistingObjects")),
            delete_unreachable=_boolean(inputs.get("deleteUnreachable")),
            skip_update_unreachable=_boolean(inputs.get("skipUpdateUnreachable")),
        )


def problems(inputs: Inputs, api_server: str | None = None) -> list[tuple[str, str]]:
    """Return what is wrong with the inputs, as pairs of key and reason. Unknown values are not judged.

    api_server: address of the one API server that may be reached; None for any.
    """
    found = [
        (key, f"is no input of this provider; allowed are {', '.join(OPTIONS)}")
        for key in inputs
        if key not in OPTIONS and key not in _OF_THE_ENGINE
    ]
    for key in _BOOLEANS:
        value = inputs.get(key)
        if value is not None and value is not UNKNOWN and value not in (True, False, "true", "false", ""):
            found.append((key, f"is {value!r}; true or false is allowed"))
    found += [
        (key, "rendering YAML to a directory is not supported by this stand-in; use the official plugin")
        for key in _RENDERING
        if inputs.get(key) not in (None, "", False, "false", UNKNOWN)
    ]
    if inputs.get("enableServerSideApply") in (False, "false"):
        found.append(
            (
                "enableServerSideApply",
                "client-side apply is not supported by this stand-in; leave it out or set it to true",
            )
        )
    if _boolean(inputs.get("strictMode")):
        found += [(key, "is required in strict mode") for key in ("kubeconfig", "context") if not inputs.get(key)]
    for key in ("kubeClientSettings", "helmReleaseSettings"):
        try:
            _structured(inputs.get(key))
        except ProviderError as error:
            found.append((key, str(error)))
    if not any(inputs.get(key) is UNKNOWN for key in _CLUSTER_KEYS):
        found += _kubeconfig_problems(inputs, api_server)
    return found


def _kubeconfig_problems(inputs: Inputs, api_server: str | None) -> list[tuple[str, str]]:
    try:
        kubeconfig = parse_kubeconfig(inputs.get("kubeconfig"))
        context = active_context(kubeconfig, inputs.get("context") or "")
    except ProviderError as error:
        return [("kubeconfig", str(error))]
    clusters = _named(kubeconfig, "clusters", "cluster")
    wanted = inputs.get("cluster") or context.get("cluster")
    if wanted not in clusters or not clusters[wanted].get("server"):
        return [
            (
                "cluster" if inputs.get("cluster") else "kubeconfig",
                f"names the cluster {wanted!r}, which has no server in the kubeconfig; it has {_listed(clusters)}",
            )
        ]
    user = context.get("user")
    users = _named(kubeconfig, "users", "user")
    if user and user not in users:
        return [("kubeconfig", f"its context names the user {user!r}; the kubeconfig has {_listed(users)}")]
    return _foreign(clusters[wanted], api_server)


def _foreign(cluster: dict[str, Any], api_server: str | None) -> list[tuple[str, str]]:
    """Refuse what leads elsewhere than to the one API server: another address, or a proxy on the way to it."""
    if api_server is None:
        return []
    own = f"this provider serves {api_server} alone: use plain `pulumi` with the official plugin for any other"
    if _address(str(cluster["server"])) != _address(api_server):
        return [("kubeconfig", f"it leads to {cluster['server']}, and {own}")]
    if cluster.get("proxy-url"):
        return [("kubeconfig", f"it leads through the proxy {cluster['proxy-url']}, and {own}")]
    return []


def _address(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def parse_kubeconfig(value: Any) -> Kubeconfig:
    """Read a kubeconfig given as YAML or JSON text, as a mapping, or as the path of a file.

    Raises ProviderError that says what is wrong and what is allowed.
    """
    if isinstance(value, dict):
        document: Any = value
    elif not value:
        raise ProviderError(
            "no kubeconfig is given. Pass its contents or an absolute path as `kubeconfig` of the provider "
            "resource: this "
            "stand-in is a server of its own and does not look at $KUBECONFIG or ~/.kube/config"
        )
    elif isinstance(value, str):
        content, source = _content(value)
        try:
            document = json.loads(content) if content.lstrip().startswith("{") else yaml.safe_load(content)
        except (yaml.YAMLError, json.JSONDecodeError) as error:
            # The document holds credentials: say where it breaks, never what it says.
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark is not None else getattr(error, "lineno", "?")
            raise ProviderError(f"{source} is neither YAML nor JSON (line {line}): give a whole kubeconfig") from None
    else:
        raise ProviderError(f"it is a {type(value).__name__}; the text of a kubeconfig or a path is allowed")
    if not isinstance(document, dict) or not document.get("clusters"):
        raise ProviderError(
            "it is no kubeconfig: a mapping with clusters, contexts, users and current-context is expected "
            "(kubectl config view --raw prints one)"
        )
    return document


def _content(value: str) -> tuple[str, str]:
    if "\n" in value or value.lstrip().startswith("{"):
        return value, "it"
    path = Path(os.path.expanduser(value))
    if path.is_absolute():
        try:
            return path.read_text(), f"the file {path}"
        except OSError as error:
            raise ProviderError(
                f"the file {path} cannot be read ({error.strerror}): start the cluster that writes it, or "
                "correct the path"
            ) from None
    if ":" not in value:
        raise ProviderError(
            f"{value!r} is neither the contents of a kubeconfig nor an absolute path; a relative path has no "
            "meaning here, as "
            "the provider runs in a folder of its own"
        )
    return value, "it"


def active_context(kubeconfig: Kubeconfig, override: str) -> dict[str, Any]:
    """Return the body of the context in force. Raises ProviderError naming the contexts there are."""
    contexts = _named(kubeconfig, "contexts", "context")
    name = override or kubeconfig.get("current-context")
    if name not in contexts:
        raise ProviderError(
            f"the context {name!r} does not exist; the kubeconfig has {_listed(contexts)}"
            if name
            else f"it has no current-context: set it, or name one as `context`; there are {_listed(contexts)}"
        )
    return contexts[name]


def active_cluster(kubeconfig: Kubeconfig, context: str, cluster: str) -> dict[str, Any] | None:
    """Return the body of the cluster in force, or None when the kubeconfig does not say."""
    body = _named(kubeconfig, "contexts", "context").get(context or kubeconfig.get("current-context") or "")
    if body is None:
        return None
    return _named(kubeconfig, "clusters", "cluster").get(cluster or body.get("cluster") or "")


def _named(kubeconfig: Kubeconfig, section: str, body: str) -> dict[str, dict[str, Any]]:
    entries = kubeconfig.get(section)
    return {
        entry["name"]: entry.get(body) or {}
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }


def _listed(names: dict[str, Any]) -> str:
    return ", ".join(sorted(names)) or "none"


def _boolean(value: Any) -> bool:
    return value is True or value == "true"


def _structured(value: Any) -> dict[str, Any]:
    """Read an object that the engine may have encoded as JSON text."""
    if value in (None, "", UNKNOWN):
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise ProviderError("is no JSON object") from None
    if not isinstance(value, dict):
        raise ProviderError("is no object")
    return value


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """How the provider resource changed. replaces: the keys that replace it, and with it every object behind it."""

    changed: list[str]
    replaces: list[str]


def compare(old: Inputs, new: Inputs) -> ConfigDifference:
    """Decide between update and replacement of the provider resource.

    With the same `clusterIdentifier` as before nothing is replaced; with another one it is. Without one, a change of
    the active cluster's entry in the kubeconfig means another cluster. An unknown kubeconfig, context or cluster has
    to count as another one (pulumi-kubernetes, `DiffConfig`).
    """
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if not changed:
        return ConfigDifference([], [])
    replaces = []
    identifier, before = new.get("clusterIdentifier"), old.get("clusterIdentifier")
    if "clusterIdentifier" in changed and identifier is not None and before is not None:
        replaces.append("clusterIdentifier")
    pinned = identifier is not None and identifier == before
    unknown = [key for key in _CLUSTER_KEYS if new.get(key) is UNKNOWN]
    if unknown:
        return ConfigDifference(unknown[:1], [] if pinned else [*replaces, unknown[0]])
    if "renderYamlToDirectory" in changed:
        replaces.append("renderYamlToDirectory")
    mine, theirs = _cluster_of(old), _cluster_of(new)
    if mine is not None and theirs is not None and mine != theirs:
        replaces += [key for key in _CLUSTER_KEYS if key in changed]
    return ConfigDifference(changed, [] if pinned else replaces)


def _cluster_of(inputs: Inputs) -> dict[str, Any] | None:
    try:
        kubeconfig = parse_kubeconfig(inputs.get("kubeconfig"))
    except ProviderError:
        return None
    return active_cluster(kubeconfig, inputs.get("context") or "", inputs.get("cluster") or "")
