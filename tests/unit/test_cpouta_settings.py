"""Section openstack: each invalid value gets one clear error, and valid values are accepted."""

import base64
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from components.openstack import catalogue
from stacks.config.errors import ConfigError, key
from stacks.settings import support_end
from stacks.targets.cpouta import support
from stacks.targets.cpouta.settings import MOST_KEYS, NODE_IMAGES
from tests.unit.configurations import ROOT, errors_of, settings_of, stack_settings

PRIVATE = (
    ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
)


def shipped(**openstack: Any) -> dict[str, Any]:
    """Return the shipped VM without the MLOps platform, with changed values. None removes a key."""
    raw = stack_settings("cpouta")
    del raw["mlops"]
    section = {**raw["openstack"], **openstack}
    return {**raw, "openstack": {name: value for name, value in section.items() if value is not None}}


def only(raw: dict[str, Any]) -> ConfigError:
    """Return the one error of a configuration."""
    (error,) = errors_of(raw)
    return error


def touched(kind: str) -> str:
    """Return a public key in hardware, in Base64 (openssh-portable, PROTOCOL.u2f)."""
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = curve.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    own = [ed25519.Ed25519PrivateKey.generate().public_key().public_bytes_raw()]
    parts = [kind.encode(), *([b"nistp256", point] if "ecdsa" in kind else own), b"ssh:"]
    return base64.b64encode(b"".join(len(part).to_bytes(4) + part for part in parts)).decode()


