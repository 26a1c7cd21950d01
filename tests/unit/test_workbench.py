"""The workbench of OpenShift AI: its objects against the guide that the demo follows, and the program that clones."""

from __future__ import annotations

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
from components.kubernetes.node_pool import GPU_TOLERATION, NodePool
from components.kubernetes.placement import NodeGroup, Placement
from components.kubernetes.security import PodSecurity
from components.workbench import access, authority, notebook, ray_job
from components.workbench.ray_cluster import DEMOS
from stacks.layers import workbench
from stacks.settings.machines import MACHINES
from stacks.settings.workbench import WorkbenchSettings
from tests.unit.conftest import ROOT
from tests.unit.harness import Record, build, strings

NAMES = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:sandbox"}


def made(
    *,
    flavor: str | None = None,
    secret_key: str | None = None,
    pod_security: PodSecurity = PodSecurity.STANDARDS,
    **values: Any,
) -> Record:
    """Return the layer's registrations for some settings."""
    settings = WorkbenchSettings.model_validate_json(json.dumps({"enabled": True, **values}))

    def program() -> None:
        cluster = Cluster(
            provider=kubernetes.Provider("cluster", kubeconfig="{}"),
            pools=[NodePool(count=3, shape=MACHINES["h100-sxm5-8x"].shape())],
            placement=Placement(
                system=NodeGroup(node_selector={"node-role": "infra"}), gpus=NodeGroup(tolerations=[GPU_TOLERATION])
            ),
            storage=StorageClasses(block="lab-block"),
            pod_security=pod_security,
        )
        workbench.install(settings, cluster, Mirror(), flavor=flavor, secret_key=secret_key)

    def outputs(kind: str, name: str, inputs: Any) -> dict[str, Any]:
        return {"result": f"made-up-{name}"} if kind.endswith("RandomPassword") else {}

    return build(program, outputs=outputs)


@pytest.fixture(scope="module")
def safe() -> Record:
    return made()


MUCH = {"cpu": 100, "memory": "200Gi", "gpus": 20}
GUIDE = {
    "editForGroup": True,
    "objectStore": {"kind": "minio", "guideCredentials": True, "tls": False},
    "queue": {"openToAll": True},
}


@pytest.fixture(scope="module")
def guide() -> Record:
    """The complete example of the guide."""
    return made(**GUIDE)


def decoded(record: Record, name: str) -> dict[str, str]:
    data = record.one("Secret", name).inputs["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


class TestAgainstTheGuide:
    """Seed 003, "10. Demo - Distributed Workloads", with its steps 0 to 9."""

    def test_every_account_of_the_project_may_edit_it(self, guide: Record) -> None:
        binding = guide.one("RoleBinding", "sa-edit", "sandbox").inputs
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "edit",
        }
        assert binding["subjects"] == [NAMES]

    def test_the_data_connection(self, guide: Record) -> None:
        secret = guide.one("Secret", "aws-connection-minio", "sandbox")
        assert secret.inputs["type"] == "Opaque"
        assert secret.inputs["metadata"]["labels"] == {
            "opendatahub.io/dashboard": "true",
            "opendatahub.io/managed": "true",
        }
        assert secret.inputs["metadata"]["annotations"] == {
            "opendatahub.io/connection-type": "s3",
            "openshift.io/display-name": "minio",
        }
        assert "data" in secret.secrets
        assert decoded(guide, "aws-connection-minio") == {
            "AWS_ACCESS_KEY_ID": "rootuser",
            "AWS_SECRET_ACCESS_KEY": "rootuser123",
            "AWS_S3_ENDPOINT": "http://minio.minio.svc:9000",
        }

    def test_the_store_takes_the_same_credentials(self, guide: Record) -> None:
        assert decoded(guide, "minio") == {"MINIO_ROOT_USER": "rootuser", "MINIO_ROOT_PASSWORD": "rootuser123"}
        (server,) = guide.one("Deployment", "minio").inputs["spec"]["template"]["spec"]["containers"]
        assert server["image"] == catalogue.MINIO.reference
        assert server["envFrom"] == [{"secretRef": {"name": "minio"}}]

    def test_the_queue(self, guide: Record) -> None:
        flavor = guide.one("ResourceFlavor", "default-flavor").inputs
        assert flavor["spec"]["tolerations"] == [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        ]
        made = guide.one("ClusterQueue", "cluster-queue").inputs["spec"]
        assert made["namespaceSelector"] == {}
        assert made["resourceGroups"] == [
            {
                "coveredResources": ["cpu", "memory", "nvidia.com/gpu"],
                "flavors": [
                    {
                        "name": "default-flavor",
                        "resources": [
                            {"name": "cpu", "nominalQuota": "9"},
                            {"name": "memory", "nominalQuota": "36Gi"},
                            {"name": "nvidia.com/gpu", "nominalQuota": "5"},
                        ],
                    }
                ],
            }
        ]
        own = guide.one("LocalQueue", "local-queue-test", "sandbox").inputs
        assert own["spec"] == {"clusterQueue": "cluster-queue"}
        assert own["metadata"]["annotations"] == {"kueue.x-k8s.io/default-queue": "true"}


