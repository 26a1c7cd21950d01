"""The local OpenShift: its own admission plugin applies SecurityContextConstraints to pods."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from components.observability import accounts
from components.tenancy import requested_projects
from emulator.charts import archive, sources
from emulator.paths import Paths
from emulator.toolchain import CHARTS, KUBERNETES_VERSION, Toolchain
from tests.helm import helm
from tests.local.environment import Cluster, eventually, local_environment
from tests.local.member import as_member, dry_run, message, refused
from tests.unit.releases import definitions

pytestmark = pytest.mark.emulated("it is about the local OpenShift itself")

SECURITY = "security.openshift.io/v1"
SCC = "openshift.io/scc"
UIDS = "openshift.io/sa.scc.uid-range"
RBAC = "rbac.authorization.k8s.io/v1"
NO_CONSTRAINT = "unable to validate against any security context constraint"
IMAGE = "registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2"

DEFAULT_CONSTRAINTS = {
    "anyuid",
    "hostaccess",
    "hostmount-anyuid",
    "hostnetwork",
    "hostnetwork-v2",
    "nonroot",
    "nonroot-v2",
    "privileged",
    "restricted",
    "restricted-v2",
}
"""OpenShift documentation, "Managing security context constraints": "Default security context constraints"."""


@pytest.fixture(scope="module")
def paths() -> Iterator[Paths]:
    """Yield a new local OpenShift."""
    with local_environment(openshift=True) as paths:
        yield paths


def test_the_unit_tests_schema_of_a_constraint_is_openshifts(paths: Paths) -> None:
    upstream = definitions.of_mirror(paths.mirror)[definitions.CONSTRAINTS]
    assert definitions.known()[definitions.CONSTRAINTS] == upstream


@pytest.fixture
def project(cluster: Cluster) -> Iterator[Callable[[str], dict[str, str]]]:
    """Yield a function that creates a namespace and returns its annotations, once OpenShift has added them."""
    made = []

    def make(name: str) -> dict[str, str]:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        made.append(name)
        # Another controller creates the account, and pods without an account name need it.
        eventually(f"{name} has its account", lambda: cluster.get("v1", "ServiceAccount", "default", name))
        return eventually(f"{name} has users", lambda: annotations(cluster, name), lambda found: UIDS in found)

    yield make
    for name in made:
        cluster.delete("v1", "Namespace", name)


def annotations(cluster: Cluster, namespace: str) -> dict[str, str]:
    return dict(cluster.existing("v1", "Namespace", namespace)["metadata"].get("annotations") or {})


def deployment(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, **spec.pop("container", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", namespace)


def pod_of(cluster: Cluster, namespace: str) -> dict[str, Any]:
    return eventually(f"a pod in {namespace}", lambda: pods(cluster, namespace))[0]


def refusal(cluster: Cluster, namespace: str) -> str:
    """Return the reason why a namespace's Deployment has no pods."""

    def message() -> str:
        found = cluster.list("apps/v1", "ReplicaSet", namespace)
        conditions = [item for each in found for item in (each.get("status") or {}).get("conditions") or ()]
        return next((item["message"] for item in conditions if item["type"] == "ReplicaFailure"), "")

    return eventually(f"the Deployment in {namespace} is refused its pods", message)


def judgement(controller: Cluster, namespace: str, spec: dict[str, Any]) -> str:
    """Return the constraint that admits a controller's pod, else the reason for its rejection. The pod is not
    stored.
    """
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "pod-"}, "spec": spec}
    try:
        made = controller.client.create(controller.kind("v1", "Pod"), body=pod, namespace=namespace, dry_run="All")
    except DynamicApiError as error:
        return message(error)
    return str(made.to_dict()["metadata"]["annotations"][SCC])


def grant(cluster: Cluster, constraint: str, account: str, namespace: str) -> None:
    """Let a service account use a constraint in its namespace, like `oc adm policy add-scc-to-user -z`."""
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": f"system:openshift:scc:{constraint}",
    }
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    metadata = {"name": f"{account}-{constraint}", "namespace": namespace}
    cluster.create(
        {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]}
    )


def test_it_reports_its_openshift_version(cluster: Cluster) -> None:
    version = cluster.existing("config.openshift.io/v1", "ClusterVersion", "version")
    assert version["status"]["desired"]["version"] == "4.21.0"
    assert [entry["state"] for entry in version["status"]["history"]] == ["Completed"]
    infrastructure = cluster.existing("config.openshift.io/v1", "Infrastructure", "cluster")
    assert infrastructure["status"]["controlPlaneTopology"] == "HighlyAvailable"
    assert cluster.existing("config.openshift.io/v1", "Ingress", "cluster")["spec"]["domain"]
    assert cluster.kind("route.openshift.io/v1", "Route").namespaced


