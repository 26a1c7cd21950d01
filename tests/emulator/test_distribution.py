"""A stack's file selects the distribution of its local cluster."""

from pathlib import Path

import pytest

from emulator.distribution import has_job_operators, has_older_kueue, parts, require_brought
from emulator.toolchain import JOB_OPERATORS, KUBERNETES_1_34, needs
from runner.engine import EngineError

ROOT = Path(__file__).parents[2]
RULES = "- {setting: 'mlbatch:target', value: openshift, distribution: openshift}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "distributions.yaml").write_text(RULES)
    return tmp_path


def test_a_stacks_target_selects_the_distribution(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {'mlbatch:target': openshift}\n")
    (root / "Pulumi.dev.yaml").write_text("config: {'mlbatch:target': simulated}\n")
    (root / "Pulumi.empty.yaml").write_text("")
    assert parts(root, "site")["openshift"]
    assert not parts(root, "dev")["openshift"]
    assert not parts(root, "empty")["openshift"]
    assert not parts(root, "none-of-ours")["openshift"]


def test_a_setting_selects_operators_from_a_catalog(root: Path) -> None:
    rule = "- {setting: 'mlbatch:openshift.operators', value: openshift-ai, distribution: openshift-operator-hub}\n"
    (root / "local" / "distributions.yaml").write_text(rule + RULES)
    (root / "Pulumi.site.yaml").write_text("config: {'mlbatch:target': openshift}\n")
    (root / "Pulumi.ai.yaml").write_text(
        "config: {'mlbatch:target': openshift, 'mlbatch:openshift': {operators: openshift-ai}}\n"
    )
    (root / "Pulumi.dev.yaml").write_text("config: {'mlbatch:target': simulated, 'mlbatch:openshift': plain}\n")
    assert parts(root, "site") == {"openshift": True, "operator_hub": False}
    assert parts(root, "ai") == {"openshift": True, "operator_hub": True}
    assert parts(root, "dev") == {"openshift": False, "operator_hub": False}


def test_operators_of_jobs_run_for_the_stacks_that_enable_one(root: Path) -> None:
    (root / "local" / "operators.yaml").write_bytes((ROOT / "local" / "operators.yaml").read_bytes())
    for name, queueing in (
        ("plain", "{replicas: 1}"),
        ("off", "{kuberay: {enabled: false}}"),
        ("ray", "{kuberay: {enabled: true}}"),
        ("torch", "{trainingOperator: {enabled: true}}"),
        ("older", "{kueueVersion: v0.18.4}"),
    ):
        (root / f"Pulumi.{name}.yaml").write_text(f"config: {{'mlbatch:queueing': {queueing}}}\n")
        assert has_job_operators(root, name) == (name in ("ray", "torch")), name
        assert has_older_kueue(root, name) == (name == "older"), name


@pytest.mark.parametrize(("chosen", "said"), [("version: '2.19'", "'2.19'"), ("approve: true", "unset")])
def test_operators_that_the_local_cluster_lacks_are_refused_before_it_starts(
    root: Path, chosen: str, said: str
) -> None:
    (root / "local" / "distributions.yaml").write_bytes((ROOT / "local" / "distributions.yaml").read_bytes())
    file = root / "Pulumi.ai.yaml"
    file.write_text(f"config: {{'mlbatch:openshift': {{operators: openshift-ai, {chosen}}}}}\n")
    with pytest.raises(EngineError) as refused:
        require_brought(root, "ai")
    assert f"mlbatch:openshift.version is {said} in Pulumi.ai.yaml" in str(refused.value)
    assert "the local cluster supports only '2.16' or '3.4'" in str(refused.value)
    file.write_text("config: {'mlbatch:openshift': {operators: openshift-ai, version: '2.16'}}\n")
    require_brought(root, "ai")
    file.write_text("config: {'mlbatch:target': openshift, 'mlbatch:openshift': {version: '2.19'}}\n")
    require_brought(root, "ai")


def test_no_gpu_operator_comes_from_the_local_catalog(root: Path) -> None:
    (root / "local" / "distributions.yaml").write_bytes((ROOT / "local" / "distributions.yaml").read_bytes())
    file = root / "Pulumi.site.yaml"
    file.write_text("config: {'mlbatch:target': openshift, 'mlbatch:gpu': {operator: true}}\n")
    with pytest.raises(EngineError, match=r"mlbatch:gpu\.operator is True .* supports only False or unset"):
        require_brought(root, "site")
    for gpu in ("{}", "{operator: false}"):
        file.write_text(f"config: {{'mlbatch:target': openshift, 'mlbatch:gpu': {gpu}}}\n")
        require_brought(root, "site")


def test_without_rules_every_cluster_is_a_plain_one(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {'mlbatch:target': openshift}\n")
    (root / "local" / "distributions.yaml").unlink()
    assert not parts(root, "site")["openshift"]


def test_a_file_that_is_not_yaml_is_named(root: Path) -> None:
    (root / "Pulumi.site.yaml").write_text("config: {\n")
    with pytest.raises(EngineError, match=r"Pulumi\.site\.yaml: line \d+, column \d+ is not valid YAML"):
        parts(root, "site")


def test_tools_of_openshift_are_built_only_for_openshift() -> None:
    assert {*needs(openshift=True)} - {*needs()} == {KUBERNETES_1_34.need(), *JOB_OPERATORS}
    assert "openshift-kube-apiserver" not in {tool.name for need in needs() for tool in need.tools}
