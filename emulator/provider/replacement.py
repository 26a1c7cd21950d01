"""Which changed properties force a replacement, kind by kind.

Source of the table: pulumi-kubernetes, `provider/pkg/provider/diff.go` (the immutable fields of the Kubernetes API).
"""

from __future__ import annotations

from typing import Any

from emulator.plugin.paths import WILDCARD, Path, parse
from emulator.provider.objects import Manifest, group_of, is_secret

_SELECTOR = ("spec.selector",)
_VOLUME_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk "
    "glusterfs hostPath "
    "iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
_POD_FIELDS = (
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC "
    "hostNetwork hostPID "
    "hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName "
    "readinessGates "
    "restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName "
    "shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds volumes"
)
_CONTAINER_FIELDS = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources "
    "securityContext stdin "
    "stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_STATEFUL_SET = (
    "spec.podManagementPolicy",
    "spec.revisionHistoryLimit",
    "spec.selector",
    "spec.serviceName",
    "spec.volumeClaimTemplates",
)
_JOB = ("spec.completions", "spec.parallelism", "spec.selector", "spec.template")
_ROLE_BINDING = ("roleRef",)

_FIELDS: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("", "v1", "PersistentVolume"): tuple(f"spec.{name}" for name in _VOLUME_SOURCES.split()),
    ("", "v1", "PersistentVolumeClaim"): (
        "spec.accessModes",
        "spec.selector",
        "spec.storageClassName",
        "spec.volumeName",
    ),
    ("", "v1", "Pod"): (
        *(f"spec.{name}" for name in _POD_FIELDS.split()),
        *(
            f"spec.{group}[*].{name}"
            for group in ("containers", "initContainers")
            for name in _CONTAINER_FIELDS.split()
        ),
    ),
    ("", "v1", "ResourceQuota"): ("spec.scopes",),
    ("", "v1", "Secret"): ("type",),
    ("", "v1", "Service"): ("spec.clusterIP",),
    ("policy", "v1beta1", "PodDisruptionBudget"): ("spec",),
    ("storage.k8s.io", "v1", "StorageClass"): ("parameters", "provisioner"),
    **{("apps", version, "StatefulSet"): _STATEFUL_SET for version in ("v1beta1", "v1beta2", "v1")},
    **{("apps", version, kind): _SELECTOR for version in ("v1beta2", "v1") for kind in ("DaemonSet", "Deployment")},
    **{("batch", version, "Job"): _JOB for version in ("v1beta1", "v1", "v2alpha1")},
    **{
        ("rbac.authorization.k8s.io", version, kind): _ROLE_BINDING
        for version in ("v1alpha1", "v1beta1", "v1")
        for kind in ("RoleBinding", "ClusterRoleBinding")
    },
}
_IDENTITY: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
_PATHS: dict[tuple[str, str, str], tuple[Path, ...]] = {
    key: (*_IDENTITY, *map(parse, fields)) for key, fields in _FIELDS.items()
}
_SECRET_CONTENT: tuple[Path, ...] = (*_IDENTITY, ("type",), ("stringData",), ("data",))
_CONFIG_MAP_CONTENT: tuple[Path, ...] = (*_IDENTITY, ("binaryData",), ("data",))


def forcing_paths(
    manifest: Manifest, *, patch: bool, config_map_mutable: bool, secret_mutable: bool
) -> tuple[Path, ...]:
    """Return the paths whose change replaces the object; Patch resources are replaced for their identity only."""
    if patch:
        return _IDENTITY
    group, version, kind = group_of(manifest), str(manifest.get("apiVersion")).rpartition("/")[2], manifest.get("kind")
    immutable = manifest.get("immutable") is True
    if is_secret(manifest) and (immutable or not secret_mutable):
        return _SECRET_CONTENT
    if (group, version, kind) == ("", "v1", "ConfigMap") and (immutable or not config_map_mutable):
        return _CONFIG_MAP_CONTENT
    return _PATHS.get((group, version, str(kind)), _IDENTITY)


def forces(changed: Path, value: Any, forcing: tuple[Path, ...]) -> bool:
    """Tell whether setting `changed` to `value` touches a forcing path: on, below or above one that `value` has."""
    return any(_touches(changed, value, path) for path in forcing)


def _touches(changed: Path, value: Any, path: Path) -> bool:
    for mine, theirs in zip(changed, path, strict=False):
        if theirs == WILDCARD:
            if not isinstance(mine, int):
                return False
        elif mine != theirs:
            return False
    return len(changed) >= len(path) or _has(value, path[len(changed) :])


def _has(value: Any, path: Path) -> bool:
    if not path:
        return True
    head, rest = path[0], path[1:]
    if head == WILDCARD:
        return isinstance(value, list) and any(_has(item, rest) for item in value)
    return isinstance(value, dict) and head in value and _has(value[head], rest)