def test_it_has_every_default_constraint_and_a_role_for_the_use_of_each(cluster: Cluster) -> None:
    found = {item["metadata"]["name"] for item in cluster.list(SECURITY, "SecurityContextConstraints")}
    assert found == DEFAULT_CONSTRAINTS
    for name in found:
        (rule,) = cluster.existing(RBAC, "ClusterRole", f"system:openshift:scc:{name}")["rules"]
        assert rule["verbs"] == ["use"]
        assert rule["resourceNames"] == [name]


def test_a_deployment_runs_as_a_user_of_its_namespace_without_other_rights(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    allotted = project("plain")
    first = int(allotted[UIDS].partition("/")[0])
    assert allotted[UIDS] == allotted["openshift.io/sa.scc.supplemental-groups"] == f"{first}/10000"
    cluster.create(deployment("server", "plain"))
    pod = pod_of(cluster, "plain")
    assert pod["metadata"]["annotations"][SCC] == "restricted-v2"
    assert pod["spec"]["securityContext"] == {
        "fsGroup": first,
        "seLinuxOptions": {"level": allotted["openshift.io/sa.scc.mcs"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod["spec"]["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": first,
    }


def test_two_namespaces_share_no_users(cluster: Cluster, project: Callable[[str], dict[str, str]]) -> None:
    first, second = project("first"), project("second")
    assert first[UIDS] != second[UIDS]
    assert first["openshift.io/sa.scc.mcs"] != second["openshift.io/sa.scc.mcs"]


def test_each_namespace_has_openshifts_accounts_even_after_one_is_deleted(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("furnished")
    bindings = {"system:image-builders", "system:deployers", "system:image-pullers"}
    for kind, api, wanted in (("ServiceAccount", "v1", {"builder", "deployer"}), ("RoleBinding", RBAC, bindings)):
        eventually(
            f"its {kind}s",
            lambda kind=kind, api=api: {each["metadata"]["name"] for each in cluster.list(api, kind, "furnished")},
            lambda found, wanted=wanted: found >= wanted,
        )
    cluster.delete("v1", "ServiceAccount", "deployer", "furnished")
    eventually("it is there again", lambda: cluster.get("v1", "ServiceAccount", "deployer", "furnished"))


def test_an_nfs_provisioner_is_refused_until_hostmount_anyuid_is_granted_to_its_account(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("nfs-provisioner")
    metadata = {"name": "provisioner", "namespace": "nfs-provisioner"}
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    volume = {"name": "root", "nfs": {"server": "192.168.98.96", "path": "/gpfs/fs_ec/pokprod002"}}
    container = {"volumeMounts": [{"name": "root", "mountPath": "/persistentvolumes"}]}
    spec = {
        "serviceAccountName": "provisioner",
        "volumes": [volume],
        "securityContext": {"runAsUser": 0},
        "container": container,
    }
    cluster.create(deployment("provisioner", "nfs-provisioner", **spec))
    said = refusal(cluster, "nfs-provisioner")
    assert NO_CONSTRAINT in said
    assert 'spec.volumes[0]: Invalid value: "nfs": nfs volumes are not allowed to be used' in said
    assert 'provider "hostmount-anyuid": Forbidden: not usable by user or serviceaccount' in said
    assert pods(cluster, "nfs-provisioner") == []

    grant(cluster, "hostmount-anyuid", "provisioner", "nfs-provisioner")
    pod = pod_of(cluster, "nfs-provisioner")
    assert pod["metadata"]["annotations"][SCC] == "hostmount-anyuid"
    assert pod["spec"]["securityContext"]["runAsUser"] == 0


def test_a_claim_needs_the_provisioners_rights_and_is_deleted_with_its_volume(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("nfs")
    name, role = "example.org/nfs", "nfs-runner"
    variables = {"PROVISIONER_NAME": name, "NFS_SERVER": "192.168.98.96", "NFS_PATH": "/export"}
    environment = [{"name": key, "value": value} for key, value in variables.items()]
    cluster.create(deployment("provisioner", "nfs", container={"env": environment}))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "granite", "namespace": "nfs"},
        "spec": {
            "storageClassName": "nfs-class",
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "50Gi"}},
        },
    }
    metadata = {"name": "nfs-class"}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    cluster.create({**storage, "metadata": metadata, "provisioner": name, "reclaimPolicy": "Delete"})
    cluster.create(claim)
    eventually(
        "the provisioner runs",
        lambda: pod_of(cluster, "nfs")["status"],
        lambda status: any(
            (item["type"], item["status"]) == ("Ready", "True") for item in status.get("conditions", ())
        ),
    )
    assert phase(cluster) == "Pending"
    rule = {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["create", "delete"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "nfs"}
    cluster.create({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": role}, "rules": [rule]})
    binding = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": role}}
    cluster.create({**binding, "roleRef": reference, "subjects": [subject]})
    eventually("the claim is bound", lambda: phase(cluster), lambda found: found == "Bound")
    (volume,) = cluster.list("v1", "PersistentVolume")
    assert volume["spec"]["nfs"]["path"] == f"/export/nfs-granite-{volume['metadata']['name']}"
    cluster.delete("v1", "PersistentVolumeClaim", "granite", "nfs")
    eventually("the volume is gone", lambda: cluster.list("v1", "PersistentVolume"), lambda found: not found)
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        cluster.delete(RBAC, kind, role)
    cluster.delete("storage.k8s.io/v1", "StorageClass", "nfs-class")


def phase(cluster: Cluster) -> str:
    return str(cluster.existing("v1", "PersistentVolumeClaim", "granite", "nfs")["status"]["phase"])


def pods_of_monitoring(paths: Paths, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the pod of each account of kube-prometheus-stack, from upstream's chart without values.

    folder: place for the packed chart, because the mirror's lacks the account of the hooks.
    """
    (source,) = (each for each in sources.SOURCES if each.name == "kube-prometheus-stack")
    chart = folder / "chart.tgz"
    chart.write_bytes(archive.pack(source.name, source.upstream(Toolchain(paths).module_folder(CHARTS, source.module))))
    version = f"--kube-version={KUBERNETES_VERSION}"
    rendered = helm(paths.bin / "helm", "template", accounts.RELEASE, str(chart), version)
    documents = [document for document in yaml.safe_load_all(rendered) if document]
    pods = [pod for document in documents if (pod := pod_of_document(document["kind"], document.get("spec") or {}))]
    return {pod["serviceAccountName"]: pod for pod in pods}


def pod_of_document(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of the pods that an object of this kind creates, empty without pods.

    Prometheus's operator uses account and users unchanged (pkg/prometheus/server/statefulset.go).
    """
    if kind in ("Deployment", "DaemonSet", "StatefulSet", "Job"):
        return dict(spec["template"]["spec"])
    if kind in ("Prometheus", "Alertmanager"):
        taken = {key: spec[key] for key in ("serviceAccountName", "securityContext")}
        return {**taken, "containers": [{"name": "main", "image": IMAGE}]}
    return {}


@pytest.mark.parametrize(("namespace", "privileged"), [("monitoring", False), ("prometheus", True)])
def test_each_account_of_monitoring_is_refused_until_it_has_its_grant(
    namespace: str,
    privileged: bool,
    paths: Paths,
    cluster: Cluster,
    project: Callable[[str], dict[str, str]],
    tmp_path: Path,
) -> None:
    """The tutorial's `oc adm policy add-scc-to-user privileged` for seven accounts, and the stack's default grants."""
    granted = {
        **dict.fromkeys(accounts.CONFINED, "privileged" if privileged else "nonroot-v2"),
        accounts.NODE_EXPORTER: "privileged" if privileged else accounts.CONSTRAINT,
    }
    made = pods_of_monitoring(paths, tmp_path)
    assert made.keys() == granted.keys()
    assert len(made) == 7
    project(namespace)
    for account in granted:
        metadata = {"name": account, "namespace": namespace}
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    controller = as_member(paths, "system:serviceaccount:kube-system:replicaset-controller")
    for account, pod in made.items():
        assert NO_CONSTRAINT in judgement(controller, namespace, pod), account
    documents = accounts.rights(namespace, namespace, privileged=privileged)
    try:
        for document in documents:
            cluster.create(document)
        for account, pod in made.items():
            eventually(
                f"{account} has its pods",
                lambda pod=pod: judgement(controller, namespace, pod),
                lambda found, account=account: found == granted[account],
            )
        of_nobody = {**made[accounts.NODE_EXPORTER], "serviceAccountName": "default"}
        assert NO_CONSTRAINT in judgement(controller, namespace, of_nobody)
    finally:
        cluster.delete(SECURITY, "SecurityContextConstraints", accounts.CONSTRAINT)


def test_a_route_is_admitted_under_a_host_of_the_clusters_domain(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("served")
    route = {"apiVersion": "route.openshift.io/v1", "kind": "Route"}
    metadata = {"name": "grafana", "namespace": "served"}
    cluster.create({**route, "metadata": metadata, "spec": {"to": {"kind": "Service", "name": "grafana"}}})
    found = eventually(
        "the Route is admitted",
        lambda: cluster.existing("route.openshift.io/v1", "Route", "grafana", "served"),
        lambda found: bool((found.get("status") or {}).get("ingress")),
    )
    domain = cluster.existing("config.openshift.io/v1", "Ingress", "cluster")["spec"]["domain"]
    assert found["spec"]["host"] == f"grafana-served.{domain}"
    (ingress,) = found["status"]["ingress"]
    assert [(item["type"], item["status"]) for item in ingress["conditions"]] == [("Admitted", "True")]


def test_a_grant_in_one_namespace_does_not_apply_in_another(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("granted")
    project("other")
    for namespace in ("granted", "other"):
        metadata = {"name": "root", "namespace": namespace}
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    grant(cluster, "anyuid", "root", "granted")
    for namespace in ("granted", "other"):
        spec = {"serviceAccountName": "root", "securityContext": {"runAsUser": 0}}
        cluster.create(deployment("server", namespace, **spec))
    assert pod_of(cluster, "granted")["metadata"]["annotations"][SCC] == "anyuid"
    assert "runAsUser: Invalid value: 0: must be in the ranges" in refusal(cluster, "other")


def test_a_user_who_may_edit_a_namespace_gets_no_privileged_pod_there(
    paths: Paths, cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("blue")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    metadata = {"name": "alice", "namespace": "blue"}
    cluster.create(
        {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]}
    )
    alice = as_member(paths, "alice", ["system:authenticated"])
    container: dict[str, Any] = {"name": "main", "image": IMAGE}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "blue"},
        "spec": {"containers": [{**container, "securityContext": {"privileged": True}}]},
    }
    plain = {**pod, "spec": {"containers": [container]}}
    eventually("the API server knows that alice may edit", lambda: not dry_run_said(alice, plain))
    said = refused(alice.create, pod)
    assert "containers[0].privileged: Invalid value: true: Privileged containers are not allowed" in said
    alice.create(plain)
    assert pod_of(cluster, "blue")["metadata"]["annotations"][SCC] == "restricted-v2"


@pytest.fixture
def guarded(cluster: Cluster, project: Callable[[str], dict[str, str]]) -> Iterator[None]:
    """The policy for requested projects is in force."""
    project("asked")
    requested(cluster, "asked", "bob")
    documents = requested_projects.policy(["nvidia.com/gpu"], queued=["queued"]).documents()
    for document in documents:
        cluster.create(document)
    eventually("the policy is in force", lambda: "counted by the queues" in dry_run_said(cluster, own_pod("asked")))
    yield
    for document in reversed(documents):
        cluster.delete(document["apiVersion"], document["kind"], document["metadata"]["name"])


def requested(cluster: Cluster, name: str, user: str) -> None:
    """Mark a project as requested by a user, who becomes its administrator."""
    kind = cluster.kind("v1", "Namespace")
    note = {"metadata": {"name": name, "annotations": {"openshift.io/requester": user}}}
    cluster.client.patch(kind, body=note, name=name, content_type="application/merge-patch+json")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    metadata = {"name": "admin", "namespace": name}
    cluster.create(
        {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]}
    )


def own_pod(namespace: str, gpus: str = "8", **spec: Any) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    container = {"name": "main", "image": IMAGE, "resources": limits}
    metadata = {"name": "own", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def dry_run_said(cluster: Cluster, document: dict[str, Any]) -> str:
    """Return the API server's reason for rejecting an object's creation, empty if it accepts it."""
    try:
        dry_run(cluster, document)
    except (ApiException, DynamicApiError) as error:
        return message(error)
    return ""


def test_a_user_gets_no_gpus_or_team_nodes_in_a_new_project(
    paths: Paths, cluster: Cluster, project: Callable[[str], dict[str, str]], guarded: None
) -> None:
    project("mine")
    project("admins")
    requested(cluster, "mine", "alice")
    requested(cluster, "admins", "kube:admin")
    alice = as_member(paths, "alice")
    eventually(
        "the API server knows whose project it is, and who may make pods in it",
        lambda: dry_run_said(alice, own_pod("mine")),
        lambda said: "nvidia.com/gpu are counted by the queues of teams" in said,
    )
    evicting = own_pod("mine", "", priorityClassName="openshift-user-critical")
    assert "the scheduler would evict jobs of teams" in dry_run_said(alice, evicting)
    for name in ("nvidia", "kata"):
        handler = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
        cluster.create(handler)
    assert "takes GPUs that it does not ask for" in dry_run_said(alice, own_pod("mine", "", runtimeClassName="nvidia"))
    claimed = own_pod("mine", "", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    assert "no queue counts claimed devices" in dry_run_said(alice, claimed)
    assert dry_run_said(alice, own_pod("mine", "", runtimeClassName="kata")) == ""
    assert dry_run_said(alice, own_pod("mine", "")) == ""
    assert dry_run_said(cluster, own_pod("admins", priorityClassName="openshift-user-critical")) == ""
    project("queued")
    assert dry_run_said(cluster, own_pod("queued")) == "", "its ResourceQuota bounds these"
    evicting = own_pod("queued", "", priorityClassName="openshift-user-critical")
    assert "the scheduler would evict jobs of teams" in dry_run_said(cluster, evicting)
    kind = cluster.kind("v1", "Namespace")
    admitted = {"metadata": {"name": "mine", "labels": {"mlbatch/admitted": "true"}}}
    assert "forbidden" in refused(
        alice.client.patch, kind, body=admitted, name="mine", content_type="application/merge-patch+json"
    )
    cluster.client.patch(kind, body=admitted, name="mine", content_type="application/merge-patch+json")
    eventually("the project is let", lambda: not dry_run_said(alice, own_pod("mine")))


def test_an_operators_constraint_applies_only_to_its_account_and_at_once(
    cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("autopilot")
    document = {
        "apiVersion": SECURITY,
        "kind": "SecurityContextConstraints",
        "metadata": {"name": "scc-autopilot"},
        "allowedCapabilities": ["NET_ADMIN", "NET_RAW"],
        "fsGroup": {"type": "RunAsAny"},
        "runAsUser": {"type": "RunAsAny"},
        "seLinuxContext": {"type": "RunAsAny"},
        "users": ["system:serviceaccount:autopilot:autopilot"],
    }
    kind = cluster.kind(SECURITY, "SecurityContextConstraints")
    versions = set()
    for _ in range(2):
        applied = cluster.client.server_side_apply(kind, body=document, name="scc-autopilot", field_manager="test")
        versions.add(applied.metadata.resourceVersion)
    assert len(versions) == 1
    assert applied.to_dict()["allowHostNetwork"] is False
    try:
        metadata = {"name": "autopilot", "namespace": "autopilot"}
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        capabilities = {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}
        spec = {"serviceAccountName": "autopilot", "container": capabilities}
        cluster.create(deployment("autopilot", "autopilot", **spec))
        assert pod_of(cluster, "autopilot")["metadata"]["annotations"][SCC] == "scc-autopilot"
    finally:
        cluster.delete(SECURITY, "SecurityContextConstraints", "scc-autopilot")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"runAsUser": {"type": "Anybody"}}, 'runAsUser.type: Unsupported value: "Anybody"'),
        ({"priority": -1}, "priority cannot be negative"),
        (
            {"allowedCapabilities": ["KILL"], "requiredDropCapabilities": ["KILL"]},
            "capability is listed in allowedCapabilities and requiredDropCapabilities",
        ),
        ({"fsGroup": {"type": "MustRunAs", "ranges": [{"min": 2, "max": 1}]}}, "min cannot be negative or greater"),
    ],
)
def test_a_constraint_that_contradicts_itself_is_refused(cluster: Cluster, fields: dict[str, Any], said: str) -> None:
    document = {
        "apiVersion": SECURITY,
        "kind": "SecurityContextConstraints",
        "metadata": {"name": "wrong"},
        "runAsUser": {"type": "RunAsAny"},
        "seLinuxContext": {"type": "RunAsAny"},
    }
    assert said in refused(cluster.create, {**document, **fields})


def test_a_user_without_rights_on_an_owner_cannot_block_its_deletion(
    paths: Paths, cluster: Cluster, project: Callable[[str], dict[str, str]]
) -> None:
    project("owners")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "configures"}
    metadata = {"name": "configures", "namespace": "owners"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
    cluster.create({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": [rule]})
    cluster.create(
        {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]}
    )
    cluster.create(deployment("owner", "owners"))
    uid = cluster.existing("apps/v1", "Deployment", "owner", "owners")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    owned = {"name": "owned", "namespace": "owners", "ownerReferences": [owner]}
    bob = as_member(paths, "bob")
    free = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free", "namespace": "owners"}}
    eventually("the API server knows what bob may", lambda: not dry_run_said(bob, free))
    said = refused(bob.create, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})
    assert "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on" in said
