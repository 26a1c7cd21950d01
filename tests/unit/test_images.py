"""An image is known by its digest, and what has rights on a node without one is named."""

from collections.abc import Mapping
from typing import Any

import pytest

from components import catalogue, lock
from components.azure import catalogue as azure
from components.images import Reference, unpinned_privileged
from components.kubernetes.manifests import Manifest
from components.kubernetes.placement import NodeGroup
from components.nodes.node_agent import daemon_set
from components.nodes.nvme_scratch import NvmeScratchArgs, scratch
from components.openstack import catalogue as openstack
from tests.unit.harness import build
from tests.unit.images import retired

DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("registry.k8s.io/a/b:v1", ("registry.k8s.io/a/b", "v1", None)),
        ("localhost:5000/b", ("localhost:5000/b", None, None)),
        (f"localhost:5000/b:v1@{DIGEST}", ("localhost:5000/b", "v1", DIGEST)),
        (f"a/b@{DIGEST}", ("a/b", None, DIGEST)),
    ],
)
def test_the_parts_of_a_reference(text: str, parts: tuple[str, str | None, str | None]) -> None:
    reference = Reference.parse(text)
    assert (reference.repository, reference.tag, reference.digest) == parts
    assert str(reference) == text


@pytest.mark.parametrize(
    ("text", "located"),
    [
        ("mysql:8.0.29", "docker.io/library/mysql:8.0.29"),
        (f"minio/minio@{DIGEST}", f"docker.io/minio/minio@{DIGEST}"),
        ("localhost:5000/b", "localhost:5000/b"),
        ("quay.io/a/b:v1", "quay.io/a/b:v1"),
    ],
)
def test_a_reference_without_a_host_is_docker_hubs(text: str, located: str) -> None:
    assert str(Reference.parse(text).located()) == located


def test_no_image_of_a_catalogue_is_of_a_registry_that_no_longer_serves_it() -> None:
    modules = (catalogue, azure, openstack)
    assert retired(image for module in modules for image in lock.images(module)) == []
    assert retired(["minio/minio:RELEASE.2025-09-07T16-13-09Z", "mysql:8"]) == [
        "minio/minio:RELEASE.2025-09-07T16-13-09Z"
    ]


def of_pod(kind: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "Pod":
        return {"kind": kind, "spec": pod}
    made: dict[str, Any] = {"template": {"spec": pod}}
    return {"kind": kind, "spec": {"jobTemplate": {"spec": made}} if kind == "CronJob" else made}


PLAIN = {"image": "plain:1", "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
ROOT = {"image": "root:1", "securityContext": {"privileged": True}}


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet", "Job", "CronJob"])
def test_privileged_containers_without_a_digest_are_found_wherever_pods_come_from(kind: str) -> None:
    assert list(unpinned_privileged(of_pod(kind, {"containers": [PLAIN]}))) == []
    assert list(unpinned_privileged(of_pod(kind, {"containers": [PLAIN, ROOT]}))) == ["root:1"]
    assert list(unpinned_privileged(of_pod(kind, {"initContainers": [ROOT], "containers": [PLAIN]}))) == ["root:1"]
    assert list(unpinned_privileged(of_pod(kind, {"hostPID": True, "containers": [PLAIN]}))) == ["plain:1"]
    administrator = {"image": "admin:1", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
    assert list(unpinned_privileged(of_pod(kind, {"containers": [administrator]}))) == ["admin:1"]
    pinned = {**ROOT, "image": f"root:1@{DIGEST}"}
    assert list(unpinned_privileged(of_pod(kind, {"containers": [pinned]}))) == []


def test_objects_without_pods_have_none() -> None:
    assert list(unpinned_privileged({"kind": "ConfigMap", "data": {}})) == []
    assert list(unpinned_privileged({"kind": "ClusterQueue", "spec": {"template": None}})) == []


@pytest.mark.parametrize("image", [catalogue.PYTHON.reference, f"{catalogue.PYTHON.reference}@{DIGEST}"])
def test_the_program_that_makes_arrays_is_warned_of_by_name_until_its_image_has_a_digest(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", lambda message, resource=None: said.append(message))
    args = NvmeScratchArgs(namespace="agents", image=image, nodes=NodeGroup(), disk_model="Disk")
    build(lambda: Manifest("disks", daemon_set(scratch(args))))
    if "@" in image:
        assert said == []
    else:
        (warning,) = said
        assert warning.startswith("DaemonSet local-nvme-scratch has rights on its nodes, and no digest pins")
        assert image in warning
        assert "`make lock`" in warning
