"""Variables of a container, with fields of its pod."""

from typing import Any

import pytest

from emulator.cluster.downward import environment, expand, field_value, sub_path
from emulator.cluster.errors import MissingError, UnsupportedError

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "labels": {"a": "1", "b": "2"}},
    "spec": {"nodeName": "local-controllers"},
    "status": {"podIP": "10.244.0.1"},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['absent']", ""),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("spec.nodeName", "local-controllers"),
        ("status.podIP", "10.244.0.1"),
    ],
)
def test_field(path: str, expected: str) -> None:
    assert field_value(path, POD) == expected


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="does not offer the field spec"):
        field_value("spec.replicas", POD)


@pytest.mark.parametrize(
    ("text", "expected"), [("$(A)/x", "1/x"), ("$(B)", "$(B)"), ("$$(A)", "$(A)"), ("$A", "$A"), ("a$$b", "a$b")]
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ({}, ""),
        ({"subPath": "$(UID)"}, "$(UID)"),
        ({"subPathExpr": "$(UID)"}, "a-b"),
        ({"subPathExpr": "pods/$(UID)/x"}, "pods/a-b/x"),
        ({"subPathExpr": "$$(UID)"}, "$(UID)"),
    ],
)
def test_a_mount_is_of_the_folder_that_the_environment_names(mount: dict[str, str], expected: str) -> None:
    assert sub_path({"name": "scratch", **mount}, {"UID": "a-b"}) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("$(ABSENT)", "missing value for ABSENT"),
        ("$(EMPTY)/x", "missing value for EMPTY"),
        ("$(ROOT)", "outside of the volume"),
        ("x/$(UP)", "outside of the volume"),
    ],
)
def test_a_mount_of_no_folder_or_one_outside_is_refused_and_never_of_the_whole_volume(
    expression: str, said: str
) -> None:
    with pytest.raises(MissingError, match=said):
        sub_path({"name": "scratch", "subPathExpr": expression}, {"EMPTY": "", "ROOT": "/etc", "UP": "../y"})


def test_environment_in_order_with_references() -> None:
    container = {
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "m"}}],
        "env": [
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "BOTH", "value": "$(NAMESPACE)-$(P_k)"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}},
        ],
    }

    def data(kind: str, reference: dict[str, Any]) -> dict[str, str] | None:
        return None if reference["name"] == "none" else {"k": f"{kind}-{reference['name']}"}

    assert environment(container, POD, {"PATH": "/bin"}, data) == {
        "PATH": "/bin",
        "P_k": "ConfigMap-m",
        "NAMESPACE": "n",
        "BOTH": "n-ConfigMap-m",
        "KEY": "Secret-s",
    }
