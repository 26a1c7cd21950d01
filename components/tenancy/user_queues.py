"""One queue for each user of a team, so that Kueue can weigh what each user has used.

Kueue compares use by LocalQueue (v0.19.2, `pkg/cache/queue/cluster_queue.go`, queueOrderingFunc). A user who could
choose the queue would choose the one with the least use. A policy therefore restricts each user to the user's own
queue.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from components import names
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.callers import IS_PERSON
from components.tenancy.promises import Promise
from components.tenancy.quota_gate import JOBS

_PREFIX: Final = "user-"
_LONGEST: Final = 63
"""The most characters of a label's value. A job names its queue in a label."""
_MAKES_QUEUES: Final = (
    f"authorizer.group('{names.KUEUE_GROUP}').resource('localqueues').namespace(request.namespace)"
    ".check('create').allowed()"
)
"""CEL that is true for administrators and for the program, which may submit to any queue."""
_QUEUE: Final = f"metadata.?labels[?'{names.QUEUE_LABEL}'].orValue('')"
_OWN: Final = Validation(
    expression=f"variables.queues != '' || oldObject != null || object.{_QUEUE} in ['', '{names.LOCAL_QUEUE}'] || "
    f"{_MAKES_QUEUES}",
    message=f"only {names.LOCAL_QUEUE} has the team's quota: set the label {names.QUEUE_LABEL} to {names.LOCAL_QUEUE}",
)


def queue_name(user: str) -> str:
    """Return the name of a user's LocalQueue: `user-` and the user's name.

    `-` replaces each character that names cannot contain, and a digest then keeps two users apart.
    """
    plain = re.sub(r"[^a-z0-9-]", "-", user.lower()).strip("-")
    name = f"{_PREFIX}{plain}"
    if plain == user and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(user.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - len(digest) - 1].rstrip('-')}-{digest}"


def annotation(users: Sequence[str]) -> str:
    """Return the value of the annotation `names.USER_QUEUES` for a team's users."""
    return "\n".join(f"{queue_name(user)}={user}" for user in users)


def policy(*, others: bool = False) -> AdmissionPolicy:
    """Return the policy for new jobs and for jobs that change their queue, in teams whose users have queues.

    others: there are LocalQueues that the platform did not create. Members of teams cannot use them. For example,
    OpenShift AI 3 creates a LocalQueue for the resources of all nodes in each namespace that Kueue manages
    (opendatahub-io/opendatahub-operator, internal/controller/components/kueue).
    """
    return AdmissionPolicy(
        name=Promise.USER_QUEUES.policy,
        requests=[Requests(group=group, resources=resources) for group, resources in JOBS],
        namespaces=TEAM_NAMESPACES,
        conditions={"person": IS_PERSON},
        variables={
            "queues": f"namespaceObject.metadata.?annotations[?'{names.USER_QUEUES}'].orValue('')",
            "own": "variables.queues.split('\\n').filter(line, "
            "line.substring(line.indexOf('=') + 1) == request.userInfo.username)"
            ".map(line, line.substring(0, line.indexOf('=')))",
            "expected": f"variables.own.size() > 0 ? variables.own[0] : '{names.LOCAL_QUEUE}'",
        },
        validations=[
            Validation(
                expression="variables.queues == '' || "
                f"object.{_QUEUE} == (oldObject == null ? variables.expected : oldObject.{_QUEUE}) || {_MAKES_QUEUES}",
                message="a user's jobs go through the user's own queue",
                message_expression="'the use of each user of this team is counted by queue: set the label "
                f"{names.QUEUE_LABEL} to ' + variables.expected",
            ),
            *([_OWN] if others else []),
        ],
    )
