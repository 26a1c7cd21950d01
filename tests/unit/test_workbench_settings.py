"""The settings of the workbench: defaults, and one message with a fix for each error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from components import catalogue
from stacks.settings.workbench import WorkbenchSettings

PATH = ("workbench",)


def problems(**values: Any) -> list[Any]:
    """Return the errors in the section and its subsections, from the checks of a whole configuration."""
    settings = WorkbenchSettings.model_validate_json(json.dumps({"enabled": True, **values}))
    return [
        *settings.check(PATH),
        *settings.object_store.check((*PATH, "objectStore")),
        *settings.queue.check((*PATH, "queue")),
    ]


def test_the_guides_workbench_is_the_default() -> None:
    """Seed 003, 10.1, without permissions that the demo does not need."""
    own = WorkbenchSettings()
    assert (own.namespace, own.image, own.version, own.size) == ("sandbox", "Standard Data Science", "2024.1", "Small")
    assert (str(own.storage), own.connection) == ("20Gi", "minio")
    assert {name: str(amount) for name, amount in own.queue.amounts().items()} == {
        "cpu": "9",
        "memory": "36Gi",
        "nvidia.com/gpu": "5",
    }
    assert (own.enabled, own.edit_for_group, own.queue.open_to_all) == (False, False, False)
    assert (own.object_store.kind, own.object_store.tls) == ("seaweedfs", True)
    assert not own.object_store.guide_credentials


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"image": "PyTorch", "version": "2024.2", "size": "X Large"},
        {"name": "a" * 40, "namespace": "b" * 22},
        {"name": "a" * 52},
        {"objectStore": {"bucket": "demo-checkpoints.2024"}},
        {"version": "2025.1", "rayJobs": ["jobtest"]},
        {"version": "2023.2", "rayClusters": ["tunecluster"]},
        {"rayClusters": ["raytest", "jobtest"]},
        {"rayJobs": ["jobtest", "interactivetest", "tunecluster"]},
        {"rayClusters": ["raytest"], "rayJobs": ["jobtest"]},
        {"objectStore": {"kind": "minio", "guideCredentials": True, "tls": False}},
        {"objectStore": {"kind": "external", "endpoint": "https://s3.example.org", "accessKey": "k"}},
    ],
)
def test_what_can_be_made_is_taken(values: dict[str, Any]) -> None:
    assert [str(problem) for problem in problems(**values)] == []


MISTAKES: list[dict[str, Any]] = [
    {"version": "2024.3"},
    *({"version": version, "rayClusters": ["raytest"]} for version in ("2025.1", "2024.2")),
    {"name": "Demo"},
    {"name": "3d-demo"},
    {"name": "a" * 53},
    {"name": "a" * 40, "namespace": "b" * 23},
    {"namespace": "a/b"},
    {"connection": "My store"},
    {"namespace": "seaweedfs"},
    {"objectStore": {"endpoint": "https://a"}},
    {"objectStore": {"kind": "external", "endpoint": "https://a"}},
    {"objectStore": {"kind": "external", "endpoint": "s3.example.org", "accessKey": "k"}},
    *(
        {"objectStore": {"kind": "external", "endpoint": "https://s3.example.org", "accessKey": "k", **own}}
        for own in ({"size": "10Gi"}, {"storageClass": "fast"}, {"tls": True})
    ),
    *(
        {"objectStore": {"kind": "external", "endpoint": address, "accessKey": "k"}}
        for address in ("https://s3.example.org/bucket", "https://s3 example", "https://1.2.3", "https://a?b=c")
    ),
    {"rayClusters": ["tunecluster", "jobtest"], "queue": {"memory": "100Gi"}},
    {"rayClusters": ["tunecluster"], "queue": {"memory": "20Gi"}},
    {"rayClusters": ["raytest", "raytest"]},
    {"rayJobs": ["jobtest", "jobtest"]},
    {"rayClusters": ["jobtest"], "rayJobs": ["interactivetest"]},
    {"objectStore": {"guideCredentials": True}},
]
"""`tests/unit/refusals` has the text of each."""


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ({"image": "Standard Science"}, tuple(image.name for image in catalogue.NOTEBOOK_IMAGES)),
        ({"size": "Huge"}, ("Small", "Medium", "Large", "X Large")),
    ],
)
def test_an_image_or_a_size_that_there_is_not_is_told_those_that_there_are(
    values: dict[str, Any], known: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as error:
        WorkbenchSettings.model_validate_json(json.dumps(values))
    (problem,) = error.value.errors()
    assert problem["ctx"]["known"] == known


def test_a_workbench_that_is_off_is_not_judged() -> None:
    assert list(WorkbenchSettings.model_validate({"version": "1"}).check(PATH)) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"bucket": "My_bucket"}, "this name is invalid for a bucket"),
        ({"bucket": "ab"}, "this name is invalid for a bucket"),
        ({"bucket": "a..b"}, "this name is invalid for a bucket"),
        ({"kind": "external", "accessKey": "two words"}, "an object store would reject this"),
        ({"kind": "external", "region": ""}, "an object store would reject this"),
    ],
)
def test_what_a_store_refuses(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        problems(objectStore=values)
