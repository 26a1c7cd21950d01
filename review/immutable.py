"""Inputs that a provider cannot change in place, by type: setting one of them replaces the resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from review.paths import Path, parse


def _below(parent: str, names: str) -> tuple[str, ...]:
    """Return the paths of the named properties of a parent."""
    return tuple(f"{parent}.{name}" for name in names.split())


_VOLUME_SOURCES: Final = """
    awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs
    hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume
"""
_POD_FIELDS: Final = """
    affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID
    hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName readinessGates
    restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName shareProcessNamespace
    subdomain terminationGracePeriodSeconds volumes
"""
_CONTAINER_FIELDS: Final = """
    args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext stdin
    stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir
"""
_STATEFUL_SET: Final = _below(
    "spec", "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"
)
_JOB: Final = _below("spec", "completions parallelism selector template")
_IDENTITY: Final = _below("metadata", "name namespace")

_KUBERNETES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("v1", "PersistentVolume"): _below("spec", _VOLUME_SOURCES),
    ("v1", "PersistentVolumeClaim"): _below("spec", "accessModes selector storageClassName volumeName"),
    ("v1", "Pod"): (
        *_below("spec", _POD_FIELDS),
        *_below("spec.containers[*]", _CONTAINER_FIELDS),
        *_below("spec.initContainers[*]", _CONTAINER_FIELDS),
    ),
    ("v1", "ResourceQuota"): ("spec.scopes",),
    ("v1", "Secret"): ("type",),
    ("v1", "Service"): ("spec.clusterIP",),
    ("policy/v1beta1", "PodDisruptionBudget"): ("spec",),
    ("storage.k8s.io/v1", "StorageClass"): ("parameters", "provisioner"),
    **{(f"apps/{version}", "StatefulSet"): _STATEFUL_SET for version in ("v1beta1", "v1beta2", "v1")},
    **{
        (f"apps/{version}", kind): ("spec.selector",)
        for version in ("v1beta2", "v1")
        for kind in ("DaemonSet", "Deployment")
    },
    **{(f"batch/{version}", "Job"): _JOB for version in ("v1beta1", "v1", "v2alpha1")},
    **{
        (f"rbac.authorization.k8s.io/{version}", kind): ("roleRef",)
        for version in ("v1alpha1", "v1beta1", "v1")
        for kind in ("RoleBinding", "ClusterRoleBinding")
    },
}
"""By apiVersion and kind (pulumi-kubernetes, `provider/pkg/provider/diff.go`)."""

_CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMap": ("binaryData", "data"),
    "Secret": ("type", "stringData", "data"),
}
"""Fields of immutable objects, or of all objects unless the provider treats them as mutable (the same file)."""

RELEASE: Final = frozenset({"name", "namespace"})
"""Inputs of a Helm release (pulumi-kubernetes, `provider/pkg/provider/helm_release.go`, forceNewFields)."""

_AZURE: Final[Mapping[str, tuple[str, ...]]] = {
    "authorization:RoleAssignment": ("principalId",),
    "compute:ProximityPlacementGroup": ("location",),
    "containerregistry:Registry": ("location",),
    "containerservice:AgentPool": ("gpuInstanceProfile", "networkProfile.nodePublicIPTags", "vmSize"),
    "containerservice:MaintenanceConfiguration": (),
    "containerservice:ManagedCluster": (
        "diskEncryptionSetID",
        "dnsPrefix",
        "fqdnSubdomain",
        "linuxProfile",
        "location",
        *_below(
            "networkProfile",
            """
            dnsServiceIP networkDataplane networkMode networkPlugin networkPluginMode networkPolicy outboundType podCidr
            serviceCidr serviceCidrs
            """,
        ),
        "nodeResourceGroup",
        "windowsProfile",
    ),
    "features:SubscriptionFeatureRegistration": ("providerNamespace",),
    "managedidentity:FederatedIdentityCredential": (),
    "managedidentity:UserAssignedIdentity": ("location",),
    "network:NetworkSecurityGroup": (),
    "network:Subnet": (),
    "network:VirtualNetwork": ("location",),
    "resources:DeploymentAtSubscriptionScope": ("location",),
    "resources:ResourceGroup": ("location",),
    "storage:BlobContainer": (),
    "storage:ManagementPolicy": (),
    "storage:StorageAccount": ("isHnsEnabled", "location"),
}
"""By type, without the inputs in the address (pulumi-azure-native, `provider/pkg/gen/replacement.go` and the
mutability in Azure's specifications)."""

_OPENSTACK: Final[Mapping[str, tuple[str, ...]]] = {
    "Keypair": ("name", "publicKey", "userId", "valueSpecs"),
    "SecGroup": ("deleteDefaultRules",),
    "SecGroupRule": (
        "description",
        "direction",
        "ethertype",
        "portRangeMax",
        "portRangeMin",
        "protocol",
        "remoteAddressGroupId",
        "remoteGroupId",
        "remoteIpPrefix",
        "securityGroupId",
    ),
    "Port": ("deviceId", "deviceOwner", "macAddress", "networkId", "valueSpecs"),
    "FloatingIp": ("address", "dnsDomain", "dnsName", "pool", "valueSpecs"),
    "FloatingIpAssociate": ("floatingIp",),
    "Volume": (
        "availabilityZone",
        "backupId",
        "consistencyGroupId",
        "imageId",
        "schedulerHints",
        "snapshotId",
        "sourceReplica",
        "sourceVolId",
    ),
    "Instance": (
        "availabilityZone",
        "availabilityZoneHints",
        "blockDevices",
        "configDrive",
        "hypervisorHostname",
        "keyPair",
        "networkMode",
        "networks",
        "schedulerHints",
        "userData",
    ),
    "VolumeAttach": ("instanceId", "multiattach", "tag", "vendorOptions", "volumeId"),
}
"""By kind, without region and project (ForceNew in terraform-provider-openstack v3.4.0, openstack/resource_*.go, which
pulumi-openstack 5.5.3 bridges)."""

OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "RemoteCluster": ("address", "user", "host_key_public", "vm", "api_port", "port"),
    "UserData": ("asked",),
}
"""By kind, for resources whose provider is a part of the program (components/openstack)."""

