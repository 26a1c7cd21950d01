"""Ways of packing: the components that each installs, its effect on jobs, and settings that exclude it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue, names
from components.artifacts import Mirror, Release
from components.compatibility import SCHEDULER_PLUGINS_KUBERNETES
from components.kubernetes.placement import ANYWHERE
from components.scheduling import coscheduling
from components.scheduling.coscheduling import Coscheduling, CoschedulingArgs
from components.scheduling.pod_group import in_group, pod_group
from components.scheduling.topology import TopologyArgs, topology
from components.tenancy.flavor import FlavorArgs, resource_flavor
from components.workloads import gang, submission
from components.workloads.gang import GangArgs
from components.workloads.submission import Submission, SubmissionMode
from stacks.deploy import deploy
from stacks.layers.jobs import Jobs
from stacks.settings.submission import SubmissionSettings
from tests.unit import test_existing
from tests.unit.configurations import aks, errors_of, partial_of
from tests.unit.harness import Record, build, on_cluster
from tests.unit.test_stack import dev, stack_of

JOB: Mapping[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"parallelism": 2, "template": {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": []}}},
}


@pytest.fixture(scope="module")
def args(scheduler_releases: Sequence[Release]) -> CoschedulingArgs:
    return CoschedulingArgs(releases=scheduler_releases)


@pytest.fixture(scope="module")
def record(args: CoschedulingArgs) -> Record:
    return on_cluster(lambda opts: Coscheduling("coscheduling", args, opts))


def profile(args: CoschedulingArgs) -> Mapping[str, Any]:
    (only,) = coscheduling.configuration(args)["profiles"]
    return dict(only)


def arguments(args: CoschedulingArgs, plugin: str) -> Mapping[str, Any]:
    return next(dict(item["args"]) for item in profile(args)["pluginConfig"] if item["name"] == plugin)


class TestCoscheduling:
    def test_the_gpus_are_counted_as_the_cluster_offers_them(self, args: CoschedulingArgs) -> None:
        other = replace(args, gpu_resource="lab.example/gpu")
        assert arguments(other, "NodeResourcesFit")["scoringStrategy"]["resources"][0]["name"] == "lab.example/gpu"

    def test_the_scheduler_reads_the_configuration_and_starts_anew_with_another(self, args: CoschedulingArgs) -> None:
        document = coscheduling.scheduler(args)
        pod = document["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        mounted = container["volumeMounts"][0]["mountPath"]
        assert container["args"][0] == f"--config={mounted}/scheduler-config.yaml"
        changed = coscheduling.scheduler(replace(args, permit_seconds=10))
        assert changed["spec"]["template"]["metadata"]["annotations"] != pod["metadata"]["annotations"]

    def test_it_runs_before_somebody_asks_for_it(self, record: Record) -> None:
        deployments = record.of("Deployment")
        assert {item.object_name for item in deployments} == {coscheduling.SCHEDULER, coscheduling.CONTROLLER}
        kinds = ("CustomResourceDefinition", "ClusterRoleBinding", "ConfigMap")
        needed = {item.urn for kind in kinds for item in record.of(kind)}
        for item in deployments:
            assert needed <= record.closure(item)


class TestGangs:
    def test_the_pods_of_a_queued_job_are_a_group(self) -> None:
        queued = Submission(mode=SubmissionMode.MLBATCH, namespace="blue", has_pod_groups=True)
        (wrapper,) = submission.submitted("train", queued, dict(JOB))
        service, group, job = (component["template"] for component in wrapper["spec"]["components"])
        assert service["kind"] == "Service"
        assert (group["kind"], group["metadata"]["name"], group["spec"]) == ("PodGroup", "train", {"minMember": 2})
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert labels == {"app": "train", "scheduling.x-k8s.io/pod-group": "train"}

    @pytest.mark.parametrize(
        "plain",
        [
            Submission(mode=SubmissionMode.MLBATCH, namespace="blue"),
            Submission(mode=SubmissionMode.NONE, namespace="workloads", has_pod_groups=True),
        ],
    )
    def test_without_the_scheduler_or_a_queue_there_is_no_group(self, plain: Submission) -> None:
        assert "PodGroup" not in str(submission.submitted("train", plain, dict(JOB)))
        assert "pod-group" not in str(submission.submitted("train", plain, dict(JOB)))

    def test_a_single_pod_is_one_where_no_other_pod_is_placed(self) -> None:
        """Sakkara's way; scheduling by coscheduling leaves a pod without a group to the scheduler's other plugins."""
        single = {**JOB, "spec": {**JOB["spec"]}}
        del single["spec"]["parallelism"]
        queued = Submission(mode=SubmissionMode.MLBATCH, namespace="blue", has_pod_groups=True)
        wrapper = submission.submitted_alone("infer", replace(queued, groups_alone=True), single)
        group, job = (component["template"] for component in wrapper["spec"]["components"])
        assert (group["metadata"]["name"], group["spec"]) == ("infer", {"minMember": 1})
        assert job["spec"]["template"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "infer"
        (alone,) = submission.submitted_alone("infer", queued, single)["spec"]["components"]
        assert alone["template"] == single

    def test_the_sample_is_one_too(self) -> None:
        args = GangArgs(
            namespace="blue",
            pods=3,
            requests={},
            seconds=60,
            priority_class=names.DEFAULT_PRIORITY,
            image="busybox",
            has_pod_groups=True,
        )
        group, job = (item["template"] for item in gang.app_wrapper("sample", args)["spec"]["components"])
        assert group == pod_group("sample", 3)
        assert job["spec"]["template"]["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": "sample"}

    def test_a_job_is_not_changed_by_it(self) -> None:
        before = yaml.safe_dump(JOB)
        in_group("train", dict(JOB))
        assert yaml.safe_dump(JOB) == before


class TestTopology:
    def test_a_flavor_of_other_nodes_has_another_name(self) -> None:
        args = FlavorArgs(nodes={"pool": "gpu"}, topology="nodes")
        first, second = resource_flavor(args), resource_flavor(replace(args, nodes={"pool": "new"}))
        assert first["spec"] == {"nodeLabels": {"pool": "gpu"}, "topologyName": "nodes"}
        assert len({first["metadata"]["name"], second["metadata"]["name"], names.FLAVOR}) == 3

    def test_other_levels_have_another_name(self) -> None:
        """Kueue refuses a change of the levels of a Topology, and of the Topology of a flavor."""
        plain, racks = TopologyArgs(), TopologyArgs(levels=("zone", "rack"))
        assert [level["nodeLabel"] for level in topology(racks)["spec"]["levels"]] == ["zone", "rack", names.HOST]
        assert plain.name == "nodes" != racks.name != TopologyArgs(levels=("rack",)).name
        flavors = [resource_flavor(FlavorArgs(topology=each.name, levels=each.levels)) for each in (plain, racks)]
        assert [flavor["spec"]["topologyName"] for flavor in flavors] == [plain.name, racks.name]
        assert len({flavor["metadata"]["name"] for flavor in flavors}) == 2

    def test_a_gang_prefers_one_part_of_the_network(self) -> None:
        sent = Submission(mode=SubmissionMode.MLBATCH, namespace="blue", near="rack")
        (wrapper,) = submission.submitted("train", sent, dict(JOB))
        metadata = wrapper["spec"]["components"][-1]["template"]["spec"]["template"]["metadata"]
        assert metadata["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "rack"}

    def test_jobs_of_the_stack_name_its_narrowest_level(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**dev(), "scheduling": {"packing": "topology", "topology": {"levels": ["zone", "rack"]}}}
        made = Jobs(stack_of(raw, mirror, kubeconfig), ANYWHERE, names.GPU)
        assert made.submission(SubmissionSettings(), "blue").near == "rack"

    def test_train_jobs_prefer_it_too(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**dev(), "scheduling": {"packing": "topology", "topology": {"levels": ["zone", "rack"]}}}
        record = build(lambda: deploy(stack_of(raw, mirror, kubeconfig)))
        for runtime in record.of("ClusterTrainingRuntime"):
            (node,) = runtime.inputs["spec"]["template"]["spec"]["replicatedJobs"]
            metadata = node["template"]["spec"]["template"]["metadata"]
            assert metadata["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "rack"}

    def test_a_level_that_one_node_lacks_is_warned_of(self, mirror: Mirror, kubeconfig: Path) -> None:
        raw = {**test_existing.shipped(), "scheduling": {"packing": "topology", "topology": {"levels": ["rack"]}}}
        first, *others = test_existing.NODES
        nodes = (replace(first, labels={**first.labels, "rack": "r1"}), *others)
        said = [text for text in test_existing.loaded(raw, mirror, kubeconfig, nodes).warnings if "rack" in text]
        assert said == [
            "mlbatch:scheduling.topology.levels[0]: these GPU nodes lack the label rack: b, c; Kueue does not use them"
        ]

    def test_without_one_the_flavor_keeps_its_name(self) -> None:
        assert resource_flavor(FlavorArgs(nodes={"pool": "gpu"}))["metadata"]["name"] == names.FLAVOR


class TestSettings:
    def test_every_version_says_what_it_goes_with(self) -> None:
        assert set(catalogue.versions(catalogue.SCHEDULER_PLUGINS)) == set(SCHEDULER_PLUGINS_KUBERNETES)

    @pytest.mark.parametrize(
        ("kubernetes", "version"),
        [
            *(("1.29", "v0.29.7"), ("1.30", "v0.29.7"), ("1.31", "v0.31.8"), ("1.32", "v0.31.8"), ("1.33", "v0.33.5")),
            *(("1.34", "v0.34.7"), ("1.35", "v0.34.7"), ("1.36", "v0.35.7")),
        ],
    )
    def test_a_cluster_gets_the_scheduler_that_goes_with_it(self, kubernetes: str, version: str) -> None:
        raw = aks({"kubernetesVersion": kubernetes}, scheduling={"packing": "coscheduling"})
        assert partial_of(raw).scheduler_version == version
        assert [error for error in errors_of(raw) if error.path == ("scheduling", "schedulerVersion")] == []
