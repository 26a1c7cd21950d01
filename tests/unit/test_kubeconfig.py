"""A kubeconfig is checked before anything is registered, and only the chosen context reaches the provider."""

import base64
import json
import os
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from time import monotonic

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from stacks.config import kubeconfig as kubeconfigs
from stacks.config.kubeconfig import Kubeconfig, KubeconfigError, check_answers
from stacks.settings.kubernetes import KubernetesSettings
from tests.unit.configurations import errors_of
from tests.unit.servers import Handler, serving, silent


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach loopback directly, also if the machine has a proxy."""
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


@pytest.mark.parametrize(("token", "ends"), [("sha256~kL0mN", True), ("correct-horse-battery", False)])
def test_a_token_of_openshifts_sign_in_ends(kubeconfig: Path, token: str, ends: bool) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("correct-horse-battery", token))
    said = list(read(kubeconfig).warnings())
    assert bool(said) is ends
    assert all("`pulumi up --refresh=false`" in text and "kL0mN" not in text for text in said)


def test_a_cluster_for_which_others_may_stand_in_is_warned_of(kubeconfig: Path) -> None:
    assert list(read(kubeconfig).warnings()) == []
    document = yaml.safe_load(kubeconfig.read_text())
    for entry in document["clusters"]:
        entry["cluster"]["insecure-skip-tls-verify"] = True
    kubeconfig.write_text(yaml.safe_dump(document))
    (said,) = read(kubeconfig).warnings()
    assert "cluster lab-cluster has insecure-skip-tls-verify" in said
    assert "certificate-authority-data" in said


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
    assert "/gone (from the setting)" in refusal(tmp_path / "absent", kubeconfig="gone")


CONTENTS = yaml.safe_dump({"kind": "Config", "users": [{"name": "admin", "user": {"token": "hunter2"}}]})


@pytest.mark.parametrize(
    "text",
    [
        CONTENTS,
        CONTENTS.partition("\n")[2],
        CONTENTS.replace("\n", "\r\n"),
        json.dumps(yaml.safe_load(CONTENTS)),
        yaml.safe_dump(yaml.safe_load(CONTENTS), default_flow_style=True).strip(),
        base64.b64encode(CONTENTS.encode()).decode(),
    ],
)
def test_the_contents_in_the_place_of_the_path_are_refused_and_not_shown(text: str) -> None:
    (problem,) = errors_of({"target": "simulated", "kubernetes": {"kubeconfig": text}})
    assert str(problem).startswith("mlbatch:kubernetes.kubeconfig\n    wrong:   this is a kubeconfig's content")
    with pytest.raises(KubeconfigError, match="contains a kubeconfig") as error:
        kubeconfigs.read(settings(), base=Path("/"), environment={"KUBECONFIG": text})
    for said in (str(problem), str(error.value)):
        assert "hunter2" not in said
        assert base64.b64encode(b"hunter2").decode()[:6] not in said
        assert text[:20] not in said


@pytest.mark.parametrize("path", ["C:/users/alice/config", "~/kind:1/users", "clusters/config", "a" * 64])
def test_an_unusual_path_is_one(path: str) -> None:
    assert settings(kubeconfig=path).kubeconfig == path


def test_a_key_in_the_place_of_its_file_is_not_shown(kubeconfig: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"client-key": "aHVudGVyMg=="}
    kubeconfig.write_text(yaml.safe_dump(document))
    text = refusal(kubeconfig)
    assert "its client-key cannot be read" in text
    assert "aHVudGVyMg" not in text


CONTEXT = "{kind: Config, current-context: lab, contexts: [{name: lab, context: {cluster: x}}]"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "line 1, column 2 is not valid YAML"),
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
    assert text.startswith("mlbatch:kubernetes.context\n")
    assert "allowed: lab, other" in text


def ask(
    server: str, seconds: float = 1.0, authority: str | None = None, insecure: bool = False, proxy: str | None = None
) -> None:
    config = Kubeconfig(
        contents="", cluster="lab-cluster", server=server, authority=authority, insecure=insecure, proxy=proxy
    )
    check_answers(config, seconds=seconds)


@pytest.fixture
def status() -> dict[str, int]:
    """The answer of the server below."""
    return {"code": 200}


@pytest.fixture
def server(status: dict[str, int]) -> Iterator[str]:
    """An API server's /readyz, without TLS."""

    class Ready(Handler):
        def respond(self) -> None:
            self.answer(status["code"] if self.path == "/readyz" else 404)

    with serving(Ready) as port:
        yield f"http://127.0.0.1:{port}"


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
    assert "a preview needs it too" in str(error.value)


def test_a_cluster_that_says_nothing_is_given_up_on_within_bounds() -> None:
    with silent() as address:
        begin = monotonic()
        with pytest.raises(KubeconfigError, match="does not answer"):
            ask(f"https://{address}", seconds=0.3)
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


@pytest.fixture
def over_tls(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """An API server's /readyz over TLS: its address and its self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    (tmp_path / "both.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")

    class Ready(Handler):
        def respond(self) -> None:
            self.answer(200)

    with serving(Ready, context) as port:
        yield f"https://127.0.0.1:{port}", pem.decode()


def test_a_certificate_is_verified_by_the_authority_of_the_kubeconfig(over_tls: tuple[str, str]) -> None:
    address, authority = over_tls
    ask(address, authority=authority)
    with pytest.raises(KubeconfigError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(address)


def test_it_is_not_verified_where_the_kubeconfig_says_so(over_tls: tuple[str, str], kubeconfig: Path) -> None:
    address, _ = over_tls
    ask(address, insecure=True)
    document = yaml.safe_load(kubeconfig.read_text())
    assert read(kubeconfig).insecure is False
    cluster = {"server": address, "insecure-skip-tls-verify": True}
    kubeconfig.write_text(yaml.safe_dump({**document, "clusters": [{"name": "lab-cluster", "cluster": cluster}]}))
    assert read(kubeconfig).insecure is True
    assert yaml.safe_load(read(kubeconfig).contents)["clusters"][0]["cluster"] == cluster


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_cluster_is_reached_through_the_proxy_of_the_kubeconfig(
    scheme: str, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy")
    asked: list[str] = []

    class Proxy(Handler):
        def respond(self) -> None:
            asked.append(self.path)
            self.answer(502 if self.command == "CONNECT" else 200)

    with serving(Proxy) as port:
        url = f"http://127.0.0.1:{port}"
        if scheme == "http":
            ask("http://api.lab.example", proxy=url)
        else:
            with pytest.raises(KubeconfigError, match="502"):
                ask("https://api.lab.example", proxy=url)
    assert asked == ["http://api.lab.example/readyz" if scheme == "http" else "api.lab.example:443"]
    document = yaml.safe_load(kubeconfig.read_text())
    cluster = {"server": "https://api.lab.example", "proxy-url": url}
    kubeconfig.write_text(yaml.safe_dump({**document, "clusters": [{"name": "lab-cluster", "cluster": cluster}]}))
    assert read(kubeconfig).proxy == url
