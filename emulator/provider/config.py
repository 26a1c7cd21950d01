"""The inputs of the provider resource: checked, compared, and turned into settings."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from emulator.plugin.diffing import UPDATE, Change, Difference
from emulator.plugin.errors import ProviderError
from emulator.plugin.provider import Failure
from emulator.plugin.wire import UNKNOWN
from emulator.provider import kubeconfig
from emulator.provider.kubeconfig import Kubeconfig

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
_UNSUPPORTED = {
    "alwaysRender": "rendering YAML to a directory",
    "renderYamlToDirectory": "rendering YAML to a directory",
    "skipUpdateUnreachable": "going on without the cluster",
}
_CLUSTER_KEYS = ("kubeconfig", "context", "cluster")

Inputs = dict[str, Any]


_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Reachable:
    """The one API server that a provider may reach.

    server: its URL. authority: the certificate, as PEM, of the CA that signs for it alone; None where others have it.
    """

    server: str
    authority: str | None = None


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

    @classmethod
    def of(cls, inputs: Inputs, reachable: Reachable | None = None) -> Settings:
        """Read the inputs, as `problems` allows them; raises ProviderError that names the key."""
        for key, reason in problems(inputs, reachable):
            raise ProviderError(f"provider input {key}: {reason}")
        document = kubeconfig.parse(inputs["kubeconfig"])
        context = inputs.get("context") or ""
        return cls(
            kubeconfig=document,
            context=context,
            cluster=inputs.get("cluster") or "",
            namespace=inputs.get("namespace")
            or kubeconfig.context_of(document, context)[1].get("namespace")
            or "default",
            timeout=float(_structured(inputs, "kubeClientSettings").get("timeout") or 0),
            config_map_mutable=_is_true(inputs, "enableConfigMapMutable"),
            secret_mutable=_is_true(inputs, "enableSecretMutable"),
            patch_force=_is_true(inputs, "enablePatchForce"),
            upsert=_is_true(inputs, "upsertExistingObjects"),
            delete_unreachable=_is_true(inputs, "deleteUnreachable"),
        )


def problems(inputs: Inputs, reachable: Reachable | None = None) -> list[Failure]:
    """Return what is wrong with the inputs. Unknown values are not judged.

    reachable: the one API server that may be reached; None for any.
    """
    found = [
        (key, f"is no input of this provider; allowed are {', '.join(OPTIONS)}")
        for key in inputs
        if key not in OPTIONS and key not in _OF_THE_ENGINE
    ]
    found += [
        (key, f"is {inputs[key]!r}; true or false is allowed")
        for key in _BOOLEANS
        if inputs.get(key) not in (None, UNKNOWN, True, False, "true", "false", "")
    ]
    found += [
        (key, f"{what} is not supported by this emulated provider; use the official plugin")
        for key, what in _UNSUPPORTED.items()
        if inputs.get(key) not in (None, "", False, "false", UNKNOWN)
    ]
    if inputs.get("enableServerSideApply") in (False, "false"):
        reason = "client-side apply is not supported by this emulated provider; leave it out or set it to true"
        found.append(("enableServerSideApply", reason))
    if _is_true(inputs, "strictMode"):
        found += [(key, "is required in strict mode") for key in ("kubeconfig", "context") if not inputs.get(key)]
    for key in ("kubeClientSettings", "helmReleaseSettings"):
        try:
            _structured(inputs, key)
        except ProviderError as error:
            found.append((key, str(error)))
    if not any(inputs.get(key) is UNKNOWN for key in _CLUSTER_KEYS):
        found += _kubeconfig_problems(inputs, reachable)
    return found


def _kubeconfig_problems(inputs: Inputs, reachable: Reachable | None) -> list[Failure]:
    try:
        document = kubeconfig.parse(inputs.get("kubeconfig"))
        kubeconfig.context_of(document, inputs.get("context") or "")
    except ProviderError as error:
        return [("kubeconfig", str(error))]
    try:
        cluster = kubeconfig.cluster_of(document, inputs.get("context") or "", inputs.get("cluster") or "")
    except ProviderError as error:
        return [("cluster" if inputs.get("cluster") else "kubeconfig", str(error))]
    return _foreign(cluster, reachable)


def _foreign(cluster: dict[str, Any], reachable: Reachable | None) -> list[Failure]:
    """Refuse what leads elsewhere than to the one API server: another address, or a proxy on the way to it."""
    if reachable is None:
        return []
    own = f"this provider serves {reachable.server} alone: use plain `pulumi` with the official plugin for any other"
    if _address(str(cluster["server"])) != _address(reachable.server) and not _is_tunnel(cluster, reachable):
        return [("kubeconfig", f"it leads to {cluster['server']}, and {own}")]
    if cluster.get("proxy-url"):
        return [("kubeconfig", f"it leads through the proxy {cluster['proxy-url']}, and {own}")]
    return []


def _is_tunnel(cluster: dict[str, Any], reachable: Reachable) -> bool:
    """Whether an address of this machine can only be the near end of a tunnel to the one API server: by its CA."""
    if urlsplit(str(cluster["server"])).hostname != _LOOPBACK or cluster.get("insecure-skip-tls-verify"):
        return False
    own = reachable.authority
    return own is not None and cluster.get("certificate-authority-data") == base64.b64encode(own.encode()).decode()


def _address(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _is_true(inputs: Inputs, key: str) -> bool:
    return inputs.get(key) in (True, "true")


def _structured(inputs: Inputs, key: str) -> dict[str, Any]:
    """Return an object that the engine may have encoded as JSON text."""
    value = inputs.get(key)
    if value in (None, "", UNKNOWN):
        return {}
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise ProviderError("is no JSON object")
    return found


def compare(old: Inputs, new: Inputs) -> Difference:
    """Decide between update and replacement of the provider resource.

    With the same `clusterIdentifier` as before nothing is replaced; with another one it is. Without one, a change of
    the active cluster's entry in the kubeconfig means another cluster. An unknown kubeconfig, context or cluster has
    to count as another one (pulumi-kubernetes, `DiffConfig`).
    """
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    identifier, before = new.get("clusterIdentifier"), old.get("clusterIdentifier")
    replaces = {"clusterIdentifier"} if identifier is not None and before is not None else set()
    unknown = [key for key in _CLUSTER_KEYS if new.get(key) is UNKNOWN]
    if unknown:
        changed = unknown[:1]
        replaces |= set(changed)
    else:
        mine, theirs = _cluster(old), _cluster(new)
        if mine is not None and theirs is not None and mine != theirs:
            replaces |= set(_CLUSTER_KEYS)
    pinned = identifier is not None and identifier == before
    return Difference({key: Change(UPDATE, replaces=key in replaces and not pinned) for key in changed})


def _cluster(inputs: Inputs) -> dict[str, Any] | None:
    try:
        document = kubeconfig.parse(inputs.get("kubeconfig"))
        return kubeconfig.cluster_of(document, inputs.get("context") or "", inputs.get("cluster") or "")
    except ProviderError:
        return None