def public(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


def test_the_shipped_stack_is_the_ready_example() -> None:
    openstack = settings_of(shipped()).openstack
    assert (openstack.flavor, openstack.image, openstack.pool) == ("standard.xxlarge", "Ubuntu-24.04", "public")
    assert openstack.volume.size == 500
    assert openstack.volume.type == "standard"
    assert openstack.gpu_stack is None
    assert openstack.kind.node_image.startswith("kindest/node:v1.35.8@sha256:")


def test_the_shipped_stack_answers_the_setup_as_the_tutorial() -> None:
    mlops = settings_of(stack_settings("cpouta")).mlops
    assert (mlops.enabled, mlops.integration, mlops.option, mlops.local_registry) == (True, True, 4, True)


LAYERS = {"queueing": {"enabled": True}, "tenancy": {"enabled": True}}


class TestKeys:
    def test_others_keys_are_held_to_the_same(self) -> None:
        good = public(ed25519.Ed25519PrivateKey.generate())
        assert errors_of(shipped(otherPublicKeys=[good])) == []
        error = only(shipped(otherPublicKeys=[good, PRIVATE]))
        assert key(error.path) == "mlbatch:openstack.otherPublicKeys[1]"
        assert PRIVATE.splitlines()[1] not in str(error)

    @pytest.mark.parametrize("kind", ["sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"])
    def test_others_may_have_security_keys_which_nobody_touches_for_the_stack(self, kind: str) -> None:
        blob = touched(kind)
        (taken,) = settings_of(shipped(otherPublicKeys=[f" {kind}  {blob} me at home\n"])).openstack.other_public_keys
        assert taken == f"{kind} {blob} me at home"
        error = only(shipped(sshPublicKey=f"{kind} {blob}"))
        assert key(error.path) == "mlbatch:openstack.sshPublicKey"
        assert error.message == "this key must be touched at each use, which the stack cannot do"
        for wrong in (f"{kind} hunter2", f"{kind} {blob[8:]}", f"{kind} {blob[:-8]}", kind):
            assert "hunter2" not in str(only(shipped(otherPublicKeys=[wrong])))

    @pytest.mark.parametrize("line", ["\n", "\r", "\x0b", "\x85", "\u2028", "\x00", "\x07"])
    @pytest.mark.parametrize("kind", ["ssh-ed25519", "sk-ssh-ed25519@openssh.com"])
    def test_nobody_is_let_in_by_a_second_line_of_a_key(self, kind: str, line: str) -> None:
        mine = public(ed25519.Ed25519PrivateKey.generate()) if kind == "ssh-ed25519" else f"{kind} {touched(kind)}"
        error = only(shipped(otherPublicKeys=[f"{mine} me{line}{public(ed25519.Ed25519PrivateKey.generate())}"]))
        assert key(error.path) == "mlbatch:openstack.otherPublicKeys[0]"
        assert error.message in ("this has several lines", "this contains invisible characters")

    def test_more_keys_than_a_vm_is_handed_are_refused(self) -> None:
        large = public(rsa.generate_private_key(65537, 4096))
        error = only(shipped(otherPublicKeys=[large] * (MOST_KEYS // len(large) + 1)))
        assert key(error.path) == "mlbatch:openstack.otherPublicKeys"
        assert error.expected == "at most 12000 characters in total"
        assert errors_of(shipped(otherPublicKeys=[large] * (MOST_KEYS // len(large)))) == []

    def test_nova_gets_one_blank_between_type_and_key(self) -> None:
        kind, secret = public(ed25519.Ed25519PrivateKey.generate()).split()
        for written in (f"{kind}\t{secret}  me at home", f" {kind}  {secret} me at home\r\n"):
            assert settings_of(shipped(sshPublicKey=written)).openstack.ssh_public_key == f"{kind} {secret} me at home"

    @pytest.mark.parametrize(
        "pasted", ["PuTTY-User-Key-File-3: ssh-ed25519 Private-Lines: 1 AAAAhunter2", "b3BlbnNzaC1rZXktdjEAAAAAhunter2"]
    )
    def test_a_private_key_in_another_form_is_not_repeated(self, pasted: str) -> None:
        error = only(shipped(privateKeyFile=pasted))
        assert error.message.startswith("this is a private key instead of its file")
        assert "hunter2" not in str(error)

    def test_a_key_with_a_short_remark_is_taken(self) -> None:
        assert errors_of(shipped(sshPublicKey=f"{public(ed25519.Ed25519PrivateKey.generate())} {'x' * 2900}")) == []

    @pytest.mark.parametrize(
        "made",
        [
            ed25519.Ed25519PrivateKey.generate(),
            ec.generate_private_key(ec.SECP256R1()),
            rsa.generate_private_key(65537, 2048),
        ],
    )
    def test_keys_that_sshd_takes_are_taken(self, made: Any) -> None:
        assert errors_of(shipped(sshPublicKey=f" {public(made)} me@home\n")) == []


def version_rows() -> list[str]:
    """Return the rows of the tables in docs/cpouta.md, section Versions."""
    ends, kinds = catalogue.ENDS, {version: version.rpartition(".")[0] for version in NODE_IMAGES}
    docker, containerd = (text.partition("-")[0] for text in (catalogue.DOCKER, catalogue.CONTAINERD))
    choices: list[tuple[str, Mapping[str, date | None]]] = [
        ("Ubuntu", ends.ubuntu),
        ("NVIDIA driver", ends.driver),
        ("CUDA", dict.fromkeys(catalogue.CUDA)),
        ("NVIDIA container toolkit", dict.fromkeys(catalogue.TOOLKITS)),
        ("Docker", {docker: None}),
        ("containerd", {containerd: ends.containerd[containerd.rpartition(".")[0]]}),
        ("Kubernetes", {version: ends.kubernetes[minor] for version, minor in kinds.items()}),
    ]
    found = []
    for software, versions in choices:
        first, *others = (f"{version} ({end})" if end else version for version, end in versions.items())
        found.append(f"| {software} | {first} | {', '.join(others)} |")
    return found + [f"| {model} | {old.driver} | {old.cuda} |" for model, old in catalogue.OLD_GPUS.items()]


def test_the_guide_has_the_versions_of_the_catalogue() -> None:
    section = (ROOT / "docs" / "cpouta.md").read_text().partition("\n## Versions\n")[2].partition("\n## ")[0]
    listed = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    assert [line for line in listed if line not in ("| Software | Default | Also possible |", LAST)] == version_rows()


LAST = "| GPU | Last driver | Last CUDA |"


@pytest.mark.parametrize(
    ("day", "values", "said"),
    [
        (date(2026, 11, 27), {}, []),
        (date(2027, 1, 1), {}, ["kind.kubernetes: Kubernetes 1.35 gets fixes until 2027-02-28"]),
        (date(2026, 11, 27), {"kind": {"kubernetes": "1.36.4"}, "image": "Ubuntu-26.04"}, []),
        (
            date(2026, 11, 27),
            {"kind": {"kubernetes": "1.34.0"}},
            ["kind.kubernetes: Kubernetes 1.34 gets fixes until 2026-10-27, and then not even for security. The d"],
        ),
        (date(2027, 4, 3), {"kind": {"kubernetes": "1.36.4"}, "image": "Ubuntu-22.04"}, ["image: Ubuntu 22.04 gets"]),
        (
            date(2028, 5, 2),
            {"kind": {"kubernetes": "1.36.4"}, "flavor": "gpu.1.1gpu"},
            [
                "kind.kubernetes: Kubernetes 1.36 gets fixes until 2027-06-28, and then not even for security. Use a",
                "gpu.driver: NVIDIA's driver 580 gets fixes until 2028-06-30",
                "generation: containerd 2.3 gets fixes until 2028-04-27",
            ],
        ),
    ],
)
def test_what_ends_within_sixty_days_is_warned_of(
    day: date, values: dict[str, Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support_end, "today", lambda: day)
    openstack = settings_of(shipped(**values)).openstack
    warnings = [*support.warnings(openstack)]
    of_cluster = [text for text in warnings if "kind.kubernetes" in text]
    assert [*support.warnings(openstack, is_kept=True)] == of_cluster, "an existing VM keeps its own versions"
    found = [text.removeprefix("mlbatch:openstack.") for text in warnings]
    assert [text[: len(wanted)] for text, wanted in zip(found, said, strict=True)] == said


class TestGpus:
    def test_a_flavor_with_gpus_gets_what_is_known_to_work(self) -> None:
        stack = settings_of(shipped(flavor="gpu.1.1gpu")).openstack.gpu_stack
        assert (stack.driver, stack.cuda, stack.toolkit) == ("580", "12.9", "1.20.1-1")


def test_billing_units_are_csc_s() -> None:
    rates = settings_of(shipped()).openstack.rates
    assert {name: str(rate) for name, rate in rates.items()} == {
        "vm": "8.4",
        "floatingIp": "0.2",
        "volume": "1.7578125",
    }


def test_the_batch_platform_is_off_also_where_the_engine_gives_its_empty_sections() -> None:
    """The engine gives the program each section that Pulumi.yaml declares, as `{}` where the stack has none."""
    off = {"queueing": {}, "tenancy": {}, "monitoring": {}}
    settings = settings_of({**shipped(), "mlops": {"enabled": True, "integration": True, "option": 4}, **off})
    assert not any(section.enabled for section in (settings.queueing, settings.tenancy, settings.monitoring))
