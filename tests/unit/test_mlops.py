"""The OSS MLOps platform: every entry of its menus, rendered from an archive whose digest is checked."""

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import bcrypt
import pulumi
import pytest
import yaml

from components import available, catalogue
from components.artifacts import ArtifactError, Mirror
from components.catalogue import Repository
from components.kubernetes import kustomize
from components.kubernetes.kustomize import KustomizeError
from components.mlops import menu
from components.mlops.menu import MENU, Deployment
from components.mlops.passwords import _DIGEST, _SECRETS, derived
from components.mlops.pipelines import replaced
from components.mlops.platform import LABEL, MlopsArgs, MlopsPlatform, documents
from emulator import mlops as emulated
from emulator.charts import archive
from emulator.mlops import stub
from runner.report import MLOPS_LABEL
from stacks.config.inputs import StackInputs
from stacks.layers import releases
from stacks.settings.mlops import MlopsSettings
from tests.unit.harness import Record, Registered, build
from tests.unit.images import retired
from tests.unit.releases import FOLDER
from tests.unit.tables import table
from tests.unit.test_existing import loaded, refused, registered, shipped

needs_kustomize = pytest.mark.skipif(
    not (shutil.which("kustomize") or shutil.which("kubectl")), reason="neither kustomize nor kubectl is installed"
)
OVERLAYS = table("mlops", "overlays")

OBJECTS = dict(zip(MENU, (669, 650, 390, 371, 431, 412, 675, 550, 396, 437), strict=True))
"""What `kubectl kustomize` makes of the repository itself, at the pinned commit with Kubeflow's pipelines, by entry. Of
all of Kubeflow there is a namespace more."""

STUB = yaml.safe_load((Path(emulated.__file__).parent / "stub.yaml").read_text())
"""All objects of all deployments, by name."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """A mirror with the local environment's archive beside the manifests."""
    folder = tmp_path_factory.mktemp("mirror")
    for file in FOLDER.glob("*.yaml"):
        os.symlink(file, folder / file.name)
    emulated.fill(folder)
    return Mirror(artifacts=str(folder))


@pytest.fixture(scope="module", autouse=True)
def rendered_once() -> Iterator[None]:
    """Render each folder of the same files once: a rendering writes thousands of files and takes seconds."""
    render, known = kustomize.render, dict[tuple[str, str, str], str]()

    def once(files: Mapping[str, bytes], folder: str) -> str:
        asked = os.environ["PATH"], kustomize.digest(files), folder
        if asked not in known:
            known[asked] = render(files, folder)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kustomize, "render", once)
        yield


@pytest.fixture(scope="module")
def whole(filled: Mirror, same_kubeconfig: Path) -> Record:
    """The platform as a stack has it that says no more than that it is there."""
    return registered(loaded(config(), filled, same_kubeconfig))


def config(**mlops: Any) -> dict[str, Any]:
    raw = shipped()
    del raw["teams"], raw["samples"]
    return {**raw, "queueing": {"enabled": False}, "mlops": {"enabled": True, **mlops}}


def test_the_numbers_are_those_that_the_setup_asks_for() -> None:
    for integration, overlays in OVERLAYS.items():
        assert [entry.overlay for entry in menu.entries(integration=integration)] == overlays
        assert [entry.option for entry in menu.entries(integration=integration)] == [*range(1, len(overlays) + 1)]
    assert MlopsSettings().deployment.overlay == "integration-standalone-kfp-kserve-monitoring"


