"""Command and environment of a container, with fields of its pod."""

import re
from collections.abc import Callable, Mapping

from emulator.cluster.api import Object
from emulator.cluster.errors import MissingError, UnsupportedError

_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['([^']+)'\]$")
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")

_FIELDS: dict[str, tuple[str, ...]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "status.podIP": ("status", "podIP"),
    "status.podIPs": ("status", "podIP"),
    "status.hostIP": ("status", "hostIP"),
}


def field_value(path: str, pod: Object) -> str:
    """Return a field of the pod from the downward API (k8s.io/api/core/v1, ObjectFieldSelector).

    Raises UnsupportedError for another path.
    """
    subscript = _SUBSCRIPT.match(path)
    if subscript:
        return str((pod["metadata"].get(subscript[1]) or {}).get(subscript[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
    if path not in _FIELDS:
        raise UnsupportedError(f"the local kubelet does not offer the field {path}")
    part, name = _FIELDS[path]
    return str((pod.get(part) or {}).get(name) or "")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` of known variables. `$$` becomes `$`; unknown names stay unchanged."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def sub_path(mount: Object, variables: Mapping[str, str]) -> str:
    """Return the mounted folder or file of a volume, empty for the whole volume.

    variables: the container's own variables. Raises MissingError for an expression with a variable without a value, and
        for a path outside the volume (kubernetes/kubernetes, pkg/kubelet/container/helpers.go,
        ExpandContainerVolumeMounts; pkg/kubelet/kubelet_pods.go, makeMounts).
    """
    expression = mount.get("subPathExpr")
    if not expression:
        return str(mount.get("subPath") or "")
    named = [match[1] for match in _REFERENCE.finditer(expression) if match[0] != "$$"]
    missing = sorted({name for name in named if not variables.get(name)})
    if missing:
        raise MissingError(f"missing value for {', '.join(missing)}")
    path = expand(expression, variables)
    if path.startswith("/") or ".." in path.split("/"):
        raise MissingError(f"subPathExpr {expression} is {path}, which is outside of the volume {mount['name']}")
    return path


def environment(
    container: Object, pod: Object, base: Mapping[str, str], data: Callable[[str, Object], dict[str, str] | None]
) -> dict[str, str]:
    """Return a container's variables, added to `base`.

    data: (ConfigMap or Secret, reference with name, key and optional) -> the keys of the reference, or None if it is
          optional and missing; raises if it is required and missing.
    Raises UnsupportedError for a source that the local kubelet does not support.
    """
    found = dict(base)
    for source in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                values = data(kind, source[field]) or {}
                found |= {f"{source.get('prefix') or ''}{key}": value for key, value in values.items()}
    for variable in container.get("env") or []:
        value = _value(variable, pod, found, data)
        if value is not None:
            found[variable["name"]] = value
    return found


def _value(
    variable: Object, pod: Object, known: Mapping[str, str], data: Callable[[str, Object], dict[str, str] | None]
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expand(variable.get("value") or "", known)
    if "fieldRef" in source:
        return field_value(source["fieldRef"]["fieldPath"], pod)
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            values = data(kind, source[field])
            return None if values is None else values[source[field]["key"]]
    raise UnsupportedError(f"variable {variable['name']}: the local kubelet does not support {', '.join(source)}")
