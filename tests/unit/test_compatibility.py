"""What is known of versions that go together, row by row, and what the settings make of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components import catalogue
from components.azure.compatibility import blobfuse_fault, identity_fault
from components.compatibility import ROWS, Combination, Row, Verdict, assess
from stacks.config import secrets
from stacks.config.errors import ConfigError
from stacks.config.exposure import exposed
from stacks.config.parsing import read
from stacks.settings.gpu import GpuSettings, ScratchSettings
from stacks.targets.aks.settings import AksGpuSettings
from stacks.validation import rules
from tests.unit.configurations import aks, errors_of, partial_of

TOKEN = "sv=2024-11-04&sr=c&sp=rl&se=2026-12-01&sig=c2VjcmV0"


def combination(**changes: Any) -> Combination:
    values = {
        "gpu_operator": "v26.3.3",
        "network_operator": "26.1.0",
        "driver": "580.126.20",
        "kubernetes": "1.35",
    }
    return Combination(**{**values, **changes})


def example(row: Row) -> Combination:
    """Return a combination that a row is about."""
    kubernetes = "1.34"
    if row.kubernetes is not None:
        last = int(row.kubernetes[1].partition(".")[2])
        kubernetes = f"1.{last + 1 if row.outside else last}"
    return Combination(
        gpu_operator=row.gpu_operators[0] if row.gpu_operators else "v26.3.3",
        network_operator=row.network_operators[0] if row.network_operators else None,
        driver=row.drivers[0] if row.drivers else "580.126.20",
        kubernetes=kubernetes,
    )


def gpu(value: dict[str, Any]) -> GpuSettings:
    return GpuSettings.model_validate_json(json.dumps(value))


class TestRows:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.verdict}-{row.source[-40:]}")
    def test_each_row_decides_what_it_is_about(self, row: Row) -> None:
        assert assess(example(row)).verdict is row.verdict

    @pytest.mark.parametrize("row", ROWS)
    def test_each_row_has_a_source_and_a_broken_one_says_what_to_change(self, row: Row) -> None:
        assert row.source.startswith("https://")
        assert bool(row.reason and row.fix) == (row.verdict is Verdict.BROKEN)

    def test_the_catalogues_first_versions_are_known_to_work(self) -> None:
        operator = catalogue.chart_versions("gpu-operator")[0]
        default = combination(
            gpu_operator=operator,
            network_operator=catalogue.chart_versions("network-operator")[0],
            driver=catalogue.GPU_DRIVERS[operator],
        )
        assert assess(default).verdict is Verdict.WORKS

    def test_a_patch_of_kubernetes_counts_as_its_minor_version(self) -> None:
        assert assess(combination(kubernetes="1.35.6")).verdict is Verdict.WORKS

    def test_without_infiniband_the_network_operator_does_not_matter(self) -> None:
        assert assess(combination(network_operator=None)).verdict is Verdict.WORKS
        assert assess(combination(network_operator=None, kubernetes="1.36")).verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(("version", "verdict"), [("1.24.0", "works"), ("1.31.4", "works"), ("1.34", "broken")])
    def test_the_older_operator_is_known_on_the_kubernetes_of_its_time_and_with_the_nodes_own_driver(
        self, version: str, verdict: str
    ) -> None:
        older = {"gpu_operator": "v24.9.0", "network_operator": None, "kubernetes": version}
        assert assess(combination(**older, driver="550.127.05")).verdict == verdict
        assert assess(combination(**older, driver=None)).verdict == verdict
        other = assess(combination(**older, driver="580.126.20")).verdict
        assert other == ("broken" if verdict == "broken" else "unknown")

    def test_a_driver_that_no_source_names_is_unknown(self) -> None:
        found = assess(combination(driver="535.86.10"))
        assert found.verdict is Verdict.UNKNOWN
        assert "driver 580.126.20" in found.fix

    def test_a_row_that_says_broken_outweighs_one_that_says_works(self) -> None:
        found = assess(combination(gpu_operator="v26.3.2", network_operator="26.4.0"))
        assert found.verdict is Verdict.BROKEN
        assert "RDMA" in found.reason
        assert "26.1.0" in found.fix


class TestGpuRules:
    def problems(self, value: dict[str, Any], version: str = "1.35", **more: Any) -> list[ConfigError]:
        found = errors_of(aks({"kubernetesVersion": version}, gpu=value, **more))
        return [error for error in found if error.path[0] not in ("azure", "scheduling")]

    def test_the_defaults_are_fine_and_warn_of_nothing(self) -> None:
        assert self.problems({}) == []
        assert rules.warnings(partial_of(aks())) == []

    def test_a_broken_pair_is_an_error_with_what_to_change(self) -> None:
        value = {"operatorVersion": "v26.3.2", "fabric": {"operatorVersion": "26.4.0"}}
        (problem,) = self.problems(value)
        assert problem.path == ("gpu", "operatorVersion")
        assert problem.value == "v26.3.2"
        assert "does not support RDMA" in problem.message
        assert "cloud-native-stack" in problem.expected
        assert problem.hint == "set gpu.fabric.operatorVersion to 26.1.0, and gpu.operatorVersion to v26.3.3"

    def test_the_version_of_a_driver_that_nobody_installs_is_an_error(self) -> None:
        (problem,) = gpu({"installDriver": False, "driverVersion": "535.247.01"}).check(("gpu",))
        assert problem.path == ("gpu", "driverVersion")
        assert problem.message == "the nodes come with their driver, and nobody would install this one"

    @pytest.mark.parametrize("key", ["installDriver", "installToolkit"])
    def test_nodes_that_the_stack_makes_on_azure_come_with_nothing(self, key: str) -> None:
        (problem,) = self.problems({key: False})
        assert problem.path == ("gpu", key)
        assert problem.expected == "true on nodes that the stack makes"

    def test_a_kubernetes_that_the_network_operator_does_not_know_is_an_error(self) -> None:
        (problem,) = self.problems({}, "1.36")
        assert "1.31 to 1.35" in problem.message
        assert self.problems({"fabric": {"enabled": False}}, "1.36") == []

    def test_an_unknown_pair_is_a_warning_and_no_error(self) -> None:
        value = {"fabric": {"operatorVersion": "26.4.0"}}
        assert self.problems(value) == []
        (warning,) = rules.warnings(partial_of(aks(gpu=value)))
        assert "network operator 26.4.0" in warning
        assert "known to work: GPU operator v26.3.3 with network operator 26.1.0 or 26.1.2" in warning

    def test_another_infiniband_driver_than_the_operators_own_is_a_warning(self) -> None:
        value = {"fabric": {"driverVersion": "doca3.2.0-25.10-1.2.8.0-2"}}
        assert self.problems(value) == []
        (warning,) = rules.warnings(partial_of(aks(gpu=value)))
        assert "released with driver doca3.3.0-26.01-1.0.0.0-0" in warning
        assert "remove mlbatch:gpu.fabric.driverVersion" in warning
        assert rules.warnings(partial_of(aks(gpu={"fabric": {"driverVersion": "doca3.3.0-26.01-1.0.0.0-0"}}))) == []
        (warning,) = rules.warnings(partial_of(aks(gpu={"fabric": {**value["fabric"], "enabled": False}})))
        assert "mlbatch:gpu.fabric.enabled is false, so that these do nothing: driverVersion" in warning

    @pytest.mark.parametrize("version", ["latest", "26.1.0", "doca3.3.0-26.01-1.0.0.0-0-ubuntu22.04-amd64", "5.8"])
    def test_what_is_no_version_of_the_infiniband_driver_is_refused(self, version: str) -> None:
        (problem,) = self.problems({"fabric": {"driverVersion": version}})
        assert (problem.path, problem.value) == (("gpu", "fabric", "driverVersion"), version)
        assert "doca3.3.0-26.01-1.0.0.0-0" in problem.expected

    @pytest.mark.parametrize("version", ["24.10-0.7.0.0-0", "doca3.1.0-25.07-0.9.7.0-0"])
    def test_the_versions_that_nvidia_released_are_taken(self, version: str) -> None:
        assert self.problems({"fabric": {"driverVersion": version}}) == []

    def test_nothing_is_said_while_a_section_could_not_be_read(self) -> None:
        unread = aks({"location": 5}, gpu={"operatorVersion": "v26.3.2"})
        assert [error.path[0] for error in errors_of(unread)] == ["azure"]

    @pytest.mark.parametrize("fabric", [{"devicePlugin": "shared"}, {"enabled": False}])
    def test_a_quota_for_ports_that_no_node_offers_is_an_error(self, fabric: dict[str, Any]) -> None:
        quota = {"cpu": 90, "memory": "1000G", "nvidia.com/gpu": 8, "nvidia.com/mlnxnics": 8}
        team = {"name": "blue", "users": [], "quota": quota}
        (problem,) = self.problems({"fabric": fabric}, teams=[team])
        assert problem.path == ("teams", 0, "quota", "nvidia.com/mlnxnics")
        assert problem.value == 8
        assert self.problems({}, teams=[team]) == []


VOLUME = {"name": "data", "container": "olmo"}


class TestStorageRules:
    def problems(self, value: dict[str, Any], token: bool = False, **more: Any) -> list[ConfigError]:
        return errors_of(aks(storage=value, **more), *(["blobSasToken"] if token else []))

    def test_a_volume_by_identity_is_fine(self) -> None:
        assert self.problems({"volumes": [VOLUME]}) == []

    def test_sas_without_a_token_is_an_error(self) -> None:
        (problem,) = self.problems({"volumes": [{**VOLUME, "access": "sas"}]})
        assert problem.path == ("storage", "volumes", 0, "access")
        assert "pulumi config set --secret mlbatch:blobSasToken" in problem.hint

    def test_a_token_that_nothing_uses_is_an_error(self) -> None:
        (problem,) = self.problems({"volumes": [VOLUME]}, token=True)
        assert problem.path == ("blobSasToken",)
        assert "pulumi config rm mlbatch:blobSasToken" in problem.hint

    def test_sas_with_a_token_is_fine(self) -> None:
        assert self.problems({"volumes": [{**VOLUME, "access": "sas"}]}, token=True) == []

    def test_the_stacks_own_account_has_to_exist(self) -> None:
        (problem,) = self.problems({"volumes": [VOLUME]}, azure={"storage": None})
        assert problem.path == ("storage", "volumes", 0, "account")
        named = {**VOLUME, "account": "mlbatchdata"}
        assert self.problems({"volumes": [named]}, azure={"storage": None}) == []

    def test_two_volumes_of_a_name_clash(self) -> None:
        teams = [{"name": "blue", "users": [], "share": 1}]
        (problem,) = self.problems({"volumes": [VOLUME, {**VOLUME, "namespace": "blue"}]}, teams=teams)
        assert problem.path == ("storage", "volumes", 1, "name")
        assert self.problems({"volumes": [VOLUME, {**VOLUME, "name": "more"}]}) == []

    def test_a_claim_needs_a_namespace_of_the_stack(self) -> None:
        value = {"volumes": [{**VOLUME, "namespace": "bleu"}]}
        sections: dict[str, Any] = {"teams": [{"name": "blue", "users": [], "share": 1}]}
        (problem,) = self.problems(value, **sections)
        assert problem.path == ("storage", "volumes", 0, "namespace")
        assert (problem.value, problem.hint) == ("bleu", "did you mean blue?")
        for namespace in ("workloads", "blue"):
            assert self.problems({"volumes": [{**VOLUME, "namespace": namespace}]}, **sections) == []

    def test_an_identity_with_a_longer_name_than_azure_takes_is_an_error(self) -> None:
        team, cluster = "t" * 63, "c" * 63
        value = {"volumes": [{**VOLUME, "access": "workloadIdentity", "namespace": team}]}
        sections = {"teams": [{"name": team, "users": [], "share": 1}], "gpu": {"fabric": {"enabled": False}}}
        problems = errors_of({**aks(storage=value, **sections), "azure": {**aks()["azure"], "clusterName": cluster}})
        (problem,) = [each for each in problems if each.path[0] == "storage"]
        assert problem.path == ("storage", "volumes", 0, "access")
        assert f"{cluster}-in-{team}, which is 130 characters long" in problem.message
        assert problem.expected == "a name of at most 128 characters"

    def test_a_driver_that_cannot_mount_as_a_namespaces_identity_is_an_error(self) -> None:
        value = {"volumes": [{**VOLUME, "access": "workloadIdentity"}]}
        assert self.problems(value) == []
        (problem,) = self.problems({**value, "blobDriver": {"version": "v1.24.1", "blobfuse": None}})
        assert (problem.path, problem.value) == (("storage", "volumes", 0, "access"), "workloadIdentity")
        assert problem.hint == "set storage.blobDriver.version to 1.27.9, or access to managedIdentity"

    def test_a_blobfuse_that_cannot_be_installed_is_an_error(self) -> None:
        driver = {"version": "v1.24.1", "blobfuse": "2.5.0"}
        (problem,) = self.problems({"volumes": [VOLUME], "blobDriver": driver})
        assert problem.path == ("storage", "blobDriver", "blobfuse")
        assert problem.value == "2.5.0"
        assert "1.27.9" in problem.hint
        assert self.problems({"volumes": [VOLUME], "blobDriver": {**driver, "blobfuse": None}}) == []
        assert blobfuse_fault("1.27.9", "2.5.0") is None

    @pytest.mark.parametrize(("driver", "works"), [("v1.24.1", False), ("1.27.7", False), ("1.27.8", True)])
    def test_a_driver_that_loses_the_mounts_of_an_identity_is_not_taken(self, driver: str, works: bool) -> None:
        assert (identity_fault(driver) is None) is works

    @pytest.mark.parametrize("driver", ["v1.24.1", "1.27.9"])
    def test_a_blobfuse_that_mounts_nothing_after_a_crash_is_an_error(self, driver: str) -> None:
        (problem,) = self.problems({"volumes": [VOLUME], "blobDriver": {"version": driver, "blobfuse": "2.4.2"}})
        assert problem.path == ("storage", "blobDriver", "blobfuse")
        assert "after a crash" in problem.message
        assert problem.hint == "set storage.blobDriver.blobfuse to 2.5.4, or to null to use the nodes' own"


class TestTokens:
    @pytest.mark.parametrize(
        "text",
        [
            TOKEN,
            f"?{TOKEN}",
            f"https://mlbatchdata.blob.core.windows.net/olmo?{TOKEN}",
            "sig=abc%3D&se=2026-12-01T00%3A00%3A00Z&sp=rwld",
        ],
    )
    def test_a_token_is_recognised(self, text: str) -> None:
        assert secrets.looks_like_sas(text)

    @pytest.mark.parametrize("text", ["", "olmo", "sig=only", "sv=1", "design=1&se=2", "registry.io/x?sigma=1&sv=2"])
    def test_other_texts_are_not_taken_for_one(self, text: str) -> None:
        assert not secrets.looks_like_sas(text)

    def test_each_is_reported_with_its_key_and_without_itself(self) -> None:
        raw = {"storage": {"volumes": [{"container": f"olmo?{TOKEN}"}]}, "target": "aks", "note": TOKEN}
        problems = list(exposed(raw))
        assert [problem.path for problem in problems] == [("storage", "volumes", 0, "container"), ("note",)]
        for problem in problems:
            assert "c2VjcmV0" not in str(problem)
            assert "pulumi config set --secret mlbatch:blobSasToken" in problem.hint


class TestMonitoringRules:
    def test_a_volume_that_is_full_at_once_is_an_error(self) -> None:
        (problem,) = errors_of(aks(monitoring={"storage": "5Gi"}))
        assert problem.path == ("monitoring", "storage")
        assert problem.value == "5Gi"
        assert errors_of(aks(monitoring={"storage": "5Gi", "enabled": False})) == []


def wrong(section: str, value: dict[str, Any]) -> ConfigError:
    """Return the one problem of a section, in a configuration of target aks."""
    _, problems = read({"target": "aks", section: value})
    (problem,) = (problem for problem in problems if problem.path[0] == section)
    return problem


class TestSettings:
    @pytest.mark.parametrize(
        ("section", "value", "path", "allowed"),
        [
            ("gpu", {"operatorVersion": "v23.9.1"}, ("operatorVersion",), "v26.3.3, v26.7.0, v26.3.2, v24.9.0"),
            ("gpu", {"fabric": {"operatorVersion": "24.7.0"}}, ("fabric", "operatorVersion"), "26.1.0, 26.1.2, 26.4.0"),
            ("gpu", {"fabric": {"devicePlugin": "hostdev"}}, ("fabric", "devicePlugin"), "sriov, shared"),
            ("gpu", {"featureDiscoveryVersion": "0.16.0"}, ("featureDiscoveryVersion",), "0.18.3"),
            ("gpu", {"nvmeScratch": {"filesystem": "btrfs"}}, ("nvmeScratch", "filesystem"), "ext4, xfs"),
            ("storage", {"blobDriver": {"version": "1.24.1"}}, ("blobDriver", "version"), "1.27.9, v1.24.1"),
            ("storage", {"files": {"reclaim": "Recycle"}}, ("files", "reclaim"), "Retain, Delete"),
            (
                "storage",
                {"volumes": [{**VOLUME, "access": "key"}]},
                ("volumes", 0, "access"),
                "managedIdentity, workloadIdentity, sas",
            ),
            ("monitoring", {"version": "70.0.3"}, ("version",), "88.6.1"),
        ],
    )
    def test_a_word_that_is_not_known_is_refused_with_those_that_are(
        self, section: str, value: dict[str, Any], path: tuple[str | int, ...], allowed: str
    ) -> None:
        problem = wrong(section, value)
        assert problem.path == (section, *path)
        assert problem.expected == allowed

    def test_disks_are_formatted_only_where_somebody_says_which(self) -> None:
        scratch = AksGpuSettings.model_validate_json('{"nvmeScratch": {"filesystem": "xfs"}}').nvme_scratch
        assert (scratch.enabled, scratch.disk_model) == (True, "Microsoft NVMe Direct Disk( v2)?")
        problem = wrong("gpu", {"nvmeScratch": {"diskModel": "disk["}})
        assert problem.path == ("gpu", "nvmeScratch", "diskModel")
        (error,) = ScratchSettings(enabled=True).check(("gpu", "nvmeScratch"))
        assert error.path == ("gpu", "nvmeScratch", "diskModel")
        assert list(ScratchSettings().check(("gpu", "nvmeScratch"))) == []

    @pytest.mark.parametrize(
        "folder",
        ["/", "/etc", "/var/lib/kubelet", "/mnt", "/pv-disks/", "/pv-disks/../etc", "/mnt//nvme", "/mnt/nvme/", "nvme"],
    )
    def test_a_scratch_folder_outside_of_the_pools_disks_is_refused(self, folder: str) -> None:
        problem = wrong("gpu", {"nvmeScratch": {"folder": folder}})
        assert (problem.path, problem.value) == (("gpu", "nvmeScratch", "folder"), folder)
        assert "outside of the pool's scratch disks" in problem.message
        assert problem.expected.startswith("a folder below /pv-disks or /mnt")

    @pytest.mark.parametrize("folder", ["/pv-disks/scratch", "/mnt/k8s-disks/0", "/mnt/nvme_raid.1"])
    def test_the_disks_may_be_mounted_where_the_pool_has_them(self, folder: str) -> None:
        assert gpu({"nvmeScratch": {"folder": folder}}).nvme_scratch.folder == folder

    @pytest.mark.parametrize("version", ["latest", "580", "580.126.20-ubuntu22.04", "v580.126.20", "58.1.1"])
    def test_a_driver_has_the_form_of_nvidias_versions(self, version: str) -> None:
        problem = wrong("gpu", {"driverVersion": version})
        assert (problem.path, problem.value) == (("gpu", "driverVersion"), version)
        assert problem.message == "this is no version of NVIDIA's data center driver"

    @pytest.mark.parametrize("version", ["580.126.20", "535.86.10", "610.57.04", "570.133"])
    def test_versions_that_nvidia_has_published_are_taken(self, version: str) -> None:
        assert gpu({"driverVersion": version}).driver == version

    def test_without_one_the_driver_is_the_operators_own(self) -> None:
        assert gpu({}).driver == "580.126.20"
        assert gpu({"operatorVersion": "v26.7.0"}).driver == "595.91.07"

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            ({"account": "MLBatch"}, "account"),
            ({"account": "ab"}, "account"),
            ({"container": "a--b"}, "container"),
            ({"container": "-abc"}, "container"),
            ({"name": "OLMo data"}, "name"),
            ({"blockKib": 2}, "blockKib"),
        ],
    )
    def test_a_volumes_names_are_those_that_azure_and_kubernetes_take(self, change: dict[str, Any], path: str) -> None:
        assert wrong("storage", {"volumes": [{**VOLUME, **change}]}).path == ("storage", "volumes", 0, path)

    @pytest.mark.parametrize("days", [0, 366])
    def test_metrics_are_kept_for_a_year_at_most(self, days: int) -> None:
        assert wrong("monitoring", {"retentionDays": days}).expected == "a whole number from 1 to 365"

    def test_a_token_in_a_volume_is_no_key(self) -> None:
        problem = wrong("storage", {"volumes": [{**VOLUME, "sasToken": "sv=1&sig=2"}]})
        assert problem.path == ("storage", "volumes", 0, "sasToken")
