"""The default SecurityContextConstraints allow exactly what OpenShift's documentation lists."""

import pytest

from emulator.openshift import platform

CONSTRAINTS = {each["metadata"]["name"]: each for each in platform.constraints()}
LATER = ("nonroot-v2", "restricted-v2", "hostnetwork-v2")
HOST = ("allowHostDirVolumePlugin", "allowHostIPC", "allowHostNetwork", "allowHostPID", "allowHostPorts")


def test_the_ten_constraints_that_the_admission_plugin_waits_for_exist() -> None:
    older = ["anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "nonroot", "privileged", "restricted"]
    assert sorted(CONSTRAINTS) == sorted([*older, *LATER])


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("restricted", set()),
        ("restricted-v2", set()),
        ("nonroot", set()),
        ("anyuid", set()),
        ("hostnetwork-v2", {"allowHostNetwork", "allowHostPorts"}),
        ("hostmount-anyuid", {"allowHostDirVolumePlugin"}),
        ("hostaccess", set(HOST)),
        ("privileged", set(HOST)),
    ],
)
def test_access_to_the_host_of_each_constraint(name: str, host: set[str]) -> None:
    assert {field for field in HOST if CONSTRAINTS[name].get(field)} == host
    assert CONSTRAINTS[name].get("allowPrivilegedContainer", False) is (name == "privileged")


@pytest.mark.parametrize("name", LATER)
def test_the_later_ones_drop_every_capability_and_forbid_escalation(name: str) -> None:
    found = CONSTRAINTS[name]
    assert found["requiredDropCapabilities"] == ["ALL"]
    assert found["allowedCapabilities"] == ["NET_BIND_SERVICE"]
    assert found["allowPrivilegeEscalation"] is False
    assert found["seccompProfiles"] == ["runtime/default"]


@pytest.mark.parametrize(
    ("name", "user", "group"),
    [
        ("restricted-v2", "MustRunAsRange", "MustRunAs"),
        ("nonroot-v2", "MustRunAsNonRoot", "RunAsAny"),
        ("hostmount-anyuid", "RunAsAny", "RunAsAny"),
        ("anyuid", "RunAsAny", "RunAsAny"),
    ],
)
def test_the_user_of_pods_under_each_constraint(name: str, user: str, group: str) -> None:
    assert CONSTRAINTS[name]["runAsUser"] == {"type": user}
    assert CONSTRAINTS[name]["fsGroup"] == {"type": group}
    assert CONSTRAINTS[name]["seLinuxContext"] == {"type": "MustRunAs"}


def test_nfs_volumes_require_the_right_to_mount_the_host() -> None:
    assert [name for name, found in CONSTRAINTS.items() if {"nfs", "*"} & set(found["volumes"])] == [
        "hostmount-anyuid",
        "privileged",
    ]


def test_only_administrators_and_the_clusters_own_accounts_have_a_grant() -> None:
    granted = {name: (found.get("groups") or [], found.get("users") or []) for name, found in CONSTRAINTS.items()}
    assert {name: grants for name, grants in granted.items() if any(grants)} == {
        "anyuid": (["system:cluster-admins"], []),
        "hostmount-anyuid": ([], ["system:serviceaccount:openshift-infra:pv-recycler-controller"]),
        "privileged": (
            ["system:cluster-admins", "system:nodes", "system:masters"],
            ["system:admin", "system:serviceaccount:openshift-infra:build-controller"],
        ),
    }
    assert [name for name, found in CONSTRAINTS.items() if found.get("priority")] == ["anyuid"]


def test_a_role_lets_use_each_and_everybody_has_restricted_v2() -> None:
    roles = {each["metadata"]["name"]: each["rules"][0]["resourceNames"] for each in platform.roles()}
    assert roles == {f"system:openshift:scc:{name}": [name] for name in CONSTRAINTS}
    (binding,) = (each for each in platform.objects() if each["kind"] == "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == "system:openshift:scc:restricted-v2"
    assert [subject["name"] for subject in binding["subjects"]] == ["system:authenticated"]
