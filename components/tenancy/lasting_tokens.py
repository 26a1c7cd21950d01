"""That nobody keeps a way into a team's namespace which outlives the membership.

Kubernetes fills each Secret of one type with a token of the service account that it names. Such a token ends with the
Secret alone, and whoever may write Secrets may ask for one of any account of the namespace (kubernetes.io, concepts/
security/service-accounts, retrieve service account credentials). Pods get tokens of their own, which end with them.
"""

from __future__ import annotations

from typing import Final

from components.kubernetes.admission import AdmissionPolicy, Requests, Validation
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON, Gatekeepers
from components.tenancy.promises import Promise

_TYPE: Final = "kubernetes.io/service-account-token"
_MESSAGE: Final = (
    f"a Secret of type {_TYPE} would hold a token that never ends: leave it out; a pod has a token of its own"
)
_MAY_ASK_FOR_TOKENS: Final = (
    "authorizer.group('').resource('serviceaccounts').subresource('token').namespace(request.namespace)"
    ".check('create').allowed()"
)
"""Of whoever asks: administrators. Members may not."""


def policy(gatekeepers: Gatekeepers) -> AdmissionPolicy:
    """Return the policy, for members and for AppWrapper, which makes what they wrap. Others' controllers may."""
    return AdmissionPolicy(
        name=Promise.NO_LASTING_TOKENS.policy,
        requests=[Requests(group="", versions=["v1"], resources=["secrets"])],
        namespaces=TEAM_NAMESPACES,
        conditions={"member": f"{IS_PERSON} || request.userInfo.username == '{gatekeepers.appwrapper}'"},
        validations=[
            Validation(
                expression=f"object.?type.orValue('') != '{_TYPE}' || {_MAY_ASK_FOR_TOKENS}",
                message=_MESSAGE,
            )
        ],
    )
