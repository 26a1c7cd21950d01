"""The policies on teams' pods and Services. Tests on an API server check that it enforces them."""

import re
from pathlib import Path
from typing import Any

import pytest

from components.artifacts import Mirror
from components.kubernetes.admission import AdmissionPolicy
from components.kubernetes.node_pool import GPU_TOLERATION
from components.tenancy import operator_scope, own_volumes, pod_policy, service_policy
from components.tenancy.pod_policy import PodRules
from components.tenancy.promises import Promise
from components.tenancy.service_policy import ServiceRules
from tests.unit.releases import definitions
from tests.unit.test_existing import loaded, registered, shipped

POLICIES = [
    pod_policy.policy(PodRules()),
    service_policy.policy(ServiceRules()),
    own_volumes.policy(["blue", "red"]),
]


def said(policy: AdmissionPolicy, field: str) -> tuple[str, str]:
    """Return expression and message of the rule about a field."""
    (found,) = [each for each in policy.validations if each.message.startswith(field)]
    return found.expression, found.message


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_no_rule_loops_over_an_object_of_any_length(policy: AdmissionPolicy) -> None:
    """The time of a loop grows with the square of the number of items, and no limit of the API server counts it."""
    spec = policy.documents()[0]["spec"]
    first, *others = [each["expression"] for each in spec["validations"]]
    assert first == "variables.judged"
    assert spec["variables"][0]["name"] == "judged"
    assert len(others) == len(policy.validations)
    assert all(each.startswith("!variables.judged || (") for each in others)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_refusal_says_what_to_do(policy: AdmissionPolicy) -> None:
    """The API server accepts only messages of one line, and a member sees only this message."""
    for validation in policy.validations:
        assert "\n" not in validation.message
        assert re.search(r"[;(,]", validation.message), validation.message
    assert len({validation.message for validation in policy.validations}) == len(policy.validations)


class TestPods:
    def test_no_capability_but_those_of_baseline(self) -> None:
        expression, _ = said(POLICIES[0], "securityContext.capabilities.add")
        assert "IPC_LOCK" not in expression
        expression, _ = said(pod_policy.policy(PodRules(pinned_memory=True)), "securityContext.capabilities.add")
        assert "IPC_LOCK" in expression

    def test_tolerations_are_those_of_the_pool(self) -> None:
        policy = pod_policy.policy(PodRules(tolerations=[GPU_TOLERATION], devices=["rdma/shared"]))
        expression, message = said(policy, "spec.tolerations")
        assert """t.?key.orValue('') == "nvidia.com/gpu" && t.?effect.orValue('') == "NoSchedule")""" in expression
        assert """(t.?key.orValue('') == "rdma/shared")""" in expression
        assert "nvidia.com/gpu, rdma/shared" in message

    def test_a_toleration_of_one_value_is_of_that_value(self) -> None:
        toleration = {"key": "pool", "value": "it's", "effect": "NoSchedule"}
        expression, _ = said(pod_policy.policy(PodRules(tolerations=[toleration])), "spec.tolerations")
        assert """t.?operator.orValue('Equal') == 'Equal' && t.?value.orValue('') == "it's\"""" in expression

    def test_baseline_is_all_where_neither_rdma_nor_scratch_is(self) -> None:
        assert PodRules().is_baseline
        assert not PodRules(pinned_memory=True).is_baseline
        assert not PodRules(scratch_folder="/scratch").is_baseline


class TestStack:
    def policy(self, mirror: Mirror, kubeconfig: Path, name: str, **sections: Any) -> dict[str, str]:
        """Return the messages of a policy as a stack registers it, and their expressions."""
        record = registered(loaded({**shipped(), **sections}, mirror, kubeconfig))
        spec = record.one("ValidatingAdmissionPolicy", name).inputs["spec"]
        return {item["message"]: item["expression"] for item in spec["validations"]}

    def test_the_settings_grace(self, mirror: Mirror, kubeconfig: Path) -> None:
        rules = self.policy(mirror, kubeconfig, Promise.POD_ISOLATION.policy, tenancy={"longestGraceSeconds": 90})
        (expression,) = [rules[text] for text in rules if text.startswith("spec.terminationGracePeriodSeconds")]
        assert expression.endswith("<= 90)")

    def test_the_teams_whose_services_are_reached_from_outside(self, mirror: Mirror, kubeconfig: Path) -> None:
        teams = shipped()["teams"]
        teams[0]["services"] = {"loadBalancers": 2}
        teams[1]["services"] = {"nodePorts": True}
        rules = self.policy(mirror, kubeconfig, Promise.SERVICE_EXPOSURE.policy, teams=teams)
        allowed = {
            kind: re.findall(r"'([^']*)'", expression.partition(" in ")[2])
            for kind in ("LoadBalancer", "NodePort")
            for text, expression in rules.items()
            if text.startswith(f"spec.type {kind}")
        }
        assert allowed == {"LoadBalancer": [teams[0]["name"]], "NodePort": [teams[1]["name"]]}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_slack_controller_keeps_every_field_of_a_queue_that_kueue_knows(version: str) -> None:
    """A field that a later Kueue adds would be open to an attacker who controls the controller."""
    spec = definitions.known()[f"kueue.x-k8s.io/{version}/ClusterQueue"]["properties"]["spec"]["properties"]
    (policy,) = (each for each in operator_scope.policies() if each.name == Promise.LENDING_SCOPE.policy)
    judged = " ".join(item.expression for item in policy.validations)
    assert len(spec) > 5
    assert [field for field in spec if f"object.spec.?{field} ==" not in judged] == ["resourceGroups"]