@needs_kustomize
@pytest.mark.parametrize("entry", MENU, ids=lambda entry: entry.overlay)
def test_each_entry_renders_to_objects_of_its_own(filled: Mirror, kubeconfig: Path, entry: Deployment) -> None:
    stack = loaded(config(integration=entry.integration, option=entry.option), filled, kubeconfig)
    text = releases.read(stack).mlops
    assert text is not None
    objects = documents(MlopsArgs(manifests=text, forwarder=True))
    found = {(item["kind"], item["metadata"]["name"]) for item in objects}
    assert len(objects) == OBJECTS[entry] + ("kubeflow" in entry.overlay)
    namespaces = {item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"}
    assert {item["metadata"].get("namespace", "kube-system") for item in objects} <= namespaces | {"kube-system"}
    assert ("Deployment", "mlflow") in found
    assert (("Deployment", "grafana") in found) == entry.overlay.endswith("monitoring")
    assert (("Deployment", "kserve-controller-manager") in found) == (
        "kserve" in entry.overlay or "kubeflow" in entry.overlay
    )
    assert (("Deployment", "centraldashboard") in found) == ("kubeflow" in entry.overlay)
    assert (("Deployment", "katib-controller") in found) == (
        "kubeflow" in entry.overlay and "reduced" not in entry.overlay
    )
    assert (("Deployment", "celery-server") in found) == entry.integration


@needs_kustomize
def test_the_images_of_all_deployments_are_checked_every_night(filled: Mirror) -> None:
    places = {image: place for image, place, _ in available.rendered(filled)}
    assert places["quay.io/argoproj/workflow-controller:v3.5.14"].count(",") == len(MENU) - 1
    assert places[catalogue.MINIO.reference].startswith(f"{catalogue.MLOPS.url}/tree/{catalogue.MLOPS.commit}: ")
    assert retired(places) == []


def containers(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of a workload, those that begin it too; none of another object."""
    pod = (
        item.get("spec", {}).get("template", {}).get("spec", {})
        if item["kind"] in ("Deployment", "StatefulSet")
        else {}
    )
    return [*pod.get("containers", []), *pod.get("initContainers", [])]


def test_the_pipelines_of_kubeflow_stand_in_the_place_of_the_platforms_own() -> None:
    place = "deployment/kubeflow/manifests/apps/pipeline/upstream"
    own = {
        f"{place}/base/old.yaml": b"old",
        f"{place}/base/both.yaml": b"2.0.0-alpha.7",
        "deployment/envs/a.yaml": b"a",
    }
    theirs = {"applications/pipeline/upstream/base/both.yaml": b"2.5.0", "applications/katib/upstream/x.yaml": b"x"}
    assert replaced(own, theirs) == {f"{place}/base/both.yaml": b"2.5.0", "deployment/envs/a.yaml": b"a"}


MANIFESTS = table("mlops", "manifests")


class TestObjects:
    def record(self, **changes: Any) -> Record:
        return build(lambda: MlopsPlatform("mlops", MlopsArgs(manifests=MANIFESTS, **changes)))

    def test_each_comes_after_its_namespace_its_definition_and_what_it_waits_for(self) -> None:
        record = self.record()
        gateway, server = record.one("Gateway", "gateway"), record.one("Deployment", "server")
        definition = record.one("CustomResourceDefinition", "gateways.example.org")
        assert {definition.urn, record.one("Namespace", "mlflow").urn} <= record.closure(gateway)
        assert {gateway.urn, record.one("Secret", "key").urn} <= record.closure(server)
        assert server.urn in record.closure(record.one("MutatingWebhookConfiguration", "injector"))
        assert definition.urn not in record.one("Secret", "key").dependencies

    def test_the_namespace_of_a_profile_is_there_before_its_controller(self) -> None:
        """Which takes it for its own by the owner, and is itself among what waits for the Secrets in there."""
        profile = """
apiVersion: kubeflow.org/v1beta1
kind: Profile
metadata: {name: kubeflow-user-example-com}
spec: {owner: {kind: User, name: user@example.com}}
---
apiVersion: v1
kind: Secret
metadata: {name: mysecret, namespace: kubeflow-user-example-com}
"""
        record = build(lambda: MlopsPlatform("mlops", MlopsArgs(manifests=profile)))
        home = record.one("Namespace", "kubeflow-user-example-com")
        assert home.urn in record.closure(record.one("Secret", "mysecret"))
        metadata = home.inputs["metadata"]
        assert metadata["annotations"] == {"owner": "user@example.com"}
        assert metadata["labels"] == {"istio-injection": "enabled", "mlbatch/part-of": "mlops"}

    def test_what_is_in_a_secret_is_one_to_the_engine(self) -> None:
        assert self.record().one("Secret", "key").secrets == {"stringData"}

    def test_nothing_that_runs_is_waited_for_because_webhooks_come_after_it(self) -> None:
        record = self.record()
        for kind in ("Deployment", "Service"):
            metadata = record.one(kind, "server").inputs["metadata"]
            assert metadata["annotations"] == {"pulumi.com/skipAwait": "true"}
            assert metadata["labels"] == {"mlbatch/part-of": "mlops"}
        assert f"{LABEL}=mlops" == MLOPS_LABEL

    def test_a_placeholder_for_an_authority_which_kubernetes_refuses_is_left_out_and_a_real_one_stays(self) -> None:
        record = self.record()
        definition = record.one("CustomResourceDefinition", "gateways.example.org").inputs["spec"]["conversion"]
        assert definition["webhook"]["clientConfig"] == {"service": {"name": "server"}}
        webhooks = record.one("MutatingWebhookConfiguration", "injector").inputs["webhooks"]
        assert [each["clientConfig"].get("caBundle") for each in webhooks] == [None, "LS0tLS1CRUdJTg=="]

    def test_no_node_listens_for_any_of_it(self) -> None:
        record = self.record()
        container = record.one("Deployment", "server").inputs["spec"]["template"]["spec"]["containers"][0]
        assert [port.keys() for port in container["ports"]] == [{"containerPort"}]
        service = record.one("Service", "server").inputs["spec"]
        assert service == {"type": "ClusterIP", "ports": [{"port": 5000}]}

    def test_images_that_have_moved_are_pulled_from_where_they_are(self) -> None:
        pod = self.record().one("Deployment", "server").inputs["spec"]["template"]["spec"]
        assert [each["image"] for each in (*pod["initContainers"], *pod["containers"])] == [
            "docker.io/library/mysql:8.0.26",
            catalogue.MOVED_IMAGES["gcr.io/ml-pipeline/minio:RELEASE.2019-08-14T20-37-41Z-license-compliance"],
            "quay.io/brancz/kube-rbac-proxy:v0.13.1",
            "postgres:13",
        ]

    def test_the_store_of_mlflow_is_started_by_the_entrypoint_of_its_fork(self) -> None:
        """The container's arguments are those of the pinned commit, deployment/mlflow/minio/minio-deployment.yaml."""
        container = {
            "name": "mlflow-minio",
            "image": "minio/minio:RELEASE.2023-02-10T18-48-39Z",
            "command": ["/bin/bash"],
            "args": ["-c", "mkdir -p /data/mlflow  && minio server --address :9000 --console-address :9001 /data"],
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "mlflow-minio", "namespace": "mlflow"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
        record = build(lambda: MlopsPlatform("mlops", MlopsArgs(manifests=yaml.safe_dump(body))))
        (made,) = record.one("Deployment", "mlflow-minio").inputs["spec"]["template"]["spec"]["containers"]
        assert (made["image"], made["command"], made["args"]) == (
            catalogue.MINIO.reference,
            ["/bin/sh"],
            ["-c", container["args"][1].replace("minio server", "exec /usr/bin/docker-entrypoint.sh server")],
        )

    def test_rules_that_kubernetes_fills_are_left_to_it(self) -> None:
        record = self.record()
        assert "rules" not in record.one("ClusterRole", "admin").inputs
        assert record.one("ClusterRole", "reader").inputs["rules"] == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
        ]

    def test_the_forwarder_whose_account_may_do_everything_is_there_when_asked_for(self) -> None:
        def names(record: Record) -> set[str]:
            return {item.object_name for item in record.objects()}

        assert names(self.record(forwarder=True)) - names(self.record()) == {
            "forwarder",
            "celery-role",
            "redis-service",
        }

    def test_tools_are_told_of_the_registry_beside_the_cluster(self) -> None:
        hosting = self.record(registry=True).one("ConfigMap", "local-registry-hosting", "kube-public")
        assert hosting.inputs["data"]["localRegistryHosting.v1"].startswith('host: "127.0.0.1:5001"\n')
        assert self.record().of("ConfigMap") == []


ASKING = table("mlops", "asking")
"""The values in the repository."""


class TestPasswords:
    """Readers of the repository cannot sign in with its contents. With `upstreamAccess` everyone can, as upstream."""

    def record(self, main: str | None = "main") -> Record:
        def make() -> MlopsPlatform:
            password = pulumi.Output.from_input(main) if main is not None else None
            args = MlopsArgs(manifests=ASKING, password=password, forwarder=True)
            platform = MlopsPlatform("mlops", args)
            platform.logins.apply(self.logins.update)
            return platform

        self.logins: dict[str, Any] = {}
        return build(make)

    def test_both_ends_of_a_connection_have_the_same_password_and_no_two_connections_one(self) -> None:
        record = self.record()
        store = record.one("Secret", "mlflow-secrets-cm78678bd4")
        assert store.secrets == {"data"}
        found = decoded(store)
        assert found["MINIO_ROOT_PASSWORD"] == found["AWS_SECRET_ACCESS_KEY"] == derived("main", "mlflow-store")
        database = decoded(record.one("Secret", "mlflow-secret-d885f25b6m"))["DB_PASSWORD"]
        assert found["DB_PASSWORD"] == database == derived("main", "mlflow-database")
        pipelines = record.one("Secret", "mysql-secret")
        assert decoded(pipelines) == {"password": derived("main", "pipelines-database")}
        assert pipelines.inputs["stringData"] == {"username": "root"}
        assert len({found["MINIO_ROOT_PASSWORD"], database, decoded(pipelines)["password"]}) == 3
        assert "data" not in record.one("Secret", "webhook-certs").inputs

    def test_another_stack_has_others_and_the_same_one_the_same(self) -> None:
        name = "mlflow-secrets-cm78678bd4"
        first, again, other = (decoded(self.record(main).one("Secret", name)) for main in ("main", "main", "other"))
        assert first == again
        assert not set(first.values()) & set(other.values())

    def test_an_empty_password_of_mysql_is_one_of_its_own(self) -> None:
        (container,) = containers(dict(self.record().one("Deployment", "mysql").inputs))
        reference = {"name": "mysql-secret", "key": "password"}
        assert container["env"] == [{"name": "MYSQL_ROOT_PASSWORD", "valueFrom": {"secretKeyRef": reference}}]

    def test_the_object_stores_metrics_ask_who_reads_them(self) -> None:
        (container,) = containers(dict(self.record().one("Deployment", "mlflow-minio").inputs))
        assert container["env"] == [{"name": "MINIO_ROOT_USER", "value": "minioadmin"}]

    def test_grafanas_administrator_has_a_password_of_their_own(self) -> None:
        record = self.record()
        (container,) = containers(dict(record.one("Deployment", "grafana").inputs))
        reference = {"name": "grafana-admin", "key": "password"}
        assert container["env"] == [{"name": "GF_SECURITY_ADMIN_PASSWORD", "valueFrom": {"secretKeyRef": reference}}]
        admin = record.one("Secret", "grafana-admin", "monitoring")
        assert admin.inputs["metadata"]["labels"] == {"mlbatch/part-of": "mlops"}
        assert decoded(admin) == {"password": self.logins["grafana"]["password"]}

    def test_the_forwarders_flower_has_a_password_of_its_own(self) -> None:
        record = self.record()
        (container,) = containers(dict(record.one("Deployment", "flower-server").inputs))
        reference = {"name": "flower-login", "key": "password"}
        assert container["env"] == [
            {"name": "FLOWER_USERNAME", "value": "flower123"},
            {"name": "FLOWER_PASSWORD", "valueFrom": {"secretKeyRef": reference}},
        ]
        assert decoded(record.one("Secret", "flower-login", "forwarder")) == {
            "password": self.logins["flower"]["password"]
        }
        assert self.logins["flower"]["user"] == "flower123"

    def test_dex_knows_its_user_by_a_password_of_their_own(self) -> None:
        settings = yaml.safe_load(self.record().one("ConfigMap", "dex").inputs["data"]["config.yaml"])
        (user,) = settings["staticPasswords"]
        assert user["email"] == self.logins["kubeflow"]["user"] == "user@example.com"
        assert bcrypt.checkpw(self.logins["kubeflow"]["password"].encode(), user["hash"].encode())
        assert not bcrypt.checkpw(b"12341234", user["hash"].encode())
        again = yaml.safe_load(self.record().one("ConfigMap", "dex").inputs["data"]["config.yaml"])
        assert again == settings, "or each update would change it"

    def test_no_gateway_leads_to_mlflow_which_asks_nobody_who_they_are(self) -> None:
        assert self.record().of("VirtualService") == []

    def test_the_platforms_own_pods_alone_connect_to_what_asks_nobody_who_they_are(self) -> None:
        made = [item.inputs for item in self.record().of("NetworkPolicy")]
        found = {(each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"] for each in made}
        own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kubeflow", "mlflow"]}
        callers = [
            {"namespaceSelector": {"matchExpressions": [own]}},
            {"namespaceSelector": {"matchLabels": {"app.kubernetes.io/part-of": "kubeflow-profile"}}},
        ]
        assert found["mlflow", "network-boundary"] == {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": callers}],
        }
        assert all(spec["ingress"] == [{"from": callers}] for spec in found.values())
        guarded = {
            (name, rule["key"]): rule["values"]
            for (namespace, name), spec in found.items()
            if namespace == "kubeflow"
            for rule in spec["podSelector"]["matchExpressions"]
        }
        assert guarded == {
            ("pipelines", "app"): [
                "minio",
                "ml-pipeline",
                "ml-pipeline-ui",
                "ml-pipeline-visualizationserver",
                "mysql",
            ],
            ("metadata", "component"): ["metadata-envoy", "metadata-grpc-server"],
            ("katib", "katib.kubeflow.org/component"): ["db-manager", "mysql"],
        }

    def test_who_asks_for_upstreams_access_lets_the_cluster_connect(self) -> None:
        assert self.record(None).of("NetworkPolicy") == []

    def test_who_asks_for_it_has_all_as_upstream(self) -> None:
        record = self.record(None)
        found = next(each for each in yaml.safe_load_all(ASKING) if each["kind"] == "Secret")["data"]
        assert record.one("Secret", "mlflow-secrets-cm78678bd4").inputs["data"] == found
        assert [item.object_name for item in record.of("VirtualService")] == ["mlflow"]
        (container,) = containers(dict(record.one("Deployment", "mysql").inputs))
        assert container["env"] == [{"name": "MYSQL_ALLOW_EMPTY_PASSWORD", "value": "true"}]
        assert self.logins == {}

    def test_no_secret_of_any_deployment_is_left_out(self) -> None:
        """Those that are not replaced are empty before a user writes a certificate there."""
        names = {
            (namespace or "", _DIGEST.sub("", name))
            for part in STUB["parts"].values()
            for namespace, inside in part.items()
            for name in inside.get("objects", {}).get("v1/Secret", ())
        }
        assert {name for _, name in names - _SECRETS.keys()} == {
            "control-serving-certs",
            "domainmapping-webhook-certs",
            "eventing-webhook-certs",
            "knative-serving-certs",
            "kserve-webhook-server-secret",
            "net-istio-webhook-certs",
            "routing-serving-certs",
            "serving-certs-ctrl-ca",
            "webhook-certs",
        }
        assert _SECRETS.keys() <= names

    @needs_kustomize
    def test_a_stack_makes_them_unless_it_is_told_otherwise(
        self, whole: Record, filled: Mirror, kubeconfig: Path
    ) -> None:
        assert made(whole) == ["mlops"]
        assert "grafana-admin" in {item.object_name for item in whole.of("Secret")}
        record = registered(loaded(config(upstreamAccess=True), filled, kubeconfig))
        assert made(record) == []
        assert "grafana-admin" not in {item.object_name for item in record.of("Secret")}


def made(record: Record) -> list[str]:
    """Return the names of passwords that are made."""
    return [item.name for item in record.resources if item.type.endswith(":RandomPassword")]


def decoded(secret: Registered) -> dict[str, str]:
    """Return the content of a Secret."""
    return {key: base64.b64decode(text).decode() for key, text in secret.inputs["data"].items()}


class TestWhatKustomizePrints:
    """A program that replaces it, first on the PATH."""

    @pytest.fixture
    def program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        file = tmp_path / "kustomize"
        file.touch(mode=0o700)
        return file

    def test_what_it_prints_is_what_is_made(self, program: Path) -> None:
        program.write_text('#!/bin/sh\n[ "$1" = build ] && cat "$2/kustomization.yaml" "$2/../base/namespace.yaml"\n')
        files = {"lab/kustomization.yaml": b"resources: [../base]\n", "base/namespace.yaml": b"kind: Namespace\n"}
        assert kustomize.render(files, "lab") == "resources: [../base]\nkind: Namespace\n"

    def test_its_own_words_are_told(self, program: Path) -> None:
        program.write_text("#!/bin/sh\necho 'Error: no such file: ../base' >&2\nexit 1\n")
        with pytest.raises(KustomizeError) as error:
            kustomize.render({"lab/kustomization.yaml": b"resources: [../base]\n"}, "lab")
        assert str(error.value) == "`kustomize build` failed: Error: no such file: ../base"


class TestSource:
    @needs_kustomize
    def test_the_stack_registers_what_the_seeds_answers_choose(self, whole: Record) -> None:
        deployments = [item for item in whole.of("Deployment") if item.inputs["metadata"]["namespace"] != "forwarder"]
        assert len(deployments) == 37
        assert whole.one("Deployment", "ml-pipeline", "kubeflow")
        assert "forwarder" not in {item.object_name for item in whole.of("Namespace")}

    def test_files_with_another_digest_are_refused(self, filled: Mirror, kubeconfig: Path) -> None:
        stack = loaded(config(), filled, kubeconfig)
        strict: StackInputs[Any] = _with_mirror(stack, Mirror(artifacts=filled.artifacts))
        with pytest.raises(ArtifactError) as error:
            releases.read(strict)
        assert f"{catalogue.MLOPS.content} is expected of {catalogue.MLOPS.url}" in str(error.value)

    def test_an_archive_that_is_none(self, filled: Mirror, kubeconfig: Path, tmp_path: Path) -> None:
        (tmp_path / f"oss-mlops-platform-{catalogue.MLOPS.commit}.tar.gz").write_bytes(b"<html>not found</html>")
        stack = loaded(config(), filled, kubeconfig)
        with pytest.raises(ArtifactError, match="this is no archive of a repository"):
            releases.read(_with_mirror(stack, Mirror(artifacts=str(tmp_path), verify=False)))

    @pytest.mark.parametrize("repository", [catalogue.MLOPS, catalogue.PIPELINES], ids=lambda one: one.name)
    def test_a_mirror_without_it_says_what_to_put_there(
        self, filled: Mirror, kubeconfig: Path, tmp_path: Path, repository: Repository
    ) -> None:
        for file in Path(str(filled.artifacts)).glob("*"):
            if file.name != repository.archive.file:
                (tmp_path / file.name).symlink_to(file)
        said = refused(config(), Mirror(artifacts=str(tmp_path)), kubeconfig)
        assert f"put {repository.url}/archive/{repository.commit}.tar.gz there" in said

    def test_another_commit_needs_a_digest(self, filled: Mirror, kubeconfig: Path) -> None:
        raw = config(revision="7" * 40)
        raw["mlops"]["enabled"] = False
        assert "mlbatch:mlops.digest" in refused(raw, filled, kubeconfig)
        raw["mlops"]["digest"] = "h1:" + "a" * 43 + "="
        source = loaded(raw, filled, kubeconfig).settings.mlops.source
        assert (source.commit, source.content) == ("7" * 40, "h1:" + "a" * 43 + "=")

    def test_another_commit_has_pipelines_of_its_own(self, filled: Mirror, kubeconfig: Path) -> None:
        pinned = loaded(config(), filled, kubeconfig).settings.mlops
        assert [artifact.url for artifact in pinned.artifacts()] == [
            f"{catalogue.MLOPS.url}/archive/{catalogue.MLOPS.commit}.tar.gz",
            f"{catalogue.PIPELINES.url}/archive/{catalogue.PIPELINES.commit}.tar.gz",
        ]
        other = pinned.model_copy(update={"revision": "7" * 40})
        assert [artifact.version for artifact in other.artifacts()] == ["7" * 40]

    def test_pipelines_with_another_digest_are_refused(
        self, filled: Mirror, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = {name: text for name, text in stub.files().items() if name.startswith("deployment/")}
        content = kustomize.digest(own)
        monkeypatch.setattr(catalogue, "MLOPS", replace(catalogue.MLOPS, content=content))
        stack = loaded(config(), filled, kubeconfig)
        with pytest.raises(ArtifactError) as error:
            releases.read(_with_mirror(stack, Mirror(artifacts=filled.artifacts)))
        assert f"{catalogue.PIPELINES.content} is expected of {catalogue.PIPELINES.url}" in str(error.value)


class TestKustomize:
    FILES: Mapping[str, bytes] = {"a/kustomization.yaml": b"resources: [missing.yaml]\n"}

    def test_the_digest_is_that_of_gos_modules(self) -> None:
        # `h1` of one file `go.mod` with this text, as sum.golang.org has it of github.com/pkg/errors v0.8.0/go.mod.
        text = b"module github.com/pkg/errors\n"
        assert kustomize.digest({"go.mod": text}) == "h1:bwawxfHBFNV+L2hUp1rHADufV3IMtnDRdf1r5NINEl0="

    def test_an_overlay_that_is_not_there(self) -> None:
        with pytest.raises(KustomizeError, match=r"there is no b/kustomization\.yaml"):
            kustomize.render(self.FILES, "b")

    @needs_kustomize
    def test_kustomizes_own_words_are_told(self) -> None:
        with pytest.raises(KustomizeError, match=r"missing\.yaml"):
            kustomize.render(self.FILES, "a")

    @pytest.mark.parametrize(
        ("there", "command"),
        [
            ({"kustomize", "kubectl"}, ["kustomize", "build"]),
            ({"kubectl"}, ["kubectl", "kustomize"]),
        ],
    )
    def test_kustomize_comes_before_kubectl_and_has_five_minutes(
        self, there: set[str], command: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[list[str], float]] = []

        def run(words: list[str], *, timeout: float, **_: object) -> None:
            asked.append((words, timeout))
            raise subprocess.TimeoutExpired(words, timeout)

        monkeypatch.setattr(kustomize.shutil, "which", lambda name: name if name in there else None)
        monkeypatch.setattr(kustomize.subprocess, "run", run)
        with pytest.raises(KustomizeError, match=f"^`{' '.join(command)}` cannot be run: .* timed out after 300 sec"):
            kustomize.render(self.FILES, "a")
        ((words, timeout),) = asked
        assert (words[:2], Path(words[2]).name, timeout) == (command, "a", 300)

    def test_of_its_words_the_last_ones_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(words, 1, "", "a" * 3000 + "\n")

        monkeypatch.setattr(kustomize.shutil, "which", lambda name: name)
        monkeypatch.setattr(kustomize.subprocess, "run", run)
        with pytest.raises(KustomizeError) as error:
            kustomize.render(self.FILES, "a")
        assert str(error.value) == "`kustomize build` failed: " + "a" * 2000

    def test_without_a_program_that_renders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: None)
        with pytest.raises(KustomizeError, match="neither kustomize nor kubectl is installed"):
            kustomize.render(self.FILES, "a")

    @needs_kustomize
    def test_a_file_outside_of_the_archives_folder_is_not_written(self) -> None:
        with pytest.raises(KustomizeError, match="outside of its folder"):
            kustomize.render({**self.FILES, "../../escape": b""}, "a")


class TestNeighbours:
    def test_teams_beside_it_are_told_whom_they_trust(self, filled: Mirror, kubeconfig: Path) -> None:
        def said(**sections: Any) -> list[str]:
            warnings = loaded({**shipped(), "samples": {}, **sections}, filled, kubeconfig).warnings
            return [text for text in warnings if "can read and write the Secrets of all namespaces" in text]

        (warning,) = said(mlops={"enabled": True})
        assert warning.startswith("mlbatch:mlops.enabled is true on a cluster with teams")
        assert said() == []
        assert said(mlops={"enabled": True}, teams=[]) == []

    def test_a_newer_kubernetes_is_said(self, filled: Mirror, kubeconfig: Path) -> None:
        said = "upstream has not tested it there"
        assert any(said in warning for warning in loaded(config(), filled, kubeconfig).warnings)
        old = loaded(config(), filled, kubeconfig, version="1.26")
        assert not any(said in warning for warning in old.warnings)


def test_the_stub_is_of_the_commit_of_the_catalogue_and_says_that_it_is_one() -> None:
    assert (catalogue.MLOPS.name, catalogue.MLOPS.commit) == (stub.NAME, stub.COMMIT)
    assert (catalogue.PIPELINES.name, catalogue.PIPELINES.commit) == stub.PIPELINES
    assert kustomize.digest(stub.files()) != catalogue.MLOPS.content
    workload = {"metadata": {"annotations": {"emulator/stub-of": stub.SOURCE}}}
    assert emulated.report([workload]) == (
        "OSS MLOps platform\n"
        "  its 1 Deployments run no programs: their pods are simulated\n"
        "  a stub: its objects have names only, definitions without validation, webhooks without calls: "
        f"{stub.SOURCE}"
    )
    assert emulated.report([]) == ""


def test_an_archive_that_somebody_has_put_there_stays(tmp_path: Path) -> None:
    file = tmp_path / f"{stub.NAME}-{stub.COMMIT}.tar.gz"
    emulated.fill(tmp_path)
    made = file.read_bytes()
    os.utime(file, (0, 0))
    emulated.fill(tmp_path)
    assert (file.read_bytes(), file.stat().st_mtime > 0) == (made, True)
    real = archive.pack("oss", {"deployment/envs/kubeflow/kustomization.yaml": b""})
    file.write_bytes(real)
    os.utime(file, (0, 0))
    emulated.fill(tmp_path)
    assert file.read_bytes() == real


def _with_mirror(stack: StackInputs[Any], mirror: Mirror) -> StackInputs[Any]:
    return replace(stack, mirror=mirror)
