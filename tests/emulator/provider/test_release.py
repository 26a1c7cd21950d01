"""Releases end to end: gRPC in; a Helm command and the Secrets that it leaves out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2

from emulator.charts import archive
from emulator.charts.sources import STUB_OF
from emulator.cluster.layout import MARKER
from emulator.plugin import wire
from emulator.plugin.server import start
from emulator.plugin.wire import UNKNOWN, Secret
from emulator.provider.server import Kubernetes
from tests.emulator.charts.secrets import release_secret
from tests.emulator.provider.fake_cluster import FakeCluster
from tests.emulator.provider.test_server import Engine, refused

URN = "urn:pulumi:dev::p::kubernetes:helm.sh/v3:Release::r"
SECRETS = "/api/v1/namespaces/ns/secrets"
# Notes its arguments, keeps its values, and fails or installs as the files beside it say.
HELM = """#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
for argument in "$@"; do case $argument in --values=*) cp "${argument#--values=}" "$here/values";; esac; done
stat -c %a "$(dirname "$KUBECONFIG")" > "$here/mode"
cp "$KUBECONFIG" "$here/kubeconfig"
if [ -e "$here/fail-$1" ]; then echo "Error: $(cat "$here/fail-$1")" >&2; exit 1; fi
case $1 in
template) printf 'kind: Job\\nmetadata:\\n  name: hook\\n  annotations: {"helm.sh/hook": pre-install}\\n';;
install|upgrade) touch "$here/installed";;
uninstall) rm -f "$here/installed";;
esac
"""


@dataclass
class Local:
    """A state folder with a mirror and a Helm command that does as it is told."""

    state: Path
    cluster: FakeCluster
    engine: Engine

    @property
    def chart(self) -> str:
        return str(self.state / "mirror" / "chart-1.2.3.tgz")

    def calls(self, command: str) -> list[str]:
        file = self.state / "bin" / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(f"{command} ")]

    def fail(self, command: str, message: str) -> None:
        (self.state / "bin" / f"fail-{command}").write_text(message)

    def inputs(self, **more: Any) -> dict[str, Any]:
        return {"name": "r", "namespace": "ns", "chart": self.chart, "version": "1.2.3", **more}

    def check(self, inputs: dict[str, Any], olds: Struct | None = None) -> dict[str, Any]:
        request = provider_pb2.CheckRequest(urn=URN, news=wire.encode(inputs), olds=olds or Struct(), randomSeed=b"s")
        return wire.decode(self.engine.stub.Check(request).inputs).plain

    def create(self, **more: Any) -> Struct:
        return self.engine.create(self.inputs(timeout=300, **more), URN)[1]

    def diff(self, olds: Struct, **news: Any) -> provider_pb2.DiffResponse:
        request = provider_pb2.DiffRequest(urn=URN, id="ns/r", olds=olds, news=wire.encode(news))
        return self.engine.stub.Diff(request)

    def read(self, properties: Struct) -> provider_pb2.ReadResponse:
        inputs = wire.encode(wire.decode(properties).plain.get("__inputs") or {})
        return self.engine.stub.Read(provider_pb2.ReadRequest(urn=URN, id="ns/r", properties=properties, inputs=inputs))


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    monkeypatch.setenv(MARKER, str(tmp_path))
    for folder in ("bin", "mirror"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "helm").write_text(HELM)
    (tmp_path / "bin" / "helm").chmod(0o755)
    chart = {"name": "chart", "version": "1.2.3", "annotations": {STUB_OF: "https://example.org"}}
    files = {"Chart.yaml": json.dumps(chart).encode(), "values.yaml": b"a: {b: true}"}
    (tmp_path / "mirror" / "chart-1.2.3.tgz").write_bytes(archive.pack("chart", files))
    cluster = FakeCluster()

    def secrets(method: str, path: str) -> tuple[int, dict[str, Any]] | None:
        if path != SECRETS:
            return None
        installed = (tmp_path / "bin" / "installed").exists()
        return 200, {"items": [release_secret(config={"a": {"b": False}})] if installed else []}

    cluster.interfere = secrets
    server, port = start(Kubernetes(), 0)
    with contextlib.closing(Engine(port, cluster.kubeconfig)) as engine:
        yield Local(tmp_path, cluster, engine)
    server.stop(None).wait()
    cluster.close()


def test_check_fills_in_what_the_official_provider_does(local: Local) -> None:
    found = local.check({"chart": local.chart, "values": {"a": {"b": None}}})
    assert found["name"].startswith("r-")
    assert (found["namespace"], found["timeout"], found["version"]) == ("default", 300, "1.2.3")
    assert found["values"] == {"a": {"b": None}}  # takes the default away, so it stays
    assert "--kube-version=v1.34.2" in local.calls("template")[0]


def test_a_repository_and_a_version_lead_to_the_mirror(local: Local) -> None:
    options = {"repo": "https://charts.example.org"}
    found = local.check({"name": "r", "chart": "chart", "version": "1.2.3", "repositoryOpts": options})
    assert found["version"] == "1.2.3"
    assert local.check({"name": "r", "chart": "oci://example.org/charts/chart", "version": "1.2.3"})


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({"chart": "/nowhere/chart-9.9.9.tgz"}, ["cannot be had on this machine", "There are: chart-1.2.3"]),
        ({"chart": "oci://example.org/other", "version": "2"}, ["the chart other 2 cannot be had", "make mirror"]),
        ({"chart": "oci://example.org/chart", "version": None}, ["version is not set", "has to be pinned"]),
        ({"chart": "chart-1.2.3.tgz"}, ["in another folder cannot tell what it is relative to"]),
        ({"chart": "chart"}, ["without repositoryOpts.repo"]),
        ({"chart": None}, ["chart is required"]),
        ({"valueYamlFiles": ["x"]}, ["valueYamlFiles is not supported for a release on the local cluster"]),
        ({"verify": True}, ["verify is not supported"]),
        ({"vaules": {}}, ["vaules is no input", "values"]),
        ({"atomic": "yes"}, ["atomic is 'yes'; true or false is allowed"]),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_installed(
    local: Local, more: dict[str, Any], parts: list[str]
) -> None:
    with refused(*parts):
        local.check(local.inputs(**more))
    assert not local.calls("install")


def test_what_the_templates_refuse_is_an_error_of_check(local: Local) -> None:
    local.fail("template", "values don't meet the specifications of the schema")
    with refused("the chart chart-1.2.3 refuses its values: values don't meet the specifications"):
        local.check(local.inputs())


def test_values_that_are_not_known_yet_are_not_rendered(local: Local) -> None:
    assert local.check(local.inputs(values={"a": {"b": UNKNOWN}}))["values"] == {"a": {"b": UNKNOWN}}
    assert not local.calls("template")


def test_create_installs_and_the_state_has_the_official_shape(local: Local) -> None:
    state = wire.decode(local.create(atomic=True, values={"a": {"b": False}}))
    call = local.calls("install")[0]
    for argument in (f"r {local.chart}", "--namespace=ns", "--timeout=300s", "--atomic", "--wait", "--no-hooks"):
        assert argument in call
    assert "emulator.charts.left_out" in call
    assert state.plain["status"] == {
        "appVersion": "v9",
        "chart": "chart",
        "name": "r",
        "namespace": "ns",
        "revision": 1,
        "status": "deployed",
        "version": "1.2.3",
    }
    assert state.plain["resourceNames"]["ConfigMap/v1"] == ["ns/a"]
    assert isinstance(state.marked["__inputs"], Secret)


def test_skip_await_does_not_wait(local: Local) -> None:
    local.create(skipAwait=True, waitForJobs=True)
    assert "--wait" not in local.calls("install")[0]


def test_secret_values_reach_helm_by_a_private_file_only(local: Local) -> None:
    state = local.create(values={"a": Secret("hidden")})
    assert json.loads((local.state / "bin" / "values").read_text()) == {"a": "hidden"}
    assert (local.state / "bin" / "mode").read_text() == "700\n"
    assert "hidden" not in "".join(local.calls("install"))
    assert isinstance(wire.decode(state).marked["values"]["a"], Secret)


def test_helm_signs_in_as_the_provider_does(local: Local) -> None:
    local.create()
    kubeconfig = json.loads((local.state / "bin" / "kubeconfig").read_text())
    assert kubeconfig["users"][0]["user"] == {"token": "t"}
    assert (
        kubeconfig["clusters"][0]["cluster"]["server"]
        == json.loads(local.cluster.kubeconfig)["clusters"][0]["cluster"]["server"]
    )


def test_a_preview_installs_nothing(local: Local) -> None:
    _, properties = local.engine.create(local.inputs(), URN, preview=True)
    assert wire.decode(properties).plain["status"] is UNKNOWN
    assert not local.calls("install")


def test_an_install_that_leaves_nothing_behind_fails_as_a_whole(local: Local) -> None:
    local.fail("install", "INSTALLATION FAILED: context deadline exceeded")
    with refused("the release ns/r was not installed: INSTALLATION FAILED: context deadline exceeded"):
        local.create(atomic=True)


def test_a_release_of_somebody_else_is_not_taken_over(local: Local) -> None:
    (local.state / "bin" / "installed").touch()
    with refused("the release ns/r exists already (deployed, chart 1.2.3)", "helm uninstall r --namespace ns"):
        local.create()
    assert not local.calls("install")


def test_a_release_whose_engine_was_killed_is_not_handed_back(local: Local) -> None:
    """Helm knows no program that it was installed for; the official provider passes its refusal on."""
    local.create()
    with refused("the release ns/r exists already"):
        local.create()
    assert (len(local.calls("install")), local.calls("upgrade")) == (1, [])


def test_an_update_upgrades_whatever_a_killed_helm_has_left(local: Local) -> None:
    """Helm itself refuses to go on from a revision that is pending."""
    state = local.create()
    local.fail("upgrade", "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress")
    request = provider_pb2.UpdateRequest(urn=URN, id="ns/r", olds=state, news=wire.encode(local.inputs(timeout=300)))
    with refused("another operation (install/upgrade/rollback) is in progress"):
        local.engine.stub.Update(request)


def test_unchanged_inputs_are_no_difference(local: Local) -> None:
    state = local.create(values={"a": {"b": False}})
    news = local.inputs(timeout=300, values={"a": {"b": False}})
    assert local.diff(state, **news).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_other_values_are_an_update_and_another_name_a_replacement(local: Local) -> None:
    state = local.create(values={"a": {"b": False}})
    changed = local.diff(state, **local.inputs(timeout=300, values={"a": {"b": True}}))
    assert (list(changed.detailedDiff), list(changed.replaces)) == (["values.a.b"], [])
    for key in ("name", "namespace"):
        renamed = local.diff(state, **{**local.inputs(timeout=300, values={"a": {"b": False}}), key: "other"})
        assert list(renamed.replaces) == [key]


def test_an_update_upgrades(local: Local) -> None:
    state = local.create()
    news = wire.encode(local.inputs(timeout=60, atomic=True, values={"a": {"b": False}}))
    local.engine.stub.Update(provider_pb2.UpdateRequest(urn=URN, id="ns/r", olds=state, news=news))
    call = local.calls("upgrade")[0]
    assert "--reset-values" in call
    assert "--timeout=60s" in call


def test_a_failed_upgrade_that_is_not_atomic_is_recorded_with_the_release(local: Local) -> None:
    state = local.create()
    local.fail("upgrade", "UPGRADE FAILED: timed out")
    news = wire.encode(local.inputs(timeout=300))
    with pytest.raises(grpc.RpcError, match="the release ns/r is deployed: UPGRADE FAILED: timed out") as raised:
        local.engine.stub.Update(provider_pb2.UpdateRequest(urn=URN, id="ns/r", olds=state, news=news))
    assert raised.value.code() == grpc.StatusCode.UNKNOWN  # the engine keeps the state that comes with it


def test_refresh_finds_a_release_that_was_uninstalled_by_hand(local: Local) -> None:
    state = local.create()
    assert local.read(state).id == "ns/r"
    (local.state / "bin" / "installed").unlink()
    assert local.read(state).id == ""


def test_delete_uninstalls_and_a_release_that_is_gone_is_a_success(local: Local) -> None:
    state = local.create()
    for _ in range(2):
        local.engine.stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="ns/r", properties=state))
    assert "--ignore-not-found --wait" in local.calls("uninstall")[0]


def test_import_takes_the_releases_values(local: Local) -> None:
    (local.state / "bin" / "installed").touch()
    found = local.read(Struct())
    assert wire.decode(found.inputs).plain == {
        "name": "r",
        "namespace": "ns",
        "chart": "chart",
        "version": "1.2.3",
        "values": {"a": {"b": False}},
    }


def test_import_by_the_name_alone_looks_in_the_providers_namespace(local: Local) -> None:
    def secrets(method: str, path: str) -> tuple[int, dict[str, Any]] | None:
        items = [release_secret(namespace="default")]
        return (200, {"items": items}) if path == "/api/v1/namespaces/default/secrets" else None

    local.cluster.interfere = secrets
    assert local.engine.stub.Read(provider_pb2.ReadRequest(urn=URN, id="r")).id == "default/r"
