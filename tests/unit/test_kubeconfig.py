"""A kubeconfig is checked before anything is registered, and only the chosen context reaches the provider."""

from __future__ import annotations

import base64
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import monotonic

import pytest
import yaml

from stacks import kubeconfig as kubeconfigs
from stacks.kubeconfig import Kubeconfig, KubeconfigError, check_answers
from stacks.settings.kubernetes import KubernetesSettings


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach loopback directly, whatever the machine's proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def settings(**values: str) -> KubernetesSettings:
    return KubernetesSettings.model_validate(values)


def read(file: Path, base: Path = Path("/"), **values: str) -> Kubeconfig:
    return kubeconfigs.read(KubernetesSettings.model_validate(values), base=base, environment={"KUBECONFIG": str(file)})


def refusal(file: Path, **values: str) -> str:
    with pytest.raises(KubeconfigError) as error:
        read(file, **values)
    return str(error.value)


def test_the_current_context_is_taken_by_itself(kubeconfig: Path) -> None:
    result = read(kubeconfig)
    document = yaml.safe_load(result.contents)
    assert document["current-context"] == "lab"
    assert [context["name"] for context in document["contexts"]] == ["lab"]
    assert document["users"][0]["user"] == {"token": "correct-horse-battery"}
    assert (result.cluster, result.server) == ("lab-cluster", "https://127.0.0.1:6443")


def test_another_context_can_be_named(kubeconfig: Path) -> None:
    assert yaml.safe_load(read(kubeconfig, context="other").contents)["current-context"] == "other"


def test_the_setting_goes_before_the_environment_and_counts_from_the_project(kubeconfig: Path) -> None:
    result = read(Path("/nowhere"), base=kubeconfig.parent, kubeconfig=kubeconfig.name)
    assert result.cluster == "lab-cluster"


def test_without_setting_and_environment_the_home_folder_holds_it(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".kube").mkdir()
    kubeconfig.rename(tmp_path / ".kube" / "config")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubeconfigs.read(settings(), base=Path("/"), environment={}).cluster == "lab-cluster"


def test_of_several_files_in_the_environment_the_first_that_exists_is_taken(kubeconfig: Path) -> None:
    variable = os.pathsep.join(["/nowhere/config", str(kubeconfig)])
    assert kubeconfigs.read(settings(), base=Path("/"), environment={"KUBECONFIG": variable}).cluster == "lab-cluster"


