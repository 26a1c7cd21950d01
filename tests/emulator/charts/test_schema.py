"""Errors for unknown values and wrong types of a chart name the nearest known value."""

import json
from typing import Any

import pytest

from emulator.charts import schema

CHART = (
    b"apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: sub, version: 1.0.0, condition: sub.enabled}\n"
)
FILES = {
    "Chart.yaml": CHART,
    "values.yaml": b"driver: {enabled: true, version: '1.2'}\nlabels: {}\nreplicas: 1\nextra: null\nargs: []\n",
    "templates/a.yaml": b"{{ .Values.driver.rdma.enabled }} {{ .Values.driver.version.major }}",
    "charts/sub/Chart.yaml": b"apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "charts/sub/values.yaml": b"image: {tag: x}\n",
}


def problems(given: dict[str, Any]) -> list[str]:
    return list(schema.problems(given, schema.of_chart(FILES)))


@pytest.mark.parametrize(
    "given",
    [
        {"driver": {"enabled": False, "version": 550}},
        {"driver": {"rdma": {"enabled": True}}},  # no default, but a template reads it
        {"labels": {"anything": "goes"}, "extra": {"too": 1}},
        {"sub": {"enabled": True, "image": {"tag": "y"}}},
        {"global": {"imageRegistry": "r"}},
        {"driver": {"version": None}},  # removes a default
    ],
)
def test_values_of_the_chart_are_accepted(given: dict[str, Any]) -> None:
    assert problems(given) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"drivers": {}}, "drivers is not a value of the chart, which ignores it; did you mean driver?"),
        (
            {"driver": {"enable": True}},
            "driver.enable is not a value of the chart, which ignores it; did you mean driver.enabled?",
        ),
        (
            {"sub": {"image": {"zzz": 1}}},
            "sub.image.zzz is not a value of the chart, which ignores it; known there: tag",
        ),
        ({"driver": {"enabled": "true"}}, "driver.enabled is a string; the chart has a boolean there"),
        ({"driver": True}, "driver is a boolean; the chart has a map there"),
        ({"args": "a b"}, "args is a string; the chart has a list there"),
    ],
)
def test_a_problem_names_path_and_remedy(given: dict[str, Any], expected: str) -> None:
    assert problems(given) == [expected]


def test_a_stubs_schema_is_used_unchanged() -> None:
    content = {"type": "object", "properties": {"driver": {"type": "object"}}}
    files = {**FILES, schema.KNOWN_VALUES: json.dumps(content).encode()}
    assert schema.of_chart(files) == content


def test_a_schema_contains_its_defaults() -> None:
    driver = {"type": "object", "properties": {"enabled": {"type": "boolean", "default": False}, "version": {}}}
    assert schema.defaults({"type": "object", "properties": {"driver": driver, "labels": {"type": "object"}}}) == {
        "driver": {"enabled": False}
    }


def test_an_object_that_is_passed_on_as_a_whole_may_have_other_keys_but_no_misspelt_ones() -> None:
    chart = {
        **FILES,
        "values.yaml": b"rdma: {enabled: false, kubernetes.io/os: x}\nread: {a: 1}\ngrafana.ini: {log: {mode: x}}\n",
        "templates/a.yaml": b"{{ toYaml .Values.rdma }} {{ .Values.read.a }}{{ toYaml .Values.read }}",
    }
    known = schema.of_chart(chart)
    given = {
        "rdma": {"other": 1, "enable": True, "kubernetes.io/arch": "x"},
        "grafana.ini": {"users": {"x": 1}},
        "read": {"other": 1},
    }
    assert [problem.partition(" ")[0] for problem in schema.problems(given, known)] == ["rdma.enable", "read.other"]
