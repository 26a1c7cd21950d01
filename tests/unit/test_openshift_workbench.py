"""The workbench on target `openshift`: beside teams that share the nodes, and what the rest of the settings owes it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.artifacts import Mirror
from components.workloads import logs
from stacks.config import secrets
from stacks.config.secrets import OBJECT_STORE_SECRET_KEY as SECRET_KEY
from stacks.layers.jobs import documents
from stacks.validation import objects
from tests.unit.harness import Record
from tests.unit.test_object_names import judged
from tests.unit.test_openshift import WORKERS, loaded, refused, registered, shipped, worker
from tests.unit.test_openshift_ai import chosen, job

EXTERNAL = {"kind": "external", "endpoint": "https://s3.example.org", "accessKey": "AKIA"}


def wanted(sections: Mapping[str, Any] = {}, **values: Any) -> dict[str, Any]:
    """Return the example with a workbench, which OpenShift AI runs."""
    return {**chosen(version="2.16"), "workbench": {"enabled": True, **values}, **sections}


@pytest.fixture(scope="module")
def record(mirror: Mirror, same_kubeconfig: Path) -> Record:
    return registered(loaded(wanted(rayClusters=["raytest"]), mirror, same_kubeconfig))


class TestStack:
    def test_ray_clusters_wait_until_kueue_knows_them(self, record: Record) -> None:
        """Seed 003, 10.2: there somebody deletes Kueue's pod until it finds them."""
        before = record.closure(record.one("RayCluster", "raytest"))
        assert {job(record, "start-kueue").urn, record.one("DataScienceCluster", "mlbatch-dsc").urn} <= set(before)

    @pytest.mark.parametrize("protect", [True, False])
    def test_its_volumes_are_protected_like_those_of_teams(
        self, protect: bool, mirror: Mirror, kubeconfig: Path
    ) -> None:
        found = registered(loaded(wanted({"tenancy": {"protect": protect}}), mirror, kubeconfig))
        claims = {each.object_name: each.protect for each in found.of("PersistentVolumeClaim")}
        assert claims == {"demo-workbench": protect, "seaweedfs": protect}

    def test_without_teams_of_the_platforms_the_flavor_is_its_own(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = wanted({"tenancy": {"enabled": False}, "teams": [], "samples": {}})
        record = registered(loaded(raw, mirror, kubeconfig))
        assert [item.object_name for item in record.of("ResourceFlavor")] == ["default-flavor"]
        assert [item.object_name for item in record.of("ClusterQueue")] == ["cluster-queue"]

    def test_a_version_of_the_notebook_that_came_later(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = wanted(version="2025.1")
        raw["openshift"]["version"] = "2.25"
        record = registered(loaded(raw, mirror, kubeconfig))
        (server,) = record.one("Notebook", "demo-workbench").inputs["spec"]["template"]["spec"]["containers"]
        assert server["image"].endswith("/s2i-generic-data-science-notebook:2025.1")

    def test_an_external_stores_secret_key_is_a_secret_of_the_stack(self, mirror: Mirror, kubeconfig: Path) -> None:
        stack = loaded({**wanted(objectStore=EXTERNAL), SECRET_KEY: secrets.Concealed.SECRET}, mirror, kubeconfig)
        record = registered(replace(stack, secrets={SECRET_KEY: pulumi.Output.secret("correct-horse")}))
        connection = record.one("Secret", "aws-connection-minio", "sandbox")
        assert connection.inputs["data"]["AWS_SECRET_ACCESS_KEY"] == "Y29ycmVjdC1ob3JzZQ=="
        assert "data" in connection.secrets
        assert "seaweedfs" not in {item.object_name for item in record.of("Namespace")}

    def test_what_is_named_after_it_is_planned(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = wanted()
        stack = loaded(raw, mirror, kubeconfig)
        made = {item.name for item in registered(stack).resources if item.type.endswith("RandomPassword")}
        planned = {item.name for item in objects.planned(judged(raw, stack)) if item.kind == "RandomPassword"}
        assert made == planned == {"demo-workbench-access-key", "demo-workbench-secret-key"}


class TestMistakes:
    @pytest.mark.parametrize(
        ("raw", "said"),
        [
            (
                wanted(objectStore=EXTERNAL),
                ('mlbatch:workbench.objectStore.kind = "external"', "pulumi config set --secret mlbatch:" + SECRET_KEY),
            ),
            (
                {**wanted(), SECRET_KEY: secrets.Concealed.SECRET},
                (f"mlbatch:{SECRET_KEY}", "creates its keys itself", f"pulumi config rm mlbatch:{SECRET_KEY}"),
            ),
            (
                {**wanted(objectStore=EXTERNAL), SECRET_KEY: secrets.Concealed.EMPTY},
                (f"mlbatch:{SECRET_KEY}", "this secret is empty"),
            ),
        ],
        ids=lambda value: value[0] if isinstance(value, tuple) else "",
    )
    def test_one_message_each(
        self, raw: dict[str, Any], said: tuple[str, ...], mirror: Mirror, kubeconfig: Path
    ) -> None:
        text = refused(raw, mirror, kubeconfig)
        for words in said:
            assert words in text


LAB = {"enabled": True, "scratch": False, "submission": {"team": "blue"}}
TRAINING = {"enabled": True, "nodes": 2, "submission": {"team": "blue"}}


class TestUsersOfOpenShift:
    """`restricted-v2` gives each namespace its own users, and rejects all others."""

    def test_jupyterlab_names_no_user(self, mirror: Mirror, kubeconfig: Path) -> None:
        record = registered(loaded({**shipped(), "workloads": {"jupyterlab": LAB}}, mirror, kubeconfig))
        wrapper = record.one("AppWrapper", "jupyterlab", "blue").inputs["spec"]["components"][0]["template"]
        context = wrapper["spec"]["template"]["spec"]["securityContext"]
        assert context.keys() == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}

    def test_nor_do_viewers(self) -> None:
        aim = logs.LogViewerArgs(namespace="blue", logs="logs", image="aim:1", user=None)
        board = logs.LogViewerArgs(namespace="blue", logs="logs", image="tensorboard:1", user=None)
        for deployment, _ in (logs.aim("aim", aim), logs.tensorboard("tensorboard", board)):
            context = deployment["spec"]["template"]["spec"]["securityContext"]
            assert context.keys() == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}

    @pytest.mark.parametrize("workload", ["jupyterlab", "pretraining"])
    def test_memory_that_is_pinned_is_refused(self, workload: str, mirror: Mirror, kubeconfig: Path) -> None:
        """`restricted-v2` lets no container add IPC_LOCK, so that its pods would never be made."""
        raw = {**shipped(), "workloads": {workload: LAB if workload == "jupyterlab" else TRAINING}}
        raw["queueing"] = {**raw.get("queueing", {}), "trainingOperator": {"enabled": True}}
        nodes = tuple(worker(name, **{"nvidia.com/roce_gdr": "1"}) for name in WORKERS)
        assert loaded(raw, mirror, kubeconfig, nodes=nodes)
        raw["cluster"]["pool"]["rdma"] = {"perNode": 1}
        text = refused(raw, mirror, kubeconfig, nodes=nodes)
        assert f"mlbatch:workloads.{workload}.enabled = true" in text
        assert "IPC_LOCK to use nvidia.com/roce_gdr" in text

    def test_a_printed_job_is_what_the_stack_itself_would_submit(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "workloads": {"vllm": {"enabled": True, "submission": {"team": "blue"}}}}
        stack = loaded(raw, mirror, kubeconfig)
        printed = {document["kind"]: document for document in documents(stack, "vllm")}
        claim, wrapper = printed["PersistentVolumeClaim"], printed["AppWrapper"]
        assert claim["spec"]["storageClassName"] == "nfs-client-pokprod"
        job = wrapper["spec"]["components"][0]["template"]
        assert "runAsUser" not in job["spec"]["template"]["spec"]["securityContext"]
        record = registered(stack)
        assert record.one("PersistentVolumeClaim", claim["metadata"]["name"], "blue").inputs["spec"] == claim["spec"]
        made = record.one("AppWrapper", wrapper["metadata"]["name"], "blue").inputs["spec"]
        assert made == wrapper["spec"]

    def test_without_the_servers_class_shared_files_are_of_the_default(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**shipped(), "nfs": {}, "workloads": {"vllm": {"enabled": True, "submission": {"team": "blue"}}}}
        printed = documents(loaded(raw, mirror, kubeconfig), "vllm")
        (claim,) = [document for document in printed if document["kind"] == "PersistentVolumeClaim"]
        assert "storageClassName" not in claim["spec"]
