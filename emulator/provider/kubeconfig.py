"""Kubeconfigs as provider inputs: read, and the cluster in force chosen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from emulator.plugin.errors import ProviderError

Kubeconfig = dict[str, Any]


def parse(value: Any) -> Kubeconfig:
    """Read a kubeconfig given as YAML or JSON text, as a mapping, or as the path of a file.

    Raises ProviderError that says what is wrong and what is allowed.
    """
    if not value:
        raise ProviderError(
            "no kubeconfig is given. Pass its contents or an absolute path as `kubeconfig` of the provider resource: "
            "this emulated provider is a server of its own and does not look at $KUBECONFIG or ~/.kube/config"
        )
    if not isinstance(value, str | dict):
        raise ProviderError(f"it is a {type(value).__name__}; the text of a kubeconfig or a path is allowed")
    document = _read(value) if isinstance(value, str) else value
    if not isinstance(document, dict) or not document.get("clusters"):
        raise ProviderError(
            "it is no kubeconfig: a mapping with clusters, contexts, users and current-context is expected "
            "(kubectl config view --raw prints one)"
        )
    return document


def _read(value: str) -> Any:
    content, source = value, "it"
    path = Path(value) if "\n" not in value and not value.lstrip().startswith("{") else None
    if path is not None and path.is_absolute():
        source = f"the file {path}"
        try:
            content = path.read_text()
        except OSError as error:
            raise ProviderError(
                f"{source} cannot be read ({error.strerror}): start the cluster that writes it, or correct the path"
            ) from None
    elif path is not None and ":" not in value:
        raise ProviderError(
            f"{value!r} is neither the contents of a kubeconfig nor an absolute path; a relative path has no meaning "
            "here, as the provider runs in a folder of its own"
        )
    try:
        return json.loads(content) if content.lstrip().startswith("{") else yaml.safe_load(content)
    except (yaml.YAMLError, json.JSONDecodeError) as error:
        # The document holds credentials: say where it breaks, never what it says.
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else getattr(error, "lineno", "?")
        raise ProviderError(f"{source} is neither YAML nor JSON (line {line}): give a whole kubeconfig") from None


def context_of(kubeconfig: Kubeconfig, override: str) -> tuple[str, dict[str, Any]]:
    """Return name and body of the context in force. Raises ProviderError naming the contexts there are."""
    contexts = _named(kubeconfig, "contexts", "context")
    name = override or kubeconfig.get("current-context") or ""
    if name in contexts:
        return name, contexts[name]
    known = ", ".join(sorted(contexts)) or "none"
    raise ProviderError(
        f"the context {name!r} does not exist; the kubeconfig has {known}"
        if name
        else f"it has no current-context: set it, or name one as `context`; there are {known}"
    )


def cluster_of(kubeconfig: Kubeconfig, context: str, cluster: str) -> dict[str, Any]:
    """Return the body of the cluster in force. Raises ProviderError naming the clusters there are."""
    clusters = _named(kubeconfig, "clusters", "cluster")
    wanted = cluster or context_of(kubeconfig, context)[1].get("cluster")
    if wanted not in clusters or not clusters[wanted].get("server"):
        known = ", ".join(sorted(clusters)) or "none"
        raise ProviderError(f"names the cluster {wanted!r}, which has no server in the kubeconfig; it has {known}")
    return clusters[wanted]


def with_overrides(kubeconfig: Kubeconfig, context: str, cluster: str) -> Kubeconfig:
    """Return the kubeconfig with the context and the cluster in force as its current ones."""
    name, body = context_of(kubeconfig, context)
    chosen = {"name": name, "context": {**body, **({"cluster": cluster} if cluster else {})}}
    return {**kubeconfig, "current-context": name, "contexts": [chosen]}


def _named(kubeconfig: Kubeconfig, section: str, body: str) -> dict[str, dict[str, Any]]:
    entries = kubeconfig.get(section)
    return {
        entry["name"]: entry.get(body) or {}
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