class TestSafeForm:
    def test_the_notebooks_account_alone_may_make_ray_clusters(self, safe: Record) -> None:
        (binding,) = safe.of("RoleBinding")
        assert binding.inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": "demo-workbench", "namespace": "sandbox"}
        ]
        assert binding.inputs["roleRef"]["kind"] == "Role"
        rules = safe.one("Role", "workbench", "sandbox").inputs["rules"]
        secrets = [rule["verbs"] for rule in rules if "secrets" in rule["resources"]]
        assert secrets == [["get", "list"]], "codeflare-sdk finds a cluster's certificate by its label"
        assert not [rule for rule in rules if "pods/exec" in rule["resources"] or "*" in rule["verbs"]]
        assert access.ROLE == "workbench"

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

    def test_a_restart_loses_nothing(self, safe: Record) -> None:
        pod = safe.one("Deployment", "seaweedfs").inputs["spec"]["template"]["spec"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "seaweedfs"}} in pod["volumes"]
        assert safe.one("PersistentVolumeClaim", "seaweedfs").inputs["spec"]["storageClassName"] == "lab-block"

    def test_the_store_is_no_root_and_reached_by_the_project_alone(self, safe: Record) -> None:
        pod = safe.one("Deployment", "seaweedfs").inputs["spec"]["template"]["spec"]
        assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
        assert pod["nodeSelector"] == {"node-role": "infra"}
        (server,) = pod["containers"]
        assert server["image"] == catalogue.SEAWEEDFS.reference
        assert server["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        policy = safe.one("NetworkPolicy", "seaweedfs").inputs["spec"]
        assert policy == {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "sandbox"}}}],
                    "ports": [{"port": 8333, "protocol": "TCP"}],
                }
            ],
        }

    def test_the_queue_is_the_projects_own(self, safe: Record) -> None:
        made = safe.one("ClusterQueue", "cluster-queue").inputs["spec"]
        assert made["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "sandbox"}}


class TestStoreByTls:
    """Others can neither read nor change the traffic to the store. Seed 003 has `http://minio.minio.svc:9000`."""

    def test_the_cluster_makes_the_certificate_that_the_store_serves_by(self, safe: Record) -> None:
        service = safe.one("Service", "seaweedfs")
        asked = service.inputs["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
        server = safe.one("Deployment", "seaweedfs")
        pod = server.inputs["spec"]["template"]["spec"]
        assert {"name": "certificate", "secret": {"secretName": asked}} in pod["volumes"]
        (container,) = pod["containers"]
        assert {"name": "certificate", "mountPath": "/etc/certificate", "readOnly": True} in container["volumeMounts"]
        assert container["command"][-2:] == [
            "-s3.cert.file=/etc/certificate/tls.crt",
            "-s3.key.file=/etc/certificate/tls.key",
        ]
        assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
        assert service.urn in server.dependencies

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

    def test_the_guides_form(self, guide: Record) -> None:
        assert guide.of("ConfigMap") == []
        annotations = guide.one("Service", "minio").inputs["metadata"]["annotations"]
        assert "service.beta.openshift.io/serving-cert-secret-name" not in annotations
        pod = guide.one("Deployment", "minio").inputs["spec"]["template"]["spec"]
        assert pod["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTP"
        assert {each["name"] for each in pod["volumes"]} == {"data"}
        notebook = guide.one("Notebook", "demo-workbench").inputs["spec"]["template"]["spec"]
        assert [each["name"] for each in notebook["initContainers"]] == ["demos"]


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


def test_a_flavor_that_there_is_is_used() -> None:
    record = made(flavor="the-platforms")
    assert record.of("ResourceFlavor") == []
    (group,) = record.one("ClusterQueue", "cluster-queue").inputs["spec"]["resourceGroups"]
    assert group["flavors"][0]["name"] == "the-platforms"


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


def test_the_clusters_of_the_demos_are_the_notebooks_own(guide: Record) -> None:
    """Seed 003, 10.2: as the four notebooks at the pinned commit configure them."""
    record = made(rayClusters=["raytest", "jobtest", "interactivetest", "tunecluster"], queue=MUCH)
    found = {}
    for item in record.of("RayCluster"):
        assert item.inputs["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "local-queue-test"}
        spec = item.inputs["spec"]
        (workers,) = spec["workerGroupSpecs"]
        assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"]
        nodes = [spec["headGroupSpec"], workers]
        resources = [node["template"]["spec"]["containers"][0]["resources"] for node in nodes]
        started = [int(node["rayStartParams"]["num-gpus"]) for node in nodes]
        assert started == [int(each["requests"].get("nvidia.com/gpu", "0")) for each in resources]
        found[item.object_name] = (
            *(resources[0]["requests"][name] for name in ("cpu", "memory")),
            started[0],
            workers["replicas"],
            resources[1]["requests"]["cpu"],
            resources[1]["limits"]["cpu"],
            resources[1]["limits"]["memory"],
            started[1],
        )
        assert all(each["requests"]["memory"] == each["limits"]["memory"] for each in resources)
        assert spec["rayVersion"] == "2.23.0"
        assert record.one("LocalQueue", "local-queue-test").urn in item.dependencies
    assert found == {
        "raytest": ("500m", "2G", 0, 2, "250m", "1", "4G", 0),
        "jobtest": ("1", "4G", 1, 2, "250m", "1", "4G", 1),
        "interactivetest": ("1", "6G", 1, 2, "250m", "1", "6G", 1),
        "tunecluster": ("1", "6G", 1, 4, "1", "2", "6G", 1),
    }
    assert guide.of("RayCluster") == []


def test_the_projects_own_pods_alone_reach_ray_and_its_heads_alone(safe: Record) -> None:
    """Policies only add permissions. This one allows no more than those of OpenShift AI."""
    policy = safe.one("NetworkPolicy", "ray-clusters", "sandbox").inputs["spec"]
    ports = [{"port": 8265, "protocol": "TCP"}, {"port": 10001, "protocol": "TCP"}]
    assert policy == {
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}], "ports": ports}],
    }


