"""The workbench of OpenShift AI: credentials, certificates, the demos as jobs, and the program that clones them.

The snapshots of `openshift-everything` and `openshift-demos` show the other fields.
"""

import base64
import json
import ssl
import subprocess
import sys
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import certifi
import pulumi_kubernetes as kubernetes
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from components import catalogue
from components.artifacts import Mirror
from components.catalogue import Repository
from components.kubernetes.cluster import Cluster, StorageClasses
from components.kubernetes.node_pool import NodePool
from components.kubernetes.placement import Placement
from components.workbench import authority, notebook, ray_job
from components.workbench.ray_cluster import DEMOS
from stacks.layers import workbench
from stacks.settings.machines import MACHINES
from stacks.settings.workbench import WorkbenchSettings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build, strings
from tests.unit.test_review_revisions import git


def made(*, secret_key: str | None = None, **values: Any) -> Record:
    """Return the layer's registrations for some settings."""
    settings = WorkbenchSettings.model_validate_json(json.dumps({"enabled": True, **values}))

    def program() -> None:
        cluster = Cluster(
            provider=kubernetes.Provider("cluster", kubeconfig="{}"),
            pools=[NodePool(count=3, shape=MACHINES["h100-sxm5-8x"].shape())],
            placement=Placement(),
            storage=StorageClasses(block="lab-block"),
        )
        workbench.install(settings, cluster, Mirror(), flavor=None, secret_key=secret_key)

    def outputs(kind: str, name: str, inputs: Any) -> dict[str, Any]:
        return {"result": f"made-up-{name}"} if kind.endswith("RandomPassword") else {}

    return build(program, outputs=outputs)


@pytest.fixture(scope="module")
def safe() -> Record:
    return made()


MUCH = {"cpu": 100, "memory": "200Gi", "gpus": 20}


