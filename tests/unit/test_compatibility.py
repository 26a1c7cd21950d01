"""The table of compatible versions, row by row, and how the settings use it."""

import json
from typing import Any

import pytest

from components import catalogue
from components.azure.compatibility import identity_fault
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
    values = {"gpu_operator": "v26.3.3", "network_operator": "26.1.0", "driver": "580.126.20", "kubernetes": "1.35"}
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
        gpu=f"Tesla-{row.gpus[0]}-PCIE-16GB" if row.gpus else "",
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

    @pytest.mark.parametrize("product", ["Tesla-P100-PCIE-16GB", "Tesla-V100-SXM2-32GB", "NVIDIA-A100-PCIE-40GB"])
    def test_the_newest_operator_is_refused_on_gpus_that_its_validator_cannot_use(self, product: str) -> None:
        found = assess(combination(gpu_operator="v26.7.0", driver=None, gpu=product))
        assert (found.verdict is Verdict.BROKEN) == ("A100" not in product)

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
        assert "26.1.2" in found.fix


class TestGpuRules:
    def problems(self, value: dict[str, Any], version: str = "1.35", **more: Any) -> list[ConfigError]:
        found = errors_of(aks({"kubernetesVersion": version}, gpu=value, **more))
        return [error for error in found if error.path[0] not in ("azure", "scheduling")]

    def test_the_defaults_are_fine_and_warn_of_nothing(self) -> None:
        assert self.problems({}) == []
        assert rules.warnings(partial_of(aks())) == []

    def test_nothing_is_said_while_a_section_could_not_be_read(self) -> None:
        unread = aks({"location": 5}, gpu={"operatorVersion": "v26.3.2"})
        assert [error.path[0] for error in errors_of(unread)] == ["azure"]


VOLUME = {"name": "data", "container": "olmo"}


class TestStorageRules:
    def problems(self, value: dict[str, Any], token: bool = False, **more: Any) -> list[ConfigError]:
        return errors_of(aks(storage=value, **more), *(["blobSasToken"] if token else []))

    def test_sas_with_a_token_is_fine(self) -> None:
        assert self.problems({"volumes": [{**VOLUME, "access": "sas"}]}, token=True) == []

    @pytest.mark.parametrize(("driver", "works"), [("v1.24.1", False), ("1.27.7", False), ("1.27.8", True)])
    def test_a_driver_that_loses_the_mounts_of_an_identity_is_not_taken(self, driver: str, works: bool) -> None:
        assert (identity_fault(driver) is None) is works


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


def wrong(section: str, value: dict[str, Any]) -> ConfigError:
    """Return the one problem of a section, in a configuration of target aks."""
    _, problems = read({"target": "aks", section: value})
    (problem,) = (problem for problem in problems if problem.path[0] == section)
    return problem


class TestSettings:
    def test_disks_are_formatted_only_where_somebody_says_which(self) -> None:
        scratch = AksGpuSettings.model_validate_json('{"nvmeScratch": {"filesystem": "xfs"}}').nvme_scratch
        assert (scratch.enabled, scratch.disk_model) == (True, "Microsoft NVMe Direct Disk( v2)?")
        problem = wrong("gpu", {"nvmeScratch": {"diskModel": "disk["}})
        assert problem.path == ("gpu", "nvmeScratch", "diskModel")
        (error,) = ScratchSettings(enabled=True).check(("gpu", "nvmeScratch"))
        assert error.path == ("gpu", "nvmeScratch", "diskModel")
        assert list(ScratchSettings().check(("gpu", "nvmeScratch"))) == []

    @pytest.mark.parametrize("folder", ["/pv-disks/scratch", "/mnt/k8s-disks/0", "/mnt/nvme_raid.1"])
    def test_the_disks_may_be_mounted_where_the_pool_has_them(self, folder: str) -> None:
        assert gpu({"nvmeScratch": {"folder": folder}}).nvme_scratch.folder == folder

    @pytest.mark.parametrize("version", ["580.126.20", "535.86.10", "610.57.04", "570.133"])
    def test_versions_that_nvidia_has_published_are_taken(self, version: str) -> None:
        assert gpu({"driverVersion": version}).driver == version

    def test_without_one_the_driver_is_the_operators_own(self) -> None:
        assert gpu({}).driver == "580.126.20"
        assert gpu({"operatorVersion": "v26.7.0"}).driver == "595.91.07"
