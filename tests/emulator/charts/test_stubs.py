"""Stubs have upstream's values and name their source. The mirror packs all charts of the catalogue."""

import json
import os
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from components import catalogue
from emulator.charts import archive, schema, sources
from emulator.charts.sources import STUB_OF, STUBS, stub, stubs


@pytest.mark.parametrize(("name", "version"), stubs())
def test_every_stub_is_a_chart_that_names_its_source(name: str, version: str) -> None:
    files = stub(name, version)
    chart = yaml.safe_load(files["Chart.yaml"])
    assert (chart["name"], chart["version"]) == (name, version)
    assert chart["annotations"][STUB_OF].startswith("https://github.com/")
    known = schema.of_chart(files)
    Draft202012Validator.check_schema(known)
    assert list(schema.problems(yaml.safe_load(files["values.yaml"]), known)) == []
    assert list(schema.problems({"surely": {}}, known)) != []
    assert "values.schema.json" not in files, "Helm would refuse what it ignores in upstream's chart"


DEFINITIONS = [*STUBS.glob("*/crds/*.json"), *STUBS.glob("*/templates/*.json")]


@pytest.mark.parametrize("file", DEFINITIONS, ids=lambda file: file.stem)
def test_a_definition_is_in_a_file_of_its_name_and_stores_one_version(file: Path) -> None:
    definition = json.loads(file.read_text())
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    assert definition["metadata"]["name"] == f"{names['plural']}.{group}" == file.stem
    assert [version["storage"] for version in definition["spec"]["versions"]] == [True]
    assert all(version["subresources"] == {"status": {}} for version in definition["spec"]["versions"])


def test_the_first_version_of_each_chart_of_the_catalogue_is_available() -> None:
    had = {(source.name, source.version) for source in sources.SOURCES} | set(stubs())
    newest = {chart.name: chart.version for chart in reversed(catalogue.CHARTS)}
    assert set(newest.items()) <= had


def test_a_module_chart_is_of_the_version_that_its_module_pins() -> None:
    go_mod = (Path(sources.__file__).parents[1] / "tools" / "charts" / "go.mod").read_text()
    discovery = next(source for source in sources.SOURCES if source.name == "node-feature-discovery")
    assert f"{discovery.module} v{discovery.version}\n" in go_mod


def test_equal_files_give_equal_archives(tmp_path: Path) -> None:
    files = {"b": b"2", "a/c": b"1"}
    packed = archive.pack("chart", files)
    assert packed == archive.pack("chart", dict(reversed(files.items())))
    (tmp_path / "x.tgz").write_bytes(packed)
    assert archive.unpack(tmp_path / "x.tgz") == files


def test_a_source_brings_its_subcharts_and_upstreams_version(tmp_path: Path) -> None:
    for folder, name in (("main", "main"), ("other", "other")):
        (tmp_path / folder / "ci").mkdir(parents=True)
        (tmp_path / folder / "Chart.yaml").write_text(f"name: {name}\nversion: 0.0.1\n")
        (tmp_path / folder / "ci" / "values.yaml").write_text("x: 1\n")
    with (tmp_path / "main" / "Chart.yaml").open("a") as chart:
        chart.write("dependencies: [{name: other, version: 0.*}, {name: grafana, version: 12.11.2}]\n")
    files = sources.Source("main", "2.0.0", "m", "main", {"version": "2.0.0"}).files(tmp_path)
    stubbed = {f"charts/grafana/{path}" for path in stub("grafana", "12.11.2")}
    assert set(files) == {"Chart.yaml", "charts/other/Chart.yaml", *stubbed}
    assert yaml.safe_load(files["Chart.yaml"])["version"] == "2.0.0"


WEBHOOK = """{{- if .Values.webhooks }}
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: guard}
{{- end }}
"""


def packed(folder: Path, path: str, text: str) -> set[str]:
    """Return the files that the mirror packs from a chart with a ConfigMap and one more file."""
    content = {"Chart.yaml": "name: main\n", "templates/config.yaml": "kind: ConfigMap\n", path: text}
    for name, each in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(each)
    return set(sources.Source("main", "2.0.0", "m", ".").files(folder))


@pytest.mark.parametrize(
    "template",
    [
        WEBHOOK % "Validating",
        WEBHOOK % "Mutating",
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n",
        "kind: Job\nmetadata:\n  annotations:\n    helm.sh/hook: pre-install\n",
        'kind: Job\nmetadata:\n  annotations:\n    "helm.sh/hook": pre-install,pre-upgrade\n',
    ],
    ids=["validating webhook", "mutating webhook", "API service", "hook", "quoted hook"],
)
@pytest.mark.parametrize("path", ["templates/some/guard.yaml", "charts/sub/templates/guard.yaml"])
def test_a_template_whose_controller_is_simulated_is_left_out(tmp_path: Path, path: str, template: str) -> None:
    assert packed(tmp_path, path, template) == {"Chart.yaml", "templates/config.yaml"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "templates/role.yaml",
            "kind: ClusterRole\nrules:\n- resources: [apiservices, mutatingwebhookconfigurations]\n",
        ),
        ("templates/list.yaml", "kind: APIServiceList\n"),
        ("values.yaml", "annotations: {helm.sh/hook: pre-install}\n"),
    ],
    ids=["a role for webhooks", "a longer kind", "values"],
)
def test_a_file_that_declares_no_webhook_api_or_hook_is_packed(tmp_path: Path, path: str, text: str) -> None:
    assert packed(tmp_path, path, text) == {"Chart.yaml", "templates/config.yaml", path}


def test_the_mirror_gets_missing_and_outdated_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "Chart.yaml").write_text("name: main\n")
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    monkeypatch.setattr(sources, "SOURCES", (sources.Source("main", "2.0.0", "m", "."),))
    asked: list[str] = []

    def folder_of(module: str) -> Path:
        asked.append(module)
        return tmp_path / "module"

    for _ in range(2):
        sources.fill(mirror, folder_of)
    assert asked == ["m"]
    assert {file.name for file in mirror.iterdir()} == {"main-2.0.0.tgz", *(f"{n}-{v}.tgz" for n, v in stubs())}
    os.utime(mirror / "main-2.0.0.tgz", (0, 0))
    sources.fill(mirror, folder_of)
    assert asked == ["m", "m"]


def test_the_gpu_operators_policy_follows_its_values() -> None:
    files = stub("gpu-operator", "v26.3.3")
    (policy,) = [text for path, text in files.items() if b"kind: ClusterPolicy" in text and path.startswith("templ")]
    assert b"enabled: {{ .Values.driver.enabled }}" in policy
    rdma = schema.of_chart(files)["properties"]["driver"]["properties"]["rdma"]["properties"]
    assert rdma["enabled"]["type"] == "boolean"
