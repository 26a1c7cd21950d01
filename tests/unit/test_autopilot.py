"""Autopilot as the seeds set it up, with rights no wider than its checks need."""

from collections.abc import Mapping
from typing import Any

from components import catalogue
from components.health import autopilot
from components.health.autopilot import Autopilot, AutopilotArgs
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import PodSecurity
from tests.unit.harness import Record, build

NODES = NodeGroup(
    node_selector={"nvidia.com/gpu.present": "true"},
    tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
)
IMAGE = catalogue.AUTOPILOT.reference


def args(**changes: Any) -> AutopilotArgs:
    return AutopilotArgs(**{"image": IMAGE, "nodes": NODES, **changes})


def record(**changes: Any) -> Record:
    return build(lambda: Autopilot("autopilot", args(**changes)))


def pod(**changes: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = autopilot.daemon_set("autopilot", args(**changes))["spec"]["template"]["spec"]
    return found


def environment(**changes: Any) -> dict[str, str]:
    return {item["name"]: item["value"] for item in autopilot.environment(args(**changes)) if "value" in item}


class TestExtendedConfiguration:
    CHECKS = ("pciebw", "remapped", "dcgm", "ping", "gpupower", "pvc")

    def test_volumes_are_made_by_those_alone_who_are_asked_to(self) -> None:
        def may(**changes: Any) -> set[str]:
            (role,) = record(**changes).of("Role")
            return {resource for rule in role.inputs["rules"] for resource in rule["resources"]}

        assert "persistentvolumeclaims" not in may()
        assert "persistentvolumeclaims" in may(checks=self.CHECKS, pvc_storage_class="nfs")
        assert "jobs" not in may(deep_check_hours=0)
        assert "PVC_TEST_STORAGE_CLASS" not in environment()


class TestDeepChecks:
    def test_none_is_a_hundred_years_for_upstream_panics_at_zero(self) -> None:
        (container,) = pod(deep_check_hours=0)["containers"]
        assert container["command"][-2:] == ["--invasive-check-timer", "876000"]


class TestRights:
    def test_without_deep_checks_it_lists_no_pods(self) -> None:
        """The chart lets it make jobs and volumes in every namespace (templates/serviceaccount.yaml)."""
        (role,) = record(deep_check_hours=0).of("ClusterRole")
        assert "pods" not in {resource for rule in role.inputs["rules"] for resource in rule["resources"]}

    def test_each_right_in_its_namespace_is_one_that_a_check_asks_for(self) -> None:
        """Every call in autopilot-daemon at v2.1.3; the chart has `get` and `list` of all of them."""
        checks = {"checks": ("ping", "pvc"), "pvc_storage_class": "nfs"}
        (role,) = record(**checks).of("Role")
        assert [(rule["resources"], rule["verbs"]) for rule in role.inputs["rules"]] == [
            (["endpoints", "pods"], ["list"]),
            (["daemonsets"], ["list"]),
            (["jobs"], ["create"]),
            (["persistentvolumeclaims"], ["create", "delete", "get"]),
        ]

    def test_rights_come_after_the_policy_that_holds_them_and_pods_after_both(self) -> None:
        built = record()
        (binding,), (policy,) = built.of("ClusterRoleBinding"), built.of("ValidatingAdmissionPolicyBinding")
        assert policy.urn in built.closure(binding)
        assert record(held=False).of("ValidatingAdmissionPolicy") == []
        (daemons,) = built.of("DaemonSet")
        assert binding.urn in built.closure(daemons)

    def test_nodes_that_guard_their_gpus_show_them_to_one_capability_more(self) -> None:
        guarded = pod(guarded_gpus=True, runtime_class="nvidia")
        assert guarded["runtimeClassName"] == "nvidia"
        contexts = [item["securityContext"] for item in (*guarded["initContainers"], *guarded["containers"])]
        assert [context["capabilities"]["add"] for context in contexts] == [
            ["SYS_ADMIN"],
            ["NET_RAW", "NET_ADMIN", "SYS_ADMIN"],
        ]
        assert not any("privileged" in context for context in contexts)
        assert "runtimeClassName" not in pod()

    def test_openshift_grants_its_account_less_than_the_chart(self) -> None:
        (found,) = record(pod_security=PodSecurity.SCC).of("SecurityContextConstraints")
        assert found.inputs["users"] == ["system:serviceaccount:autopilot:autopilot"]
        assert found.inputs["groups"] == []
        assert found.inputs["allowPrivilegedContainer"] is False
        assert found.inputs["allowHostDirVolumePlugin"] is False
        assert found.inputs["allowHostNetwork"] is found.inputs["allowHostPID"] is False
        assert found.inputs["allowedCapabilities"] == ["NET_RAW", "NET_ADMIN"]
        assert found.inputs["volumes"] == ["projected"]
        (guarded,) = record(pod_security=PodSecurity.SCC, guarded_gpus=True).of("SecurityContextConstraints")
        assert guarded.inputs["allowedCapabilities"] == ["NET_RAW", "NET_ADMIN", "SYS_ADMIN"]
        assert found.inputs["runAsUser"] == {"type": "MustRunAsNonRoot"}
        assert found.inputs["seccompProfiles"] == ["runtime/default"]
        assert record().of("SecurityContextConstraints") == []

    def test_without_prometheus_only_its_own_pods_connect(self) -> None:
        """A client that reaches port 3333 may start checks that take the GPUs of idle nodes."""
        (alone,) = record(callers=[]).of("NetworkPolicy")
        assert alone.inputs["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
        assert record().of("NetworkPolicy") == []


class TestMetrics:
    def test_without_a_prometheus_no_monitor_is_made(self) -> None:
        assert record().of("ServiceMonitor") == []