_ADDRESS: Final = re.compile(r"^(scope|[a-z]\w*Name)$")
"""Inputs of Azure resources that are part of their address."""


def of_object(
    inputs: Mapping[str, Any], *, patch: bool, config_map_mutable: bool, secret_mutable: bool
) -> tuple[Path, ...]:
    """Return the inputs whose change replaces a Kubernetes object.

    patch: it is a Patch resource, which only a change of identity replaces. config_map_mutable, secret_mutable: the
    provider's settings for objects that are not marked as immutable.
    """
    version, kind = str(inputs.get("apiVersion")).removeprefix("core/"), str(inputs.get("kind"))
    mutable = {"ConfigMap": config_map_mutable, "Secret": secret_mutable}
    if patch:
        fields: tuple[str, ...] = ()
    elif version == "v1" and kind in _CONTENT and (inputs.get("immutable") is True or not mutable[kind]):
        fields = _CONTENT[kind]
    else:
        fields = _KUBERNETES.get((version, kind), ())
    return tuple(parse(field) for field in (*_IDENTITY, *fields))


def of_azure(kind: str, top: str) -> tuple[Path, ...]:
    """Return the inputs at or below a top-level one whose change replaces an Azure resource.

    kind: for example `containerservice:AgentPool`. For an unlisted kind, the result is address and location.
    """
    if _ADDRESS.match(top):
        return ((top,),)
    listed = map(parse, _AZURE.get(kind, ("location",)))
    return tuple(path for path in listed if path[0] == top)


def of_openstack(kind: str) -> tuple[Path, ...]:
    """Return the inputs whose change replaces an OpenStack resource. kind: for example `Instance`."""
    return tuple(parse(name) for name in ("region", "tenantId", *_OPENSTACK.get(kind, ())))
