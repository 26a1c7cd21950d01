"""Reject tokens that would keep access to a team's namespace after a membership ends.

Kubernetes fills each Secret of one type with a token of the service account that it names. Such a token is valid until
the Secret is deleted. Everyone who can write Secrets can request a token of any account in the namespace
(kubernetes.io, concepts/security/service-accounts, retrieve service account credentials). Pods get their own tokens,
which expire with the pods.
"""

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
"""CEL that is true for callers who can create tokens: administrators, but not members."""


def policy(gatekeepers: Gatekeepers) -> AdmissionPolicy:
    """Return the policy for members and for AppWrapper, which creates what they wrap. Other controllers are exempt."""
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