def test_the_clusters_have_the_python_that_a_notebooks_is_held_to() -> None:
    assert f"-py{catalogue.RAY_PYTHON.replace('.', '')}-" in catalogue.RAY.reference


def test_rays_pods_are_no_root_and_ask_for_gpus_by_the_clusters_name() -> None:
    (cluster,) = made(rayClusters=["jobtest"]).of("RayCluster")
    pod = cluster.inputs["spec"]["headGroupSpec"]["template"]["spec"]
    (workers,) = cluster.inputs["spec"]["workerGroupSpecs"]
    (head,) = pod["containers"]
    assert head["image"] == catalogue.RAY.reference
    assert head["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert pod["securityContext"]["runAsUser"] == 1000
    assert workers["template"]["spec"]["automountServiceAccountToken"] is False
    assert "automountServiceAccountToken" not in pod, "the sign-in that OpenShift AI puts there has nothing else"
    assert {port["name"]: port["containerPort"] for port in head["ports"]} == {
        "gcs": 6379,
        "dashboard": 8265,
        "client": 10001,
    }


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


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert made(enabled=False).objects() == []


def test_where_the_cluster_gives_users_no_number_is_said() -> None:
    record = made(pod_security=PodSecurity.SCC, rayClusters=["raytest"])
    store = record.one("Deployment", "seaweedfs").inputs["spec"]["template"]["spec"]
    (workers,) = record.one("RayCluster", "raytest").inputs["spec"]["workerGroupSpecs"]
    for pod in (store, workers["template"]["spec"]):
        assert pod["securityContext"].keys() == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


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