def test_files_that_it_names_are_put_inside(kubeconfig: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["certificate-authority"] = "pki/ca.crt"
    kubeconfig.write_text(yaml.safe_dump(document))
    (kubeconfig.parent / "pki").mkdir()
    (kubeconfig.parent / "pki" / "ca.crt").write_text("CERTIFICATE")
    result = read(kubeconfig)
    cluster = yaml.safe_load(result.contents)["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"CERTIFICATE"
    assert "certificate-authority" not in cluster
    assert result.authority == "CERTIFICATE"


def test_an_absent_file_is_named_with_where_its_name_comes_from(tmp_path: Path) -> None:
    text = refusal(tmp_path / "absent")
    assert "mlbatch:kubernetes.kubeconfig" in text
    assert f"{tmp_path / 'absent'} (from $KUBECONFIG) cannot be read: No such file" in text
    assert "make up" in text
    assert '= "gone"' in refusal(tmp_path / "absent", kubeconfig="gone")


CONTEXT = "{kind: Config, current-context: lab, contexts: [{name: lab, context: {cluster: x}}]"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "it is not YAML"),
        ("just text", "it is not of kind Config"),
        ("kind: Secret", "it is not of kind Config"),
        ("{kind: Config}", "has no current context"),
        ("{kind: Config, current-context: lab, contexts: none}", "has no context 'lab'"),
        (f"{CONTEXT}}}", "names no cluster"),
        (f"{CONTEXT}, clusters: [{{name: x, cluster: {{server: 7}}}}]}}", "names no cluster with a server's address"),
        (
            f"{CONTEXT}, clusters: [{{name: x, cluster: {{server: 'https://h', certificate-authority-data: '*'}}}}]}}",
            "certificate-authority-data is not base64",
        ),
        (
            f"{CONTEXT}, clusters: [{{name: x, cluster: {{server: 'https://h', certificate-authority: gone.crt}}}}]}}",
            "its certificate-authority gone.crt cannot be read",
        ),
    ],
)
def test_a_malformed_file_is_named_with_what_is_wrong(content: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    text = refusal(file)
    assert reason in text
    assert str(file) in text


def test_a_context_that_is_not_there_is_named_with_those_that_are(kubeconfig: Path) -> None:
    text = refusal(kubeconfig, context="production")
    assert 'mlbatch:kubernetes.context = "production"' in text
    assert "allowed: lab, other" in text


def ask(server: str, seconds: float = 1.0, authority: str | None = None) -> None:
    config = Kubeconfig(
        contents="", cluster="lab-cluster", server=server, authority=authority, insecure=False, proxy=None
    )
    check_answers(config, settings(), seconds=seconds)


@pytest.fixture
def status() -> dict[str, int]:
    """What the server below answers."""
    return {"code": 200}


@pytest.fixture
def server(status: dict[str, int]) -> Iterator[str]:
    """An API server's /readyz, without TLS."""

    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status["code"] if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server uses
            """Keep the tests' output clean."""

    with HTTPServer(("127.0.0.1", 0), Ready) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.mark.parametrize("code", [200, 401, 403])
def test_a_cluster_that_answers_passes(code: int, server: str, status: dict[str, int]) -> None:
    status["code"] = code
    ask(server)


def test_a_cluster_that_is_not_ready_is_named(server: str, status: dict[str, int]) -> None:
    status["code"] = 500
    with pytest.raises(KubeconfigError, match=r"lab-cluster at http://127\.0\.0\.1:\d+ does not answer: .*HTTP 500"):
        ask(server)


def test_a_cluster_that_refuses_the_connection_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(KubeconfigError, match=r"does not answer: no answer within 1 s: .*refused") as error:
        ask(f"https://127.0.0.1:{port}")
    assert "a preview needs it as much as an update" in str(error.value)


def test_a_cluster_that_says_nothing_is_given_up_on_within_bounds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = monotonic()
        with pytest.raises(KubeconfigError, match="does not answer"):
            ask(f"https://127.0.0.1:{silent.getsockname()[1]}", seconds=0.3)
        assert monotonic() - begin < 3


def test_an_authority_that_is_no_certificate_is_named() -> None:
    with pytest.raises(KubeconfigError, match="certificate authority cannot be read"):
        ask("https://127.0.0.1:1", authority="CERTIFICATE")


@pytest.mark.parametrize(
    "changes",
    [
        {"clusters": [{"name": "lab-cluster", "cluster": {"server": "https://[::1"}}]},
        {"clusters": [{"name": "lab-cluster", "cluster": {"server": "https://a", "certificate-authority": 5}}]},
        {"clusters": [{"name": "lab-cluster", "cluster": {"server": "https://a", "certificate-authority-data": "ä"}}]},
        {"contexts": [{"name": "lab", "context": {"cluster": ["lab-cluster"], "user": "admin"}}]},
        {"current-context": ["lab"]},
    ],
)
def test_entries_of_another_form_are_named_and_no_traceback(kubeconfig: Path, changes: dict[str, object]) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    kubeconfig.write_text(yaml.safe_dump({**document, **changes}))
    assert str(kubeconfig) in refusal(kubeconfig)


def test_a_context_whose_name_yaml_takes_for_a_number_can_be_named(kubeconfig: Path) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("name: other", "name: 123"))
    assert yaml.safe_load(read(kubeconfig, context="123").contents)["current-context"] == "123"


@pytest.mark.parametrize("name", ["~nosuchuser/config", "a\0b"])
def test_a_path_that_cannot_be_is_named(kubeconfig: Path, name: str) -> None:
    assert "mlbatch:kubernetes.kubeconfig" in refusal(kubeconfig, kubeconfig=name)
