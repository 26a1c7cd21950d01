"""The facts of a cluster: its identity, independent of its name, its version and its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from stacks.config import cluster_api
from stacks.config import kubeconfig as kubeconfigs
from stacks.config.cluster_facts import GpuPolicy, ask, comes_with_admission_policies, identity
from stacks.config.kubeconfig import Kubeconfig, KubeconfigError
from stacks.settings.kubernetes import KubernetesSettings
from tests.unit.servers import Handler, kubeconfig_of, serving, silent

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLUSTER_VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
REGISTRY = "/apis/imageregistry.operator.openshift.io/v1/configs/cluster"
DATA_SCIENCE = "/apis/datasciencecluster.opendatahub.io/v1/datascienceclusters"
POLICIES = "/apis/admissionregistration.k8s.io/v1/"
GPU_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"


@dataclass
class ApiServer:
    """A server that answers as told. answers: status and body by path; asked: paths with their queries."""

    port: int = 0
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = ApiServer()
    state.answers = {
        "/version/": (200, {"major": "1", "minor": "34+", "gitVersion": "v1.34.2-eks"}),
        "/api/v1/namespaces/kube-system": (200, {"metadata": {"name": "kube-system", "uid": "the-uid"}}),
        CLASSES: (200, {"items": []}),
        STORAGE_CLASSES: (200, {"items": [{"metadata": {"name": "nfs-client"}}]}),
        "/api/v1/nodes": (
            200,
            {
                "items": [
                    {
                        "metadata": {"name": "a", "labels": {"pool": "gpu"}},
                        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
                    }
                ]
            },
        ),
    }

    class Answers(Handler):
        def respond(self) -> None:
            state.asked.append(self.path)
            state.tokens.add(self.headers["Authorization"])
            code, body = state.answers.get(self.path.split("?")[0], (404, {}))
            self.answer(code, body)

    with serving(Answers) as state.port:
        yield state


def named(port: int, folder: Path, name: str = "kubernetes") -> Kubeconfig:
    file = kubeconfig_of(f"http://127.0.0.1:{port}", folder, name, token="correct-horse-battery")
    settings = KubernetesSettings.model_validate({"kubeconfig": str(file)})
    return kubeconfigs.read(settings, base=Path("/"), environment={})


def test_a_cluster_is_named_by_what_lives_as_long_as_it(server: ApiServer, tmp_path: Path) -> None:
    found = ask(named(server.port, tmp_path))
    assert (found.identifier, found.version) == ("the-uid", "1.34")
    assert server.tokens == {"Bearer correct-horse-battery"}
    assert not [path for path in server.asked if path.startswith("/api/v1/nodes")], "nobody asked for nodes"


def test_nodes_are_looked_up_by_their_labels(server: ApiServer, tmp_path: Path) -> None:
    found = ask(named(server.port, tmp_path), [{"pool": "gpu", "zone": "1"}])
    assert [(node.name, node.labels, node.allocatable) for node in found.nodes] == [
        ("a", {"pool": "gpu"}, {"nvidia.com/gpu": "8"})
    ]
    assert any("labelSelector=pool%3Dgpu%2Czone%3D1" in path for path in server.asked)


def test_storage_classes_are_known_by_name(server: ApiServer, tmp_path: Path) -> None:
    assert ask(named(server.port, tmp_path)).storage_classes == {"nfs-client"}


@pytest.mark.parametrize(
    ("history", "version"),
    [
        ([("Partial", "4.16.31"), ("Completed", "4.16.30"), ("Completed", "4.15.1")], "4.16.30"),
        ([("Partial", "4.16.31")], "4.16.31"),
    ],
)
def test_an_openshift_has_the_version_that_was_installed_to_its_end(
    history: list[tuple[str, str]], version: str, server: ApiServer, tmp_path: Path
) -> None:
    entries = [{"state": state, "version": which} for state, which in history]
    server.answers[CLUSTER_VERSION] = (200, {"status": {"desired": {"version": "4.16.31"}, "history": entries}})
    assert ask(named(server.port, tmp_path)).openshift == version


def test_another_cluster_has_no_version_of_openshift(server: ApiServer, tmp_path: Path) -> None:
    assert ask(named(server.port, tmp_path)).openshift is None
    server.answers[CLUSTER_VERSION] = (403, {"reason": "Forbidden"})
    with pytest.raises(KubeconfigError, match=r"HTTP 403 Forbidden"):
        ask(named(server.port, tmp_path))


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ((404, {}), True),
        ((403, {}), True),
        ((200, {"spec": {"managementState": "Managed"}}), True),
        ((200, {"spec": {"managementState": "Removed"}}), False),
    ],
)
def test_a_registry_is_off_where_the_cluster_says_so(
    answer: tuple[int, Any], runs: bool, server: ApiServer, tmp_path: Path
) -> None:
    server.answers[REGISTRY] = answer
    assert ask(named(server.port, tmp_path)).has_registry is runs


VARIABLE = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
MOUNT = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"cdi": {"enabled": True}}, {"by_variable": True, "by_mount": False, "cdi": True}),
        ({"cdi": {"enabled": False}, "toolkit": {"env": None}}, {"by_variable": True, "by_mount": False, "cdi": False}),
        (
            {"cdi": {"enabled": True}, "toolkit": {"enabled": True, "env": [{"name": VARIABLE, "value": "False"}]}},
            {"by_variable": False, "by_mount": False, "cdi": True},
        ),
        (
            {"cdi": {}, "toolkit": {"env": [{"name": VARIABLE, "value": "true"}, {"name": MOUNT, "value": "1"}]}},
            {"by_variable": True, "by_mount": True, "cdi": False},
        ),
        # The nodes have a toolkit, whose configuration is not read.
        (
            {"toolkit": {"enabled": False, "env": [{"name": MOUNT, "value": "true"}]}},
            {"by_variable": False, "by_mount": False, "cdi": False},
        ),
    ],
)
def test_a_policy_of_the_gpu_operator_says_what_gives_gpus(
    spec: dict[str, Any], found: dict[str, bool], server: ApiServer, tmp_path: Path
) -> None:
    server.answers[GPU_POLICIES] = (200, {"items": [{"metadata": {"name": "gpu-cluster-policy"}, "spec": spec}]})
    (policy,) = ask(named(server.port, tmp_path)).gpu_policies
    assert policy == GpuPolicy(name="gpu-cluster-policy", **found, is_others=True)


def test_what_a_stack_has_made_is_told_from_what_others_have(server: ApiServer, tmp_path: Path) -> None:
    """A stack writes on what it waits for (components/nodes, components/openshift_ai)."""
    made = {"annotations": {"pulumi.com/waitFor": "jsonpath={.status.phase}=Ready"}}
    items = [{"metadata": {"name": "own", **made}}, {"metadata": {"name": "theirs", "annotations": None}}]
    server.answers |= {path: (200, {"items": items}) for path in (GPU_POLICIES, DATA_SCIENCE)}
    found = ask(named(server.port, tmp_path))
    assert found.data_science is not None
    assert found.data_science.name == "theirs"
    assert {policy.name: policy.is_others for policy in found.gpu_policies} == {"own": False, "theirs": True}


@pytest.mark.parametrize("code", [403, 404])
def test_a_cluster_without_the_operator_or_the_right_to_read_it_has_no_policy(
    code: int, server: ApiServer, tmp_path: Path
) -> None:
    server.answers[GPU_POLICIES] = (code, {})
    assert ask(named(server.port, tmp_path)).gpu_policies == ()


def test_two_clusters_of_one_name_are_two(server: ApiServer, tmp_path: Path) -> None:
    one, other = named(server.port, tmp_path), named(server.port + 1, tmp_path)
    assert one.cluster == other.cluster
    assert identity(one) != identity(other)
    assert identity(one) == identity(named(server.port, tmp_path, name="renamed"))


@pytest.mark.parametrize("code", [401, 403])
def test_whoever_may_not_read_the_uid_gets_address_and_authority(code: int, server: ApiServer, tmp_path: Path) -> None:
    server.answers["/api/v1/namespaces/kube-system"] = (code, {"reason": "Forbidden"})
    kubeconfig = named(server.port, tmp_path)
    assert ask(kubeconfig).identifier == identity(kubeconfig)


def test_who_has_signed_in_long_ago_is_told_to_sign_in_anew(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/version/"] = (401, {"reason": "Unauthorized"})
    with pytest.raises(KubeconfigError, match=r"the kubeconfig's credentials \(HTTP 401 Unauthorized\)") as error:
        ask(named(server.port, tmp_path))
    assert "sign in again (`oc login` on OpenShift)" in str(error.value)
    assert "make up" not in str(error.value)


def test_nodes_that_may_not_be_read_are_an_error_that_says_so(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/api/v1/nodes"] = (403, {"reason": "Forbidden"})
    with pytest.raises(KubeconfigError, match=r"it rejects the request \(HTTP 403 Forbidden\)") as error:
        ask(named(server.port, tmp_path), [{"pool": "gpu"}])
    assert "correct-horse-battery" not in str(error.value)


def test_who_may_not_read_nodes_is_told_who_may(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/api/v1/nodes"] = (403, {"reason": "Forbidden"})
    with pytest.raises(KubeconfigError) as error:
        ask(named(server.port, tmp_path), [{"pool": "gpu"}])
    assert "(HTTP 403 Forbidden); the user must be a cluster administrator, who can read nodes" in str(error.value)
    server.answers["/api/v1/nodes"] = (500, {"reason": "broken"})
    with pytest.raises(KubeconfigError) as error:
        ask(named(server.port, tmp_path), [{"pool": "gpu"}])
    assert "(HTTP 500 Internal Server Error)" in str(error.value)
    assert "administrator" not in str(error.value)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/kube-system", CLASSES, STORAGE_CLASSES, CLUSTER_VERSION])
def test_whatever_cannot_be_read_is_an_error(path: str, server: ApiServer, tmp_path: Path) -> None:
    server.answers[path] = (500, {})
    with pytest.raises(KubeconfigError, match=r"it rejects the request \(HTTP 500 Internal Server Error\)"):
        ask(named(server.port, tmp_path))


@pytest.mark.parametrize("path", [CLUSTER_VERSION, REGISTRY, GPU_POLICIES, DATA_SCIENCE, POLICIES])
def test_an_answer_of_nothing_does_not_say_that_there_is_no_such_object(
    path: str, server: ApiServer, tmp_path: Path
) -> None:
    server.answers[path] = (200, None)
    with pytest.raises(KubeconfigError, match="does not answer as an API server"):
        ask(named(server.port, tmp_path))


@pytest.mark.parametrize("body", [[], {}, {"major": "1"}, "text", None])
def test_what_answers_as_no_api_server_does_is_told(body: Any, server: ApiServer, tmp_path: Path) -> None:
    server.answers["/api/v1/namespaces/kube-system"] = (200, body)
    with pytest.raises(KubeconfigError, match="does not answer as an API server"):
        ask(named(server.port, tmp_path))


def test_a_plugin_that_cannot_sign_in_is_told(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise kubernetes.config.ConfigException("no token")

    kubeconfig = named(server.port, tmp_path)
    monkeypatch.setattr(kubernetes.config, "new_client_from_config_dict", refuse)
    with pytest.raises(KubeconfigError, match="cannot sign in: no token"):
        ask(kubeconfig)


def test_a_server_that_is_gone_is_an_error_within_bounds(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_api, "SECONDS", 0.2)
    with pytest.raises(KubeconfigError, match="does not answer"):
        ask(named(1, tmp_path))


def test_a_server_that_says_nothing_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_api, "SECONDS", 0.2)
    with silent() as address, pytest.raises(KubeconfigError, match=r"within 0\.2 s"):
        ask(named(int(address.rpartition(":")[2]), tmp_path))


@pytest.mark.parametrize(("version", "has_them"), [("1.29", False), ("1.30", True), ("1.34.2", True)])
def test_admission_policies_come_with_a_version(version: str, has_them: bool) -> None:
    assert comes_with_admission_policies(version) is has_them


@pytest.mark.parametrize(
    ("answer", "has_them"),
    [
        ((200, {"resources": [{"name": "validatingadmissionpolicies"}]}), True),
        ((200, {"resources": [{"name": "validatingwebhookconfigurations"}]}), False),
        ((404, {}), False),
    ],
)
def test_a_cluster_says_itself_whether_it_has_admission_policies(
    answer: tuple[int, Any], has_them: bool, server: ApiServer, tmp_path: Path
) -> None:
    server.answers[POLICIES] = answer
    assert ask(named(server.port, tmp_path)).has_admission_policies is has_them


def test_a_cluster_that_does_not_say_so_is_an_error(server: ApiServer, tmp_path: Path) -> None:
    server.answers[POLICIES] = (403, {"reason": "Forbidden"})
    with pytest.raises(KubeconfigError, match="it rejects the request"):
        ask(named(server.port, tmp_path))


@pytest.mark.parametrize(
    ("defaults", "own"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"default-priority": 5}, None, id="the platform's"),
        pytest.param({"site-default": 100}, "site-default", id="the site's"),
        pytest.param({"upper": 100, "lower": 50}, "lower", id="the API server takes the lowest of several"),
    ],
)
def test_a_cluster_may_rank_pods_by_a_class_of_its_own(
    defaults: dict[str, int], own: str | None, server: ApiServer, tmp_path: Path
) -> None:
    classes = [{"metadata": {"name": name}, "value": value, "globalDefault": True} for name, value in defaults.items()]
    named_only = {"metadata": {"name": "system-node-critical"}, "value": 2000001000}
    server.answers[CLASSES] = (200, {"items": [named_only, *classes]})
    facts = ask(named(server.port, tmp_path))
    assert facts.default_priority == own
    assert facts.priority_classes == {"system-node-critical", *defaults}
