"""The admission policies for members' objects: their users, their kinds, and that none is missing.

A real API server tests what they accept and reject (tests/local/test_member_jobs.py).
"""

import re
from typing import Any

import pytest

from components.job_kinds import ENDLESS, POD, POD_GROUP, QUEUED, RUN, SUBMITTED
from components.kubernetes.admission import AdmissionPolicy
from components.kubernetes.quantity import Quantity
from components.tenancy import (
    amounts,
    callers,
    editor,
    growing_jobs,
    job_bounds,
    lasting_tokens,
    nulls,
    pod_policy,
    prompt_deletion,
    quota_gate,
    train_jobs,
    wrapped_kinds,
)
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.job_bounds import JobBounds
from components.tenancy.pod_policy import PodRules
from components.tenancy.pod_templates import COUNTED, Rule
from components.workloads.submission import WARM_UP, Submission, SubmissionMode, app_wrapper
from tests.unit.releases import FOLDER
from tests.unit.test_team_policies import POLICIES


def spec(policy: AdmissionPolicy) -> Any:
    return policy.documents()[0]["spec"]


def policies(**bounds: int) -> list[AdmissionPolicy]:
    return [
        wrapped_kinds.policy([], "nvidia.com/gpu"),
        quota_gate.policy("nvidia.com/gpu", callers.Gatekeepers()),
        job_bounds.policy(JobBounds(**bounds), 120),
        prompt_deletion.policy(120),
        lasting_tokens.policy(callers.Gatekeepers()),
        train_jobs.policy(),
    ]


