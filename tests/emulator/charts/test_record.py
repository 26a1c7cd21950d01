"""Records are packed as charts whose objects say that they are recorded, with schemas that refuse unknown types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import catalogue
from emulator.charts import archive, sources, values
from emulator.charts.record import ANNOTATION, Record, definition, records, schema, template, workload_manifest

RECORDS = records()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.name}-{record.version}")
def test_every_record_makes_a_chart_that_says_where_it_was_read(record: Record) -> None:
    files = record.files()
    chart = yaml.safe_load(files["Chart.yaml"])
    assert (chart["name"], chart["version"]) == (record.name, record.version)
    assert chart["annotations"][ANNOTATION].startswith("https://github.com/")
    shape = values.shape(files)
    assert list(values.problems(yaml.safe_load(files["values.yaml"]), shape)) == []


def test_the_first_version_of_each_chart_of_the_catalogue_can_be_had() -> None:
    had = {(source.name, source.version) for source in sources.SOURCES}
    had |= {(record.name, record.version) for record in RECORDS}
    newest = {chart.name: chart.version for chart in reversed(catalogue.CHARTS)}
    assert set(newest.items()) <= had


def test_a_module_chart_is_of_the_version_that_its_module_pins() -> None:
    go_mod = (Path(sources.__file__).parents[1] / "tools" / "charts" / "go.mod").read_text()
    discovery = next(source for source in sources.SOURCES if source.name == "node-feature-discovery")
    assert f"{discovery.module} v{discovery.version}\n" in go_mod


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        ("string", {"type": "string"}),
        ("string(a|b)", {"type": "string", "enum": ["a", "b"]}),
        ("int-or-string", {"x-kubernetes-int-or-string": True}),
        ("any", {"x-kubernetes-preserve-unknown-fields": True}),
        (["integer"], {"type": "array", "items": {"type": "integer"}}),
        ({"*": "boolean"}, {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (
            {"image!": "string", "env": {}},
            {
                "type": "object",
                "properties": {"image": {"type": "string"}, "env": {"type": "object"}},
                "required": ["image"],
            },
        ),
    ],
)
def test_the_short_form_of_a_schema(short: Any, expected: dict[str, Any]) -> None:
    assert schema(short) == expected


def test_a_definition_serves_every_version_and_stores_the_last() -> None:
    crd = {"group": "g.io", "kind": "Thing", "plural": "things", "scope": "Cluster", "versions": {"v1": {}, "v2": {}}}
    found = definition(crd)
    assert found["metadata"]["name"] == "things.g.io"
    assert [(item["name"], item["served"], item["storage"]) for item in found["spec"]["versions"]] == [
        ("v1", True, False),
        ("v2", True, True),
    ]
    assert all(item["subresources"] == {"status": {}} for item in found["spec"]["versions"])


def test_a_template_takes_values_and_the_releases_name() -> None:
    manifest = {"metadata": {"name": "$release-x", "namespace": "$namespace"}, "spec": {"tolerations": "$values.a.b"}}
    text = template(manifest, {"when": "a.enabled"}).decode()
    assert text.startswith("{{- if .Values.a.enabled }}\n")
    assert '"name": "{{ .Release.Name }}-x"' in text
    assert '"tolerations": {{ toJson .Values.a.b }}' in text


def test_a_workload_selects_its_own_pods() -> None:
    workload = {"kind": "DaemonSet", "name": "w", "image": "i:1", "nodeSelector": {"a": "b"}}
    found = workload_manifest("chart", workload)
    assert found["spec"]["selector"]["matchLabels"] == found["spec"]["template"]["metadata"]["labels"]
    assert found["spec"]["template"]["spec"] == {
        "containers": [{"name": "chart", "image": "i:1"}],
        "nodeSelector": {"a": "b"},
    }


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
    source = sources.Source("main", "2.0.0", "m", "main", {"version": "2.0.0"}, {"other": "other"})
    (tmp_path / "out.tgz").write_bytes(source.pack(tmp_path))
    files = archive.unpack(tmp_path / "out.tgz")
    assert sorted(files) == ["Chart.yaml", "charts/other/Chart.yaml"]
    assert yaml.safe_load(files["Chart.yaml"])["version"] == "2.0.0"


def test_the_gpu_operators_policy_follows_its_values() -> None:
    record = next(record for record in RECORDS if record.name == "gpu-operator")
    policies = [
        text for path, text in record.files().items() if b'"ClusterPolicy"' in text and path.startswith("templ")
    ]
    assert len(policies) == 1
    assert b'"enabled": {{ toJson .Values.driver.enabled }}' in policies[0]
    assert json.loads(record.files()[values.RECORD])["values"]["driver"]["rdma"]["enabled"] == "boolean"
