"""That a team's claims take no volume that was made for somebody else.

A claim that names a volume gets it, unless the volume names another claim; volumes that administrators made by hand
rarely do (kubernetes.io, concepts/storage/persistent-volumes, reserving a PersistentVolume).
"""

from __future__ import annotations

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.promises import Promise


def policy() -> AdmissionPolicy:
    """Return the policy. Who may make volumes, as the program's account does, may also name one in a claim."""
    makes_volumes = "authorizer.group('').resource('persistentvolumes').check('create').allowed()"
    return AdmissionPolicy(
        name=Promise.OWN_VOLUMES.policy,
        requests=[Requests(group="", versions=["v1"], resources=["persistentvolumeclaims"], operations=["CREATE"])],
        namespaces=TEAM_NAMESPACES,
        validations=[
            Validation(
                expression="(object.spec.?volumeName.orValue('') == '' && !has(object.spec.selector) && "
                "object.spec.?storageClassName.orValue('default') != '' && "
                f"object.spec.?dataSourceRef.?namespace.orValue('') == '') || {makes_volumes}",
                message="spec: a team's claim gets a volume of its own by its storage class; remove volumeName, "
                "selector, an empty storageClassName and dataSourceRef.namespace",
            )
        ],
    )
