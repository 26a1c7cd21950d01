"""That a team's claims take no volume that was made for somebody else.

A claim that names a volume gets it, and so does one of the same class, be there such a StorageClass or not, unless the
volume names another claim; volumes that administrators made by hand rarely do (kubernetes.io, concepts/storage/
persistent-volumes, reserving a PersistentVolume). A provisioner's volumes name their claim from the first.

Some provisioners put the key of a storage account, which holds the volumes of other teams too, into a Secret of the
claim's namespace, unless the class names another one (blob-csi-driver, docs/driver-parameters.md, secretNamespace).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.promises import Promise

FOR_ANY_TEAM: Final = "mlbatch/for-any-team"
"""Label, with the value "true", by which an administrator gives a volume that names no claim to whichever team's claim
comes first, such as those of a StorageClass of local disks."""

_MAKES_VOLUMES: Final = "authorizer.group('').resource('persistentvolumes').check('create').allowed()"
"""Of whoever asks: administrators, the program, and the controllers that bind claims."""
_ACCOUNT_KEY: Final = "storageaccountkey"
"""Ends its name in the Secret's data (blob-csi-driver, `defaultSecretAccountKey`)."""
_NAMED: Final = "{0}.spec.?volumeName.orValue('')"
_CLASS: Final = "{0}.spec.?storageClassName.orValue('default')"
_TAKEN: Final = "!has(oldObject.spec.claimRef) && has(object.spec.claimRef)"
_CONTROLLER: Final = (
    "request.userInfo.username.startsWith('system:') && "
    "!request.userInfo.?groups.orValue([]).exists(group, group == 'system:masters')"
)
"""Kubernetes' own, a scheduler, or a service account: not an administrator, who reserves a volume by hand."""


def policy(teams: Sequence[str]) -> AdmissionPolicy:
    """Return the policy. teams: their namespaces, which a request for a volume does not tell apart from others.

    Who may make volumes, as the program's account does, may also name one in a claim.
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
    """Return the rule for a volume that names no claim, and is about to be bound to one."""
    return Validation(
        expression=f"request.resource.resource != 'persistentvolumes' || !({_CONTROLLER}) || "
        f"!(object.spec.claimRef.?namespace.orValue('') in {words(teams)}) || "
        f"object.metadata.?labels[?'{FOR_ANY_TEAM}'].orValue('') == 'true'",
        message="spec.claimRef: a team's claim takes no volume that names no claim; reserve it by its claimRef, or "
        f"label it {FOR_ANY_TEAM}=true",
    )


def _of_keys() -> Validation:
    """Return the rule for what a provisioner stores beside a claim. It holds for everybody."""
    return Validation(
        expression="request.resource.resource != 'secrets' || "
        f"object.?data.orValue({{}}).all(key, !key.endsWith('{_ACCOUNT_KEY}'))",
        message=f"data...{_ACCOUNT_KEY}: this key opens every volume of the storage account; set secretNamespace: "
        "kube-system in the StorageClass",
    )
