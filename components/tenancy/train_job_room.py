"""Room for the objects without which a TrainJob's pods cannot be suspended.

JobSet does not suspend a job while it cannot create the job's Service (v0.12.0, `jobset_controller.go`,
createHeadlessSvcIfNecessary). Trainer may not suspend a JobSet while it cannot create the job's PodGroup (v2.3.0,
`pkg/runtime/framework/core/framework.go`: the order of objects is random in each process). A ResourceQuota that counted
the objects of all jobs would let a member fill it, and keep the pods of a TrainJob.
"""

from dataclasses import dataclass
from typing import Final

from components.job_kinds import JOB_SET, POD_GROUP, TRAIN_JOB
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.bounds import BOUNDS, OWN, POD_GROUPS
from components.tenancy.growing_jobs import JOB_SET_SUFFIX
from components.tenancy.promises import Promise

_CONTROLLER: Final = (
    "object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false) && {0})"
)


@dataclass(frozen=True)
class _Counted:
    """A kind that a ResourceQuota of a team counts.

    quota: its name. amount: the kind's name in the quota. owner: CEL of an owner that is a TrainJob or its JobSet.
    """

    requests: Requests
    quota: str
    amount: str
    owner: str

    def policy(self) -> AdmissionPolicy:
        """Return the policy for all objects of the kind but those of TrainJobs.

        The message is that of a ResourceQuota, because callers parse it.
        """
        used, most = f"params.?status.?used[?'{self.amount}'].orValue('0')", f"params.metadata.annotations['{OWN}']"
        return AdmissionPolicy(
            name=f"{Promise.TRAIN_JOBS.policy}-{self.requests.resources[0]}",
            requests=[self.requests],
            namespaces=TEAM_NAMESPACES,
            bounded=False,
            quota=self.quota,
            validations=[
                Validation(
                    expression=f"{_CONTROLLER.format(self.owner)} || "
                    f"!('{OWN}' in params.metadata.?annotations.orValue({{}})) || "
                    f"quantity(string({used})).isLessThan(quantity({most}))",
                    message=f"the team has all {self.requests.resources[0]} that it may have: delete some",
                    message_expression=f"'exceeded quota: {self.quota}, requested: {self.amount}=1, used: "
                    f"{self.amount}=' + string({used}) + ', limited: {self.amount}=' + {most}",
                    reason="Forbidden",
                )
            ],
        )


def policies() -> list[AdmissionPolicy]:
    """Return the policies that limit a team's Services and PodGroups, except those of TrainJobs."""
    return [
        _Counted(
            Requests(group="", versions=["v1"], resources=["services"], operations=["CREATE"]),
            BOUNDS,
            "services",
            f"owner.kind == '{JOB_SET.kind}' && !owner.name.endsWith('{JOB_SET_SUFFIX}')",
        ).policy(),
        _Counted(
            Requests(group=POD_GROUP.group, resources=[POD_GROUP.plural], operations=["CREATE"]),
            POD_GROUP.plural,
            f"count/{POD_GROUPS}",
            f"owner.kind == '{TRAIN_JOB.kind}'",
        ).policy(),
    ]
