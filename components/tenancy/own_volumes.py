"""Reject claims of a team that would bind a volume of another owner.

A claim binds the volume that it names, or a volume of the same class, even if no such StorageClass exists, unless the
volume names another claim. Volumes that administrators create by hand rarely name a claim (kubernetes.io,
concepts/storage/persistent-volumes, reserving a PersistentVolume). Volumes of a provisioner name their claim from the
start.

Some provisioners write the key of a storage account into a Secret of the claim's namespace, unless the class names
another namespace. This account also has the volumes of other teams (blob-csi-driver, docs/driver-parameters.md,
secretNamespace).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.promises import Promise

FOR_ANY_TEAM: Final = "mlbatch/for-any-team"
"""Label of a volume that names no claim. With the value "true", an administrator offers the volume to the first claim
of any team. An example is a volume of a StorageClass for local disks."""

_MAKES_VOLUMES: Final = "authorizer.group('').resource('persistentvolumes').check('create').allowed()"
"""CEL that is true for callers who can create volumes: administrators, the program, and controllers that bind claims.
"""
_ACCOUNT_KEY: Final = "storageaccountkey"
"""End of the key's name in the Secret's data (blob-csi-driver, `defaultSecretAccountKey`)."""
_NAMED: Final = "{0}.spec.?volumeName.orValue('')"
_CLASS: Final = (
    "{0}.metadata.?annotations[?'volume.beta.kubernetes.io/storage-class']"
    ".orValue({0}.spec.?storageClassName.orValue('default'))"
)
"""CEL for a claim's class. Kubernetes reads the old annotation first (component-helpers,
`GetPersistentVolumeClaimClass`)."""
_TAKEN: Final = "!has(oldObject.spec.claimRef) && has(object.spec.claimRef)"
_CONTROLLER: Final = (
    "request.userInfo.username.startsWith('system:') && "
    "!request.userInfo.?groups.orValue([]).exists(group, group == 'system:masters')"
)
"""CEL that is true for a controller of Kubernetes, a scheduler or a service account. It is false for an
administrator, who reserves a volume by hand."""


def policy(teams: Sequence[str]) -> AdmissionPolicy:
    """Return the policy. teams: their namespaces, because the request for a volume does not show whose namespace it is.

    Callers who can create volumes, such as the program's account, may also name a volume in a claim.
    """
    return AdmissionPolicy(
        name=Promise.OWN_VOLUMES.policy,
        requests=[
            Requests(group="", versions=["v1"], resources=["persistentvolumeclaims"]),
            Requests(group="", versions=["v1"], resources=["persistentvolumes"], operations=["UPDATE"]),
            Requests(group="", versions=["v1"], resources=["secrets"], operations=["CREATE"]),
        ],
        namespaces=TEAM_NAMESPACES,
        conditions={"claims": f"request.resource.resource != 'persistentvolumes' || ({_TAKEN})"},
        validations=[*_of_claims(), _of_keys(), _of_volumes(teams)],
    )


def _of_claims() -> Iterator[Validation]:
    claim = "request.resource.resource != 'persistentvolumeclaims'"
    yield Validation(
        expression=f"{claim} || oldObject != null || ({_NAMED.format('object')} == '' && "
        f"!has(object.spec.selector) && {_CLASS.format('object')} != '' && "
        f"object.spec.?dataSourceRef.?namespace.orValue('') == '') || {_MAKES_VOLUMES}",
        message="spec: a team's claim gets a volume of its own by its storage class; remove volumeName, "
        "selector, an empty storageClassName and dataSourceRef.namespace",
    )
    kept = (f"{each.format('object')} == {each.format('oldObject')}" for each in (_NAMED, _CLASS))
    yield Validation(
        expression=f"{claim} || oldObject == null || ({' && '.join(kept)}) || {_MAKES_VOLUMES}",
        message="spec: a team's claim gets a volume of its own; leave volumeName and storageClassName as they are",
    )


def _of_volumes(teams: Sequence[str]) -> Validation:
    """Return the rule for binding a volume that names no claim."""
    return Validation(
        expression=f"request.resource.resource != 'persistentvolumes' || !({_CONTROLLER}) || "
        f"!(object.spec.claimRef.?namespace.orValue('') in {words(teams)}) || "
        f"object.metadata.?labels[?'{FOR_ANY_TEAM}'].orValue('') == 'true'",
        message="spec.claimRef: a team's claim takes no volume that names no claim; reserve it by its claimRef, or "
        f"label it {FOR_ANY_TEAM}=true",
    )


def _of_keys() -> Validation:
    """Return the rule for Secrets that a provisioner creates for a claim. It applies to all callers."""
    return Validation(
        expression="request.resource.resource != 'secrets' || "
        f"object.?data.orValue({{}}).all(key, !key.endsWith('{_ACCOUNT_KEY}'))",
        message=f"data...{_ACCOUNT_KEY}: this key opens every volume of the storage account; set secretNamespace: "
        "kube-system in the StorageClass",
    )