def requests(policy: AdmissionPolicy, operation: str) -> set[str]:
    return {
        f"{group}/{resource}"
        for rule in spec(policy)["matchConstraints"]["resourceRules"]
        if operation in rule["operations"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize("policy", [*policies(), *POLICIES], ids=lambda policy: policy.name)
def test_a_policy_denies_in_teams_namespaces_and_while_it_cannot_be_evaluated(policy: AdmissionPolicy) -> None:
    rules, binding = policy.documents()
    assert rules["spec"]["failurePolicy"] == "Fail"
    assert rules["spec"]["matchConstraints"]["namespaceSelector"] == {"matchLabels": TEAM_NAMESPACES}
    assert binding["spec"] == {"policyName": policy.name, "validationActions": ["Deny"]}


def test_every_kind_that_kueue_queues_is_behind_the_gate() -> None:
    """With all other kinds of their groups, which no rule knows."""
    groups = {f"{kind.group}/*" for kind in QUEUED}
    gate = policies()[1]
    assert requests(gate, "CREATE") == requests(gate, "UPDATE") == groups


def test_of_all_kinds_of_jobs_members_write_those_that_they_submit() -> None:
    kinds = {*QUEUED, *RUN, *ENDLESS, POD, POD_GROUP}
    written = {
        f"{resource}.{group}".rstrip(".")
        for group, resources, verbs in (*editor.RULES, editor.UNWRAPPED_RAY)
        if "create" in verbs
        for resource in resources
    }
    assert {kind for kind in kinds if kind.resource in written} == {*SUBMITTED, POD_GROUP}


def test_whatever_members_write_is_not_held_back() -> None:
    written = {
        f"{group}/{resource}"
        for group, resources, verbs in (*editor.RULES, editor.READS_SECRETS)
        if {"patch", "update"} & set(verbs)
        for resource in resources
    }
    assert written <= requests(policies()[3], "UPDATE")


def test_whatever_members_delete_with_pods_goes_with_them() -> None:
    deleted = {
        f"{group}/{resource}"
        for group, resources, verbs in editor.RULES
        if "delete" in verbs and group not in ("", "scheduling.x-k8s.io")
        for resource in resources
    }
    assert deleted <= requests(policies()[3], "DELETE")


def test_every_kind_of_job_that_members_write_has_a_bounded_size() -> None:
    written = {
        f"{group}/{resource}"
        for group, resources, verbs in editor.RULES
        if {"patch", "update"} & set(verbs) and group
        for resource in resources
    }
    bounds = policies()[2]
    assert written <= requests(bounds, "CREATE") & requests(bounds, "UPDATE")


def test_nothing_that_a_job_may_belong_to_is_deleted_in_the_foreground() -> None:
    """The garbage collector deletes in the foreground what belongs to something that was."""
    policy = prompt_deletion.policy(120)
    deleted = {
        f"{group}/{resource}" for group, resources, verbs in editor.RULES if "delete" in verbs for resource in resources
    }
    assert deleted <= requests(policy, "DELETE")
    (rule,) = [each for each in policy.validations if each.message.startswith("in the foreground")]
    assert "!= 'Foreground'" in rule.expression
    assert not any("or Foreground" in each.message for each in policy.validations)


def test_pods_are_deleted_and_evicted_within_the_settings_grace() -> None:
    policy = prompt_deletion.policy(90)
    assert "/pods" in requests(policy, "DELETE")
    assert "/pods/eviction" in requests(policy, "CREATE")
    (rule,) = [each for each in policy.validations if each.message.startswith("a pod ends within 90 seconds")]
    assert rule.expression.endswith("? 90 : 30)")


def test_the_gate_is_opened_by_the_accounts_of_the_manifests() -> None:
    """Should upstream rename an account, its controller could start no job."""
    for operator, account in (("kueue", callers.KUEUE), ("appwrapper", callers.APPWRAPPER)):
        namespace, name = account.split(":")[2:]
        assert namespace == "mlbatch-system"
        releases = list(FOLDER.glob(f"{operator}-v*.yaml"))
        assert releases
        assert all(f"serviceAccountName: {name}\n" in release.read_text() for release in releases)


def test_what_runs_pods_is_counted_by_appwrapper_in_that_version() -> None:
    without_pods = {"v1/Service", "v1/ConfigMap", "scheduling.x-k8s.io/v1alpha1/PodGroup"}
    allowed = {*wrapped_kinds.WRAPPED_KINDS, *wrapped_kinds.FURTHER_KINDS}
    assert allowed - without_pods == set(COUNTED)


def test_further_kinds_are_let_in_by_name() -> None:
    validations = spec(wrapped_kinds.policy(["apps/v1/Deployment"], "nvidia.com/gpu"))["validations"]
    (first,) = [item for item in validations if item["message"].startswith("an AppWrapper contains")]
    assert "'apps/v1/Deployment'" in first["expression"]
    assert "'apps/v1/StatefulSet'" not in first["expression"]


def test_every_field_that_a_rule_reads_is_judged_by_somebody_where_it_is_null() -> None:
    """Of a null, CEL says what no author of a job understands, unless it is only compared or asked whether it is."""
    policy = wrapped_kinds.policy(["apps/v1/Deployment"], "nvidia.com/gpu")
    assert policy.validations[0] is nulls.VALIDATION
    rules = " ".join([*(each.expression for each in policy.validations[1:]), *policy.variables.values()])
    read = set(re.findall(r"[.][?]?([a-zA-Z]+)\b(?![(])", re.sub(r"'[^']*'", "", rules)))
    by_the_api_server = {"apiVersion", "kind", "metadata", "components", "podSets", "podSetInfos"}
    compared = {"type", "namespace", "priorityClassName", "restartPolicy", "managedBy", "submissionMode"}
    there = {
        "overhead",
        "resourceClaims",
        "gcsFaultToleranceOptions",
        "submitterPodTemplate",
        "metrics",
        "authOptions",
        "upgradeStrategy",
        "restartPolicyRules",
        "headService",
    }
    there |= {
        "failurePolicy",
        "successPolicy",
        "ttlSecondsAfterFinished",
        "volumeClaimPolicies",
        "name",
        "generateName",
    }
    optional = {"resources", "runPolicy", "ownerReferences"}
    variables = {"manifests", "templates", "empty"}
    by_appwrapper = {"schedulingGates", "tolerations"}
    assert read - by_the_api_server - compared - there - optional - variables == set(nulls.FIELDS) - by_appwrapper


def test_bounds_are_those_that_were_given() -> None:
    validations = spec(policies(warmup_grace=1800, retries=5)[2])["validations"]
    by_name = {item["message"].split()[0].rpartition("/")[2]: item for item in validations}
    assert "duration('1800s')" in by_name["warmupGracePeriodDuration"]["expression"]
    assert by_name["warmupGracePeriodDuration"]["message"].endswith("at most 30m")
    assert "<= 5)" in by_name["retryLimit"]["expression"]
    assert by_name["terminalExitCodes"]["message"].endswith("at most 32 numbers, with commas between them")
    assert set(WARM_UP) <= {name for name, _ in JobBounds().annotated()}


_POD_SETS = 18
"""Of a Workload, at most (Kueue v0.19.2, `apis/kueue/v1beta2/workload_types.go`)."""


def test_no_job_asks_for_what_starts_anew_below_zero() -> None:
    """Kueue counts in 64 bits: CPU in thousandths, all else in units; a container has requests or limits."""
    times = _POD_SETS * amounts.MOST_PODS
    assert times * 2 * Quantity.parse(amounts.MOST).nano // 10**9 < 2**63
    containers = 20_000  # none is shorter than 75 bytes, and an object has at most 1.5 MB
    assert times * containers * Quantity.parse(amounts.MOST_CPUS).nano // 10**6 < 2**63


@pytest.mark.parametrize("rule", amounts.BOUNDED, ids=lambda rule: rule.message)
def test_what_is_asked_for_is_judged_wherever_it_is_counted(rule: Rule) -> None:
    policies_of_pods = [*policies()[:2], pod_policy.policy(PodRules())]
    for policy in policies_of_pods:
        found = [item["expression"] for item in spec(policy)["validations"] if item["message"].endswith(rule.message)]
        assert len(found) == 1, policy.name
        assert "{0}" not in found[0]
        assert "initContainers" in found[0]
        assert ".?requests" in found[0]
        assert ".?limits" in found[0]


@pytest.mark.parametrize("kind", sorted(set(COUNTED) - {"v1/Pod"}))
def test_every_kind_that_has_a_number_of_pods_has_a_bound_of_it(kind: str) -> None:
    version, _, name = kind.rpartition("/")
    asked = f"apiVersion == '{version}' && {{0}}.kind == '{name}')"
    rules = [rule.condition for rule in growing_jobs.wrapped() if asked in rule.condition]
    assert any(f"<= {amounts.MOST_PODS}" in condition and ">= 0" in condition for condition in rules)


def test_the_platforms_own_jobs_declare_no_pods_when_they_are_wrapped() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job"}
    assert app_wrapper("job", Submission(mode=SubmissionMode.MLBATCH, namespace="blue"), [job])["spec"][
        "components"
    ] == [{"template": job}]


def test_pod_groups_are_judged_by_themselves_and_in_jobs() -> None:
    bounds = policies()[2]
    assert "scheduling.x-k8s.io/podgroups" in requests(bounds, "CREATE") & requests(bounds, "UPDATE")
    alone = [item["message"] for item in spec(bounds)["validations"]]
    wrapped = [item["message"] for item in spec(policies()[0])["validations"]]
    for rule in growing_jobs.POD_GROUP:
        assert rule.message in alone
        assert rule.message in wrapped
