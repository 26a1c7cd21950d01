"""Stubs of Red Hat's operators: they accept no more than the operators, and configure Kueue like its operator."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from components import catalogue
from components.openshift_ai import version_3
from emulator.cluster import images
from emulator.cluster.api import ApiError
from emulator.cluster.credentials import Account
from emulator.openshift.red_hat import bundles, kueue_operator, openshift_ai, stub
from emulator.openshift.red_hat.kueue_operator import KueueOperator
from emulator.paths import Paths
from emulator.toolchain import Toolchain
from tests.unit.releases import FOLDER

pytestmark = pytest.mark.emulated("its modules are those of the local environment")

DEFINED = yaml.safe_load((FOLDER / "openshift-ai.yaml").read_text())
RELEASE = catalogue.entry(catalogue.OPENSHIFT_AI, version="3.4")


@pytest.fixture(scope="module")
def operands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("operands")
    paths = Paths.of(state=folder / "state")
    bundles.write_operands(folder / "operands", paths, Toolchain(paths))
    return {file.stem: documents(file) for file in (folder / "operands").iterdir()}


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader))


def test_the_definitions_have_no_field_that_those_of_openshift_ai_lack() -> None:
    digests = {"DataScienceCluster": RELEASE.cluster_digest, "DSCInitialization": RELEASE.initialization_digest}
    compared = set()
    for each in documents(Path(bundles.__file__).with_name("definitions.yaml")):
        kind = each["spec"]["names"]["kind"]
        if kind in digests:
            schema = each["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            assert list(unknown(schema, DEFINED[digests[kind]])) == [], kind
            compared.add(kind)
    assert compared == digests.keys()


def unknown(schema: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a schema that a definition does not have."""
    for name, each in (schema.get("properties") or {}).items():
        if name not in fields:
            yield name
        elif fields[name] is not None:
            yield from unknown(each, fields[name])


def test_kueue_gets_its_operators_configuration(operands: dict[str, list[dict[str, Any]]]) -> None:
    """The operator's has no excluded resources and no time for pods that do not start (pkg/configmap)."""
    found = configured(operands["kueue"], "ConfigMap")
    config = yaml.safe_load(found["data"]["controller_manager_config.yaml"])
    assert config["manageJobsWithoutQueueName"] is True
    assert config["managedJobsNamespaceSelector"] == {"matchLabels": {"kueue.openshift.io/managed": "true"}}
    assert {"workload.codeflare.dev/appwrapper", "trainer.kubeflow.org/trainjob"} <= {
        *config["integrations"]["frameworks"]
    }
    assert not {"resources", "waitForPodsReady"} & config.keys()


def test_webhooks_of_jobs_judge_managed_namespaces_alone(operands: dict[str, list[dict[str, Any]]]) -> None:
    webhooks = {
        each["name"]: each for each in configured(operands["kueue"], "ValidatingWebhookConfiguration")["webhooks"]
    }
    assert {"vappwrapper.kb.io", "vrayjob.kb.io", "vclusterqueue.kb.io", "vworkload.kb.io"} <= webhooks.keys()
    assert not {"vpod.kb.io", "vjob.kb.io"} & webhooks.keys(), "the program names neither Pod nor BatchJob"
    managed = {"key": "kueue.openshift.io/managed", "operator": "In", "values": ["true"]}
    assert managed in webhooks["vappwrapper.kb.io"]["namespaceSelector"]["matchExpressions"]
    assert "namespaceSelector" not in webhooks["vclusterqueue.kb.io"]


def configured(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the manifest of a kind, as the stub applies it for the program's Kueue."""
    (found,) = (yaml.safe_load(yaml.safe_dump(each)) for each in manifests if each["kind"] == kind)
    kueue_operator.configure(found, version_3.kueue()["spec"]["config"])
    return dict(found)


def test_what_the_operators_install_runs_here(operands: dict[str, list[dict[str, Any]]]) -> None:
    deployments = [each for manifests in operands.values() for each in manifests if each["kind"] == "Deployment"]
    pods = [each["spec"]["template"]["spec"] for each in deployments]
    assert len(pods) == 2
    assert all(images.known(container["image"]) for pod in pods for container in pod["containers"])


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("Available", "True", ""),
        ("Available", "False", "Kueue cluster: Available is False: why"),
        ("Degraded", "True", "Kueue cluster: Degraded is True: why"),
        ("Progressing", "True", ""),
    ],
)
def test_openshift_ai_waits_for_a_kueue_that_is_degraded(kind: str, status: str, said: str) -> None:
    """rhods-operator, internal/controller/components/kueue/kueue_support.go."""
    conditions = [{"type": kind, "status": status, "message": "why"}]
    found = {"kind": "Kueue", "metadata": {"name": "cluster"}, "status": {"conditions": conditions}}
    assert openshift_ai.degraded(found) == said


