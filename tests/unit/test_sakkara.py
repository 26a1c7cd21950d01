"""Sakkara in place of coscheduling: the objects of upstream's chart, the topology as it reads it, and errors.

Seed 002: MLBatch's guide for a cluster (`setup.k8s/CLUSTER-SETUP.md`), "Sakkara". Values of the chart and topology:
`tools/sakkara-deploy/sakkara-scheduler` of project-codeflare/mlbatch; `kep/4986-kep-sakkara` of scheduler-plugins.
"""

from pathlib import Path
from typing import Any

import yaml

from components.artifacts import Mirror
from tests.unit.test_openshift import WORKERS, loaded, registered, shipped

RACKS = [{"name": "rack-0", "members": [*WORKERS[:2]]}, {"name": "rack-1", "members": [WORKERS[2]]}]


def with_sakkara(**sakkara: Any) -> dict[str, Any]:
    return {**shipped(), "scheduling": {"packing": "sakkara", **({"sakkara": sakkara} if sakkara else {})}}


class TestInstalled:
    def test_batch_inference_is_a_group_of_one_pod_which_it_would_not_place_otherwise(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        workloads = {"vllm": {"enabled": True, "submission": {"team": "blue"}}}
        record = registered(loaded({**with_sakkara(), "workloads": workloads}, mirror, kubeconfig))
        parts = record.one("AppWrapper", "batch-inference", "blue").inputs["spec"]["components"]
        group, job = (part["template"] for part in parts)
        assert (group["kind"], group["spec"]) == ("PodGroup", {"minMember": 1})
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert labels["scheduling.x-k8s.io/pod-group"] == group["metadata"]["name"]


class TestTopology:
    def test_blocks_of_racks_in_any_order(self, mirror: Mirror, kubeconfig: Path) -> None:
        groups = [*RACKS, {"name": "block", "members": ["rack-1", "rack-0"]}]
        raw = with_sakkara(levels=["block", "rack", "node"], groups=groups)
        topology = loaded(raw, mirror, kubeconfig).settings.scheduling.sakkara.topology()
        assert topology.tree == {"block": {"rack-1": {WORKERS[2]: {}}, "rack-0": {WORKERS[0]: {}, WORKERS[1]: {}}}}

    def test_without_one_there_is_no_config_map(self, mirror: Mirror, kubeconfig: Path) -> None:
        record = registered(loaded(with_sakkara(), mirror, kubeconfig))
        assert not [item for item in record.of("ConfigMap") if item.object_name == "cluster-topology"]


class TestChoice:
    def test_how_long_gangs_hold_places_is_a_setting(self, mirror: Mirror, kubeconfig: Path) -> None:
        """The guide's permitWaitingTimeSeconds is the default."""
        for given, expected in ({}, 300), ({"permitSeconds": 60}, 60):
            raw = {**shipped(), "scheduling": {"packing": "coscheduling", "coscheduling": given}}
            record = registered(loaded(raw, mirror, kubeconfig))
            text = record.one("ConfigMap", "scheduler-config").inputs["data"]["scheduler-config.yaml"]
            (profile,) = yaml.safe_load(text)["profiles"]
            assert {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": expected}} in profile["pluginConfig"]

    def test_what_is_known_against_it_is_said(self, mirror: Mirror, kubeconfig: Path) -> None:
        newer = loaded(with_sakkara(), mirror, kubeconfig, version="1.34").warnings
        assert any("made for Kubernetes 1.29 to 1.30, and this cluster has 1.34" in text for text in newer)
        assert any("of any team" in text for text in newer)
        older = loaded(with_sakkara(), mirror, kubeconfig, version="1.30").warnings
        assert not any("made for Kubernetes" in text for text in older if "Sakkara" in text)
        assert not any("Sakkara" in text for text in loaded(shipped(), mirror, kubeconfig).warnings)