def decoded(record: Record, name: str) -> dict[str, str]:
    data = record.one("Secret", name).inputs["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


class TestSafeForm:
    def test_credentials_are_made_up_and_stand_in_secrets_alone(self, safe: Record) -> None:
        made_up = {item.name for item in safe.resources if item.type.endswith("RandomPassword")}
        assert made_up == {"demo-workbench-access-key", "demo-workbench-secret-key"}
        (file,) = decoded(safe, "seaweedfs").values()
        (identity,) = json.loads(file)["identities"]
        connection = decoded(safe, "aws-connection-minio")
        assert identity["credentials"] == [
            {"accessKey": connection["AWS_ACCESS_KEY_ID"], "secretKey": connection["AWS_SECRET_ACCESS_KEY"]}
        ]
        assert connection["AWS_S3_ENDPOINT"] == "https://seaweedfs.seaweedfs.svc:8333"
        for name in ("seaweedfs", "aws-connection-minio"):
            assert "data" in safe.one("Secret", name).secrets
        said = [text for item in safe.objects() if item.kind != "Secret" for text in strings(item.inputs)]
        assert not [text for text in said if "rootuser" in text or connection["AWS_SECRET_ACCESS_KEY"] in text]


class TestStoreByTls:
    """Others can neither read nor change the traffic to the store. Seed 003 has `http://minio.minio.svc:9000`."""

    def test_minio_reads_it_under_names_of_its_own(self) -> None:
        record = made(objectStore={"kind": "minio"})
        pod = record.one("Deployment", "minio").inputs["spec"]["template"]["spec"]
        (volume,) = [each for each in pod["volumes"] if each["name"] == "certificate"]
        assert volume["secret"]["items"] == [
            {"key": "tls.crt", "path": "public.crt"},
            {"key": "tls.key", "path": "private.key"},
        ]
        assert pod["containers"][0]["command"][-1] == "--certs-dir=/etc/certificate"
        assert decoded(record, "aws-connection-minio")["AWS_S3_ENDPOINT"] == "https://minio.minio.svc:9000"

    def test_all_that_reach_it_trust_it_and_wait_for_its_authority(self) -> None:
        record = made(rayClusters=["raytest"], rayJobs=["interactivetest"], queue=MUCH)
        given = record.one("ConfigMap", "object-store-authority", "sandbox")
        assert given.inputs["metadata"]["annotations"]["service.beta.openshift.io/inject-cabundle"] == "true"
        assert "data" not in given.inputs, "the cluster fills it"
        notebook, cluster = record.one("Notebook", "demo-workbench"), record.one("RayCluster", "raytest")
        job = record.one("RayJob", "interactivetest")
        rays = [cluster.inputs["spec"], job.inputs["spec"]["rayClusterSpec"]]
        pods = [
            each["template"]["spec"] for spec in rays for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"])
        ]
        for variable, pod in (
            ("AWS_CA_BUNDLE", notebook.inputs["spec"]["template"]["spec"]),
            *(("SSL_CERT_FILE", pod) for pod in pods),
        ):
            main, bundler = pod["containers"][0], pod["initContainers"][-1]
            assert {"name": variable, "value": "/etc/object-store/ca-bundle.crt"} in main["env"]
            assert bundler["command"][-2:] == ["/etc/authority/service-ca.crt", "/etc/object-store/ca-bundle.crt"]
            assert bundler["image"] == main["image"]
            (volume,) = [each["configMap"] for each in pod["volumes"] if each["name"] == "authority"]
            assert (volume["name"], volume["items"][0]["key"]) == ("object-store-authority", "service-ca.crt")
            for container in (main, bundler):
                mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
                assert mounted["authorities"] == "/etc/object-store"
        assert all(given.urn in item.dependencies for item in (notebook, cluster, job))

    def test_its_bundle_holds_the_cluster_and_the_public_authorities(self, tmp_path: Path) -> None:
        """The file of the init container, as Python and Arrow read it."""
        own, bundle = tmp_path / "service-ca.crt", tmp_path / "ca-bundle.crt"
        own.write_text(made_authority())
        subprocess.run([sys.executable, "-c", authority.PROGRAM, str(own), str(bundle)], check=True)
        found = [ssl.create_default_context(cafile=path).get_ca_certs() for path in (certifi.where(), str(bundle))]
        assert [each["subject"] for each in found[1] if each not in found[0]] == [
            ((("commonName", "service-signer"),),)
        ]
        assert len(found[1]) == len(found[0]) + 1


def made_authority() -> str:
    """Return a certificate that may sign others."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service-signer")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(day).not_valid_after(day + timedelta(days=3650))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def test_everything_stands_before_the_notebook(safe: Record) -> None:
    server = safe.one("Notebook", "demo-workbench")
    for kind, name in (
        ("Secret", "aws-connection-minio"),
        ("PersistentVolumeClaim", "demo-workbench"),
        ("LocalQueue", "local-queue-test"),
        ("RoleBinding", "workbench"),
    ):
        assert safe.one(kind, name).urn in server.dependencies, kind
    (whole,) = [item for item in safe.resources if item.type == "mlbatch:workbench:Workbench"]
    assert {safe.one(kind, "seaweedfs").urn for kind in ("Deployment", "Service")} <= whole.dependencies
    assert safe.one("ClusterQueue", "cluster-queue").urn in safe.one("LocalQueue", "local-queue-test").dependencies


def test_a_store_of_the_sites_own() -> None:
    own = {
        "kind": "external",
        "endpoint": "https://s3.example.org",
        "accessKey": "AKIA",
        "region": "eu",
        "bucket": "models",
    }
    record = made(secret_key="correct-horse", objectStore=own)
    assert [item.object_name for item in record.of("Namespace")] == ["sandbox"]
    assert decoded(record, "aws-connection-minio") == {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "correct-horse",
        "AWS_S3_ENDPOINT": "https://s3.example.org",
        "AWS_DEFAULT_REGION": "eu",
        "AWS_S3_BUCKET": "models",
    }
    assert "data" in record.one("Secret", "aws-connection-minio").secrets
    with pytest.raises(Exception, match="needs its secret key"):
        made(objectStore=own)


def test_the_clusters_have_the_python_that_a_notebooks_is_held_to() -> None:
    assert f"-py{catalogue.RAY_PYTHON.replace('.', '')}-" in catalogue.RAY.reference


@pytest.fixture(scope="module")
def jobs() -> Record:
    return made(rayJobs=["jobtest", "interactivetest", "tunecluster"])


class TestJobs:
    """The demos of seed 003, 10.2, each as a job on its own cluster."""

    def test_each_runs_its_program_on_the_notebooks_cluster_in_the_queue(self, jobs: Record) -> None:
        alone = {item.object_name: item for name in DEMOS for item in made(rayClusters=[name], queue=MUCH).objects()}
        for item in jobs.of("RayJob"):
            name, spec = item.object_name, item.inputs["spec"]
            assert item.inputs["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "local-queue-test"}
            assert spec["entrypoint"] == f"python -m {ray_job.PROGRAMS[name].module} --gpu"
            assert (spec["submissionMode"], spec["shutdownAfterJobFinishes"]) == ("HTTPMode", True)
            assert json.loads(spec["runtimeEnvYAML"]) == {"pip": list(catalogue.DEMO_PACKAGES[name])}
            cluster, notebooks = spec["rayClusterSpec"], alone[name].inputs["spec"]
            assert resources_of(cluster) == resources_of(notebooks)
            assert (cluster["rayVersion"], notebooks["rayVersion"]) == ("2.35.0", "2.23.0")
        assert {item.object_name for item in jobs.of("RayJob")} == set(ray_job.PROGRAMS)

    def test_its_pods_see_the_program_and_the_object_store(self, jobs: Record) -> None:
        for item in jobs.of("RayJob"):
            program = jobs.one("ConfigMap", f"{item.object_name}-program", "sandbox")
            assert program.urn in item.dependencies
            for pod in pods_of(item.inputs["spec"]["rayClusterSpec"]):
                (container,) = pod["containers"]
                assert container["envFrom"] == [{"secretRef": {"name": "aws-connection-minio"}}]
                assert {"name": "PYTHONPATH", "value": "/etc/mlbatch"} in container["env"]
                (given,) = [each["configMap"] for each in pod["volumes"] if program.object_name in strings(each)]
                paths = {entry["key"]: entry["path"] for entry in given["items"]}
                assert paths.keys() == program.inputs["data"].keys()
                module = ray_job.PROGRAMS[item.object_name].module.replace(".", "/")
                assert f"{module}.py" in paths.values()

    def test_one_that_has_changed_is_submitted_anew(self, jobs: Record) -> None:
        assert {item.replace_on_changes for item in jobs.of("RayJob")} == {("spec",)}

    def test_the_packages_that_are_tried_are_those_of_the_jobs(self) -> None:
        """`make training` installs what Ray installs for them."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        wanted = {package for packages in catalogue.DEMO_PACKAGES.values() for package in packages}
        assert wanted <= set(project["dependency-groups"]["training"])
        assert catalogue.DEMO_PACKAGES.keys() == ray_job.PROGRAMS.keys()


def pods_of(cluster: Any) -> list[Any]:
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def resources_of(cluster: Any) -> list[Any]:
    return [pod["containers"][0]["resources"] for pod in pods_of(cluster)]


@pytest.fixture
def demos(tmp_path: Path) -> Repository:
    """A repository with two commits; the first is the one that is wanted."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for text in ("first", "second"):
        (folder / "demo.ipynb").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", text)
    commit = git(folder, "rev-parse", "HEAD~1")
    return Repository(name="codeflare-sdk", url=folder.as_uri(), commit=commit, source="")


def clone(demos: Repository, files: Path) -> subprocess.CompletedProcess[str]:
    files.mkdir(exist_ok=True)
    script = notebook.clone_script(demos, str(files))
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True)


def test_the_demos_are_cloned_at_their_commit(demos: Repository, tmp_path: Path) -> None:
    assert clone(demos, tmp_path / "files").returncode == 0
    assert (tmp_path / "files" / "codeflare-sdk" / "demo.ipynb").read_text() == "first"
    assert git(tmp_path / "files" / "codeflare-sdk", "rev-parse", "HEAD") == demos.commit


def test_what_the_user_has_changed_stays(demos: Repository, tmp_path: Path) -> None:
    clone(demos, tmp_path / "files")
    changed = tmp_path / "files" / "codeflare-sdk" / "demo.ipynb"
    changed.write_text("mine")
    assert clone(demos, tmp_path / "files").returncode == 0
    assert changed.read_text() == "mine"
    assert {each.name for each in changed.parent.iterdir()} == {".git", "demo.ipynb"}, "no second clone is put into it"


def test_a_clone_that_was_cut_off_is_begun_anew(demos: Repository, tmp_path: Path) -> None:
    half = tmp_path / "files" / ".demos"
    half.mkdir(parents=True)
    (half / "left").write_text("over")
    assert clone(demos, tmp_path / "files").returncode == 0
    assert not (tmp_path / "files" / "codeflare-sdk" / "left").exists()
    assert not half.exists()


def test_demos_that_cannot_be_had_do_not_keep_the_notebook_from_starting(demos: Repository, tmp_path: Path) -> None:
    done = clone(replace(demos, commit="0" * 40), tmp_path / "files")
    assert done.returncode == 0
    assert "by hand" in done.stderr
    assert list((tmp_path / "files").iterdir()) == []