class FakeApi:
    """Objects by path. `applied` has the paths of each apply."""

    objects: ClassVar[dict[str, Any]] = {}
    applied: ClassVar[list[str]] = []

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def get(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise ApiError(404, path)
        return dict(self.objects[path])

    def apply(self, path: str, body: dict[str, Any], manager: str) -> None:
        self.applied.append(path)
        self.objects[path] = body

    def patch(self, path: str, body: dict[str, Any], kind: str) -> None:
        found = self.objects[path.removesuffix("/status")]
        for key, value in body.items():
            found[key] = {**(found.get(key) or {}), **value}

    def delete(self, path: str, body: object) -> None:
        del self.objects[path]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> type[FakeApi]:
    """Return a cluster where the Kueue operator's pod is ready, with cert-manager and the program's Kueue."""
    operator = "/apis/apps/v1/namespaces/openshift-kueue-operator/deployments/openshift-kueue-operator"
    kueue = {**version_3.kueue(), "metadata": {"name": "cluster", "uid": "a"}}
    monkeypatch.setattr(FakeApi, "applied", [])
    monkeypatch.setattr(
        FakeApi,
        "objects",
        {
            operator: {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}},
            "/apis/cert-manager.io/v1": {"resources": [{"kind": "Issuer"}]},
            stub.KUEUE: kueue,
        },
    )
    monkeypatch.setattr(stub, "Api", FakeApi)
    monkeypatch.setattr(stub, "path_of", lambda api, each: f"{each['kind']}/{each['metadata']['name']}")
    return FakeApi


@pytest.fixture
def operator(api: type[FakeApi], operands: dict[str, list[dict[str, Any]]], tmp_path: Path) -> KueueOperator:
    (tmp_path / "kueue.yaml").write_text(yaml.safe_dump_all(operands["kueue"]))
    return KueueOperator(Account("", "", ""), tmp_path)


def available(api: type[FakeApi]) -> str:
    return condition(api, "Available")["status"]


def degraded(api: type[FakeApi]) -> str:
    return condition(api, "Degraded")["message"]


def condition(api: type[FakeApi], kind: str) -> dict[str, str]:
    (found,) = (each for each in api.objects[stub.KUEUE]["status"]["conditions"] if each["type"] == kind)
    return dict(found)


def test_kueue_is_installed_once_and_again_with_another_configuration(
    api: type[FakeApi], operator: KueueOperator
) -> None:
    operator.attend()
    assert available(api) == "False"
    api.objects["Deployment/kueue-controller-manager"]["status"] = {"readyReplicas": 1}
    before = len(api.applied)
    operator.attend()
    assert (available(api), len(api.applied)) == ("True", before)
    assert degraded(api) == ""
    spec = api.objects[stub.KUEUE]["spec"]
    changed = {**spec["config"], "integrations": {"frameworks": ["JobSet"]}}
    api.objects[stub.KUEUE]["spec"] = {**spec, "config": changed}
    operator.attend()
    assert len(api.applied) == 2 * before
    assert degraded(api) == "Please install the following on your cluster: JobSet"


def test_without_cert_manager_kueue_is_not_installed(api: type[FakeApi], operator: KueueOperator) -> None:
    del api.objects["/apis/cert-manager.io/v1"]
    operator.attend()
    assert (available(api), api.applied) == ("False", [])


def test_while_the_operators_pod_does_not_run_it_does_no_work(api: type[FakeApi], operator: KueueOperator) -> None:
    (path,) = (path for path in api.objects if path.endswith("openshift-kueue-operator"))
    api.objects[path]["status"] = {}
    operator.attend()
    assert "status" not in api.objects[stub.KUEUE]
