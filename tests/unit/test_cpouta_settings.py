"""Section openstack: each bad value gets one clear error, and what is good is taken."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from stacks.config.errors import ConfigError, key
from stacks.targets.cpouta.settings import MOST_KEYS
from stacks.validation import rules
from tests.unit.configurations import ROOT, errors_of, partial_of, settings_of

PRIVATE = (
    ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
)


def shipped(**openstack: Any) -> dict[str, Any]:
    """Return the shipped VM without the MLOps platform, with some values changed, or taken out where they are None."""
    config = yaml.safe_load((ROOT / "Pulumi.cpouta.yaml").read_text())["config"]
    raw = {name.removeprefix("mlbatch:"): value for name, value in config.items() if name != "mlbatch:mlops"}
    section = {**raw["openstack"], **openstack}
    return {**raw, "openstack": {name: value for name, value in section.items() if value is not None}}


def only(raw: dict[str, Any]) -> ConfigError:
    """Return the one mistake of a configuration."""
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
    assert (openstack.flavor, openstack.image, openstack.pool) == ("standard.xxlarge", "Ubuntu-22.04", "public")
    assert openstack.volume.size == 500
    assert openstack.volume.type == "standard"
    assert openstack.gpu_stack is None
    assert openstack.kind.node_image.startswith("kindest/node:v1.34.0@sha256:")


def test_the_shipped_stack_answers_the_setup_as_the_tutorial() -> None:
    config = yaml.safe_load((ROOT / "Pulumi.cpouta.yaml").read_text())["config"]
    mlops = settings_of({name.removeprefix("mlbatch:"): value for name, value in config.items()}).mlops
    assert (mlops.enabled, mlops.integration, mlops.option, mlops.local_registry) == (True, True, 4, True)


def test_a_deployment_that_has_too_few_cores_is_refused() -> None:
    error = only({**shipped(), "mlops": {"enabled": True, "option": 1}})
    assert key(error.path) == "mlbatch:mlops.option"
    assert error.message == "integration-kubeflow-monitoring needs 12 cores, and flavor standard.xxlarge has 8"
    assert errors_of({**shipped(flavor="hpc.6.14core"), "mlops": {"enabled": True, "option": 1}}) == []


def test_ray_needs_cores_of_its_own_beside_a_deployment_where_it_is_installed() -> None:
    raw = {**shipped(), "mlops": {"enabled": True}}
    kuberay = {"enabled": True, "kuberay": {"enabled": True}}
    error = only({**raw, "queueing": kuberay})
    assert key(error.path) == "mlbatch:mlops.option"
    assert error.value == 4
    assert error.message == (
        "integration-standalone-kfp-kserve-monitoring needs 12 cores, and flavor standard.xxlarge has 8"
    )
    assert errors_of({**raw, **shipped(flavor="hpc.6.14core"), "queueing": kuberay}) == []
    for queueing in ({"enabled": True}, {"enabled": False, "kuberay": {"enabled": True}}, {}):
        assert errors_of({**raw, "queueing": queueing}) == []


def test_the_name_of_every_projects_own_security_group_is_refused() -> None:
    error = only(shipped(name="default"))
    assert (key(error.path), error.value) == ("mlbatch:openstack.name", "default")
    assert error.message == "each project has a security group of this name, and OpenStack refuses another one"
    assert error.hint == "remove the key for mlops-platform"


def test_the_tutorials_misspelt_flavor_is_told_its_name() -> None:
    error = only(shipped(flavor="gpu.1.1.gpu"))
    assert key(error.path) == "mlbatch:openstack.flavor"
    assert error.hint == "did you mean gpu.1.1gpu?"
    assert "standard.xxlarge" in error.expected


class TestSources:
    def test_everybody_is_refused(self) -> None:
        error = only(shipped(sshFrom={"all": "0.0.0.0/0"}))
        assert key(error.path) == "mlbatch:openstack.sshFrom"
        assert error.message == "together these let in 0.0.0.0/0, which is next to everybody"

    def test_two_halves_are_everybody(self) -> None:
        error = only(shipped(sshFrom={"lower": "0.0.0.0/1", "upper": "128.0.0.0/1"}))
        assert "0.0.0.0/0" in error.message

    def test_four_quarters_are_everybody_and_so_is_ipv6(self) -> None:
        quarters = {f"q{number}": f"{number * 64}.0.0.0/2" for number in range(4)}
        assert "0.0.0.0/0" in only(shipped(sshFrom=quarters)).message
        assert "::/0" in only(shipped(sshFrom={"me": "198.51.100.9/32", "all": "::/0"})).message

    def test_many_networks_are_next_to_everybody_as_one_is(self) -> None:
        odd = {f"n{number}": f"{number}.0.0.0/9" for number in (1, 3)}
        assert errors_of(shipped(sshFrom=odd)) == []
        error = only(shipped(sshFrom={**odd, "n5": "5.0.0.0/32"}))
        assert key(error.path) == "mlbatch:openstack.sshFrom"
        assert error.message == "together these let in more than a /8 (IPv6: /32) has, which is next to everybody"
        site = {"me": "86.50.1.1/32", "a": "2001:1000::/32", "b": "2001:3000::/32"}
        assert "more than a /8 (IPv6: /32) has" in only(shipped(sshFrom=site)).message

    def test_everybody_is_taken_where_that_is_said(self) -> None:
        assert errors_of(shipped(sshFrom={"all": "0.0.0.0/0"}, allowAnySource=True)) == []

    def test_halves_of_another_port_are_everybody(self) -> None:
        ports = [
            {"name": "a", "port": 443, "source": "0.0.0.0/1"},
            {"name": "b", "port": 443, "source": "128.0.0.0/1"},
        ]
        error = only(shipped(ports=ports))
        assert key(error.path) == "mlbatch:openstack.ports"

    def test_half_of_ssh_by_a_port_is_everybody_with_the_other_half(self) -> None:
        half = [
            {"name": "more", "port": 22, "source": "128.0.0.0/2"},
            {"name": "m", "port": 22, "source": "192.0.0.0/2"},
        ]
        assert any("128.0.0.0/1" in error.message for error in errors_of(shipped(ports=half)))

    @pytest.mark.parametrize(
        ("source", "message", "hint"),
        [
            ("203.0.113.7/24", "this is the address of a machine in a network", "did you mean 203.0.113.0/24?"),
            ("203.0.113.7", "this is an address without a prefix length", "did you mean 203.0.113.7/32?"),
            ("my house", "this is no network", "write an address, a slash and the prefix length"),
        ],
    )
    def test_a_network_that_is_none_is_refused(self, source: str, message: str, hint: str) -> None:
        error = only(shipped(sshFrom={"me": source}))
        assert key(error.path) == "mlbatch:openstack.sshFrom.me"
        assert (error.message, error.hint) == (message, hint)

    @pytest.mark.parametrize(
        "source",
        ["192.168.1.20/32", "127.0.0.1/32", "10.0.0.0/8", "239.0.0.1/32", "fc00::/7", "100.64.0.1/32", "198.18.0.1/32"],
    )
    def test_a_network_from_which_nobody_gets_to_the_vm_is_refused(self, source: str) -> None:
        error = only(shipped(sshFrom={"me": source}))
        assert (key(error.path), error.value) == ("mlbatch:openstack.sshFrom.me", source)
        assert error.message.endswith("it is none of the internet")
        assert "/32" in error.hint
        assert errors_of(shipped(ports=[{"name": "bastion", "port": 22, "source": "192.168.1.0/24"}])) == []

    def test_ipv6_alone_does_not_reach_a_floating_address_of_ipv4(self) -> None:
        error = only(shipped(sshFrom={"me": "2a02:2770::7/128"}))
        assert key(error.path) == "mlbatch:openstack.sshFrom"
        assert error.message == "these are IPv6 alone, and the VM's floating address is one of IPv4"
        assert errors_of(shipped(sshFrom={"me": "2a02:2770::7/128", "office": "86.50.1.1/32"})) == []

    def test_the_examples_address_is_warned_of_and_ones_own_is_not(self) -> None:
        def said(source: str) -> list[str]:
            return list(rules.warnings(partial_of(shipped(sshFrom={"me": source}))))

        (warning,) = said("203.0.113.7/32")
        assert warning.startswith("mlbatch:openstack.sshFrom.me: 203.0.113.7/32 is kept for examples")
        assert said("86.50.1.1/32") == []

    def test_nobody_is_refused(self) -> None:
        assert (
            only(shipped(sshFrom={})).message
            == "nobody could sign in, and the stack itself could not reach the cluster"
        )

    def test_one_network_twice_is_refused_as_openstack_would(self) -> None:
        error = only(shipped(sshFrom={"me": "203.0.113.7/32", "i": "203.0.113.7/32"}))
        assert (key(error.path), error.expected) == ("mlbatch:openstack.sshFrom.i", "each network once for a port")
        assert error.message == (
            "mlbatch:openstack.sshFrom.me lets in the same network by port 22 already, and OpenStack refuses a second "
            "rule of it"
        )

    def test_rules_that_differ_by_their_names_alone_are_refused(self) -> None:
        web = {"port": 443, "source": "192.0.2.0/28"}
        error = only(shipped(ports=[{"name": "a", **web}, {"name": "b", **web}]))
        assert key(error.path) == "mlbatch:openstack.ports[1]"
        error = only(shipped(ports=[{"name": "ssh", "port": 22, "source": "203.0.113.7/32"}]))
        assert error.message.startswith("mlbatch:openstack.sshFrom.me lets in the same network by port 22 already")
        assert errors_of(shipped(ports=[{"name": "a", **web}, {"name": "b", **web, "port": 80}])) == []

    def test_the_name_of_a_rule_is_a_name(self) -> None:
        error = only(shipped(ports=[{"name": "A", "port": 443, "source": "192.0.2.0/28"}]))
        assert (key(error.path), error.message) == (
            "mlbatch:openstack.ports[0].name",
            "this cannot be the name of a rule",
        )
        assert "'My House'" in only(shipped(sshFrom={"My House": "203.0.113.7/32"})).message


class TestKeys:
    def test_a_private_key_is_refused_and_not_repeated(self) -> None:
        error = only(shipped(sshPublicKey=PRIVATE))
        assert key(error.path) == "mlbatch:openstack.sshPublicKey"
        assert "private key" in error.message
        assert PRIVATE.splitlines()[1] not in str(error)

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
        assert error.message == "somebody has to touch this key at each use, and nobody does for the stack"
        for wrong in (f"{kind} hunter2", f"{kind} {blob[8:]}", f"{kind} {blob[:-8]}", kind):
            assert "hunter2" not in str(only(shipped(otherPublicKeys=[wrong])))

    @pytest.mark.parametrize("line", ["\n", "\r", "\x0b", "\x85", "\u2028", "\x00", "\x07"])
    @pytest.mark.parametrize("kind", ["ssh-ed25519", "sk-ssh-ed25519@openssh.com"])
    def test_nobody_is_let_in_by_a_second_line_of_a_key(self, kind: str, line: str) -> None:
        mine = public(ed25519.Ed25519PrivateKey.generate()) if kind == "ssh-ed25519" else f"{kind} {touched(kind)}"
        error = only(shipped(otherPublicKeys=[f"{mine} me{line}{public(ed25519.Ed25519PrivateKey.generate())}"]))
        assert key(error.path) == "mlbatch:openstack.otherPublicKeys[0]"
        assert error.message in ("these are several lines", "there are characters in it that nobody sees")

    def test_a_key_with_a_remark_that_no_vm_is_handed_is_refused(self) -> None:
        mine = public(ed25519.Ed25519PrivateKey.generate())
        assert errors_of(shipped(sshPublicKey=f"{mine} {'x' * 2900}")) == []
        for remark in ("x" * 3000, "\N{GRINNING FACE}" * 300):
            error = only(shipped(sshPublicKey=f"{mine} {remark}"))
            assert key(error.path) == "mlbatch:openstack.sshPublicKey"
            assert error.hint == "shorten what is behind the key"

    def test_more_keys_than_a_vm_is_handed_are_refused(self) -> None:
        large = public(rsa.generate_private_key(65537, 4096))
        error = only(shipped(otherPublicKeys=[large] * (MOST_KEYS // len(large) + 1)))
        assert key(error.path) == "mlbatch:openstack.otherPublicKeys"
        assert error.expected == "at most 12000 characters together"
        assert errors_of(shipped(otherPublicKeys=[large] * (MOST_KEYS // len(large)))) == []

    def test_nova_gets_one_blank_between_type_and_key(self) -> None:
        kind, secret = public(ed25519.Ed25519PrivateKey.generate()).split()
        for written in (f"{kind}\t{secret}  me at home", f" {kind}  {secret} me at home\r\n"):
            assert settings_of(shipped(sshPublicKey=written)).openstack.ssh_public_key == f"{kind} {secret} me at home"

    @pytest.mark.parametrize("file", ["~/.ssh/%h", '/home/me/a"b', "~/.ssh/${USER}.pem", "~/.ssh/a\tb"])
    def test_a_path_that_ssh_would_not_take_as_it_is_is_refused(self, file: str) -> None:
        error = only(shipped(privateKeyFile=file))
        assert (key(error.path), error.value) == ("mlbatch:openstack.privateKeyFile", file)
        assert error.message.startswith("ssh would read another path")
        for usual in ("/home/me/my keys/x", "~/.ssh/$me", "~/.ssh/ключ"):
            assert errors_of(shipped(privateKeyFile=usual)) == []

    def test_one_in_place_of_its_files_path_is_not_repeated_either(self) -> None:
        error = only(shipped(privateKeyFile=PRIVATE))
        assert key(error.path) == "mlbatch:openstack.privateKeyFile"
        assert PRIVATE.splitlines()[1] not in str(error)

    @pytest.mark.parametrize("file", ["id_ed25519", "$HOME/.ssh/key", "~alice/.ssh/key", r"C:\Users\me\key"])
    def test_a_path_that_ssh_would_look_for_elsewhere_is_refused(self, file: str) -> None:
        error = only(shipped(privateKeyFile=file))
        assert (key(error.path), error.value) == ("mlbatch:openstack.privateKeyFile", file)
        assert error.expected == "the path of a private key's file, which begins with / or ~/"

    def test_the_file_of_the_public_half_is_told_the_others_name(self) -> None:
        assert only(shipped(privateKeyFile="~/.ssh/key.pub")).hint == "did you mean ~/.ssh/key?"

    @pytest.mark.parametrize(
        "pasted", ["PuTTY-User-Key-File-3: ssh-ed25519 Private-Lines: 1 AAAAhunter2", "b3BlbnNzaC1rZXktdjEAAAAAhunter2"]
    )
    def test_a_private_key_in_another_form_is_not_repeated(self, pasted: str) -> None:
        error = only(shipped(privateKeyFile=pasted))
        assert error.message.startswith("this is a private key itself")
        assert "hunter2" not in str(error)

    def test_a_short_rsa_key_is_refused(self) -> None:
        short = public(rsa.generate_private_key(65537, 1024))
        assert only(shipped(sshPublicKey=short)).message == "this key has 1024 bits"

    def test_what_is_no_key_is_refused_and_not_repeated(self) -> None:
        error = only(shipped(sshPublicKey="ssh-ed25519 hunter2"))
        assert error.message == "this is no public key as OpenSSH writes them"
        assert "hunter2" not in str(error)

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


class TestUser:
    @pytest.mark.parametrize("user", ["daemon", "sshd", "nobody", "sudo", "systemd-network", "docker", "dhcpcd"])
    def test_a_name_that_the_system_has_itself_is_refused(self, user: str) -> None:
        error = only(shipped(user=user))
        assert (key(error.path), error.value) == ("mlbatch:openstack.user", user)
        assert error.message == "the system has a user or a group of this name itself"
        assert error.hint == "remove the key for ubuntu"

    def test_root_is_refused_and_other_names_are_taken(self) -> None:
        assert only(shipped(user="root")).message == "nobody signs in as root"
        for user in ("ubuntu", "alice", "cloud-user"):
            assert errors_of(shipped(user=user)) == []


class TestCluster:
    @pytest.mark.parametrize("port", [5000, 5001, 5050, 6500, 6501, 8080, 8090, 9001])
    def test_a_port_that_the_vm_needs_for_something_else_is_refused(self, port: int) -> None:
        error = only(shipped(kind={"apiPort": port}))
        assert (key(error.path), error.value) == ("mlbatch:openstack.kind.apiPort", port)
        assert error.hint == "remove the key for 6443"
        assert errors_of(shipped(kind={"apiPort": 6444})) == []

    @pytest.mark.parametrize(
        ("kubernetes", "since"), [("1.24.0", "July 2023"), ("1.31.12", "November 2025"), ("1.33.4", "June 2026")]
    )
    def test_a_kubernetes_without_fixes_is_warned_of(self, kubernetes: str, since: str) -> None:
        own = {"me": "86.50.1.1/32"}
        (warning,) = rules.warnings(partial_of(shipped(sshFrom=own, kind={"kubernetes": kubernetes})))
        assert f"Kubernetes {kubernetes} gets no fixes since {since}" in warning
        assert list(rules.warnings(partial_of(shipped(sshFrom=own)))) == []


class TestVolume:
    def test_one_that_the_platform_does_not_fit_is_refused(self) -> None:
        error = only(shipped(volume={"size": 74}))
        assert (key(error.path), error.expected) == ("mlbatch:openstack.volume.size", "at least 75 GiB")
        assert errors_of(shipped(volume={"size": 75})) == []

    def test_a_capacity_volume_is_refused(self) -> None:
        assert only(shipped(volume={"type": "capacity"})).expected == "standard"

    @pytest.mark.parametrize(("name", "value"), [("size", 500), ("type", "standard")])
    def test_what_a_volume_that_is_there_would_not_follow_is_refused(self, name: str, value: object) -> None:
        error = only(shipped(volume={"existing": "11111111-2222-3333-4444-555555555555", name: value}))
        assert (key(error.path), error.value) == (f"mlbatch:openstack.volume.{name}", value)
        assert error.expected == "nothing beside existing"

    def test_an_id_that_is_none_is_refused(self) -> None:
        assert only(shipped(volume={"existing": "my-volume"})).message == "this is no volume's id"


class TestImages:
    @pytest.mark.parametrize("image", ["Ubuntu-20.04", "Ubuntu-26.04", "AlmaLinux-9", "CentOS-22.04", ""])
    def test_one_that_the_first_boot_is_not_made_for_is_refused(self, image: str) -> None:
        for flavor in ("standard.xxlarge", "gpu.1.1gpu"):
            error = only(shipped(flavor=flavor, image=image))
            assert (key(error.path), error.value) == ("mlbatch:openstack.image", image)
            assert error.expected == (
                "Ubuntu-22.04, Ubuntu-24.04, or an image of your own with its release in mlbatch:openstack.ubuntu"
            )

    def test_ones_own_says_its_release(self) -> None:
        assert errors_of(shipped(flavor="gpu.1.1gpu", image="our-ubuntu", ubuntu="22.04")) == []
        error = only(shipped(flavor="gpu.1.1gpu", image="our-ubuntu", ubuntu="24.04"))
        assert "CUDA 12.2 is packaged for Ubuntu 22.04, and the image has 24.04" in error.message

    def test_a_release_that_is_not_the_images_is_refused(self) -> None:
        error = only(shipped(ubuntu="24.04"))
        assert (key(error.path), error.message) == (
            "mlbatch:openstack.ubuntu",
            "Ubuntu-22.04 is CSC's image of Ubuntu 22.04",
        )


class TestGpus:
    def test_gpu_software_without_a_gpu_is_refused(self) -> None:
        error = only(shipped(gpu={}))
        assert error.message == "flavor standard.xxlarge has no GPU"
        assert error.expected == "nothing, or a flavor with GPUs: gpu.1.1gpu, gpu.1.2gpu, gpu.1.4gpu"

    def test_a_flavor_with_gpus_gets_what_is_known_to_work(self) -> None:
        stack = settings_of(shipped(flavor="gpu.1.1gpu")).openstack.gpu_stack
        assert (stack.driver, stack.cuda, stack.toolkit) == ("535", "12.2", "1.17.8-1")

    def test_a_combination_that_nobody_has_run_is_refused(self) -> None:
        error = only(shipped(flavor="gpu.1.1gpu", gpu={"driver": "470"}))
        assert "CUDA 12.2 needs driver 535 or later, and 470 is older" in error.message
        assert error.expected == "driver 535, CUDA 12.2 and toolkit 1.17.8-1 on an image of Ubuntu 22.04"

    def test_the_fix_of_wrong_software_on_an_ubuntu_without_it_names_both(self) -> None:
        gpu = {"driver": "470", "cuda": "11.0", "toolkit": "1.0.0-1"}
        error = only(shipped(flavor="gpu.1.1gpu", image="Ubuntu-24.04", gpu=gpu))
        assert error.hint == "remove the section for these, and set mlbatch:openstack.image to Ubuntu-22.04"
        assert errors_of(shipped(flavor="gpu.1.1gpu", image="Ubuntu-22.04")) == []
        error = only(shipped(flavor="gpu.1.1gpu", gpu=gpu))
        assert error.hint == "remove the section for these"

    def test_an_operator_or_shared_gpus_without_a_gpu_are_refused(self) -> None:
        error = only({**shipped(), "gpu": {"operator": True, "featureDiscovery": True}})
        assert (key(error.path), error.message) == ("mlbatch:gpu.operator", "flavor standard.xxlarge has no GPU")
        assert key(only({**shipped(), "nvshare": {"enabled": True}}).path) == "mlbatch:nvshare.enabled"

    def test_shared_gpus_need_who_offers_the_whole_ones(self) -> None:
        error = only({**shipped(flavor="gpu.1.1gpu"), "nvshare": {"enabled": True}})
        assert (key(error.path), error.value) == ("mlbatch:nvshare.enabled", True)
        assert error.expected == "mlbatch:gpu.operator and mlbatch:gpu.featureDiscovery true beside it"
        gpu = {"operator": True, "featureDiscovery": True}
        assert errors_of({**shipped(flavor="gpu.1.1gpu"), "nvshare": {"enabled": True}, "gpu": gpu}) == []

    def test_teams_whose_gpus_nobody_offers_are_warned_of(self) -> None:
        teams = [{"name": "blue", "users": ["alice"], "share": 1}]
        raw = {"queueing": {"enabled": True}, "tenancy": {"enabled": True}, "teams": teams}

        def said(flavor: str, **gpu: bool) -> list[str]:
            found = rules.warnings(partial_of({**shipped(flavor=flavor), **raw, "gpu": gpu}))
            return [text for text in found if text.startswith("mlbatch:gpu.operator")]

        (warning,) = said("gpu.1.1gpu")
        assert "nobody offers the GPUs of gpu.1.1gpu to pods" in warning
        assert said("gpu.1.1gpu", operator=True, featureDiscovery=True) == said("standard.xxlarge") == []

    def test_cudas_packages_need_room_on_a_boot_volume(self) -> None:
        error = only(shipped(flavor="gpu.1.1gpu", bootVolume=39))
        assert (key(error.path), error.expected) == ("mlbatch:openstack.bootVolume", "at least 40 GiB")
        assert errors_of(shipped(flavor="gpu.1.1gpu", bootVolume=40)) == []
        assert errors_of(shipped(bootVolume=20)) == []

    def test_a_second_driver_is_refused(self) -> None:
        gpu = {"operator": True, "featureDiscovery": True, "installDriver": True}
        error = only({**shipped(flavor="gpu.1.1gpu"), "gpu": gpu})
        assert key(error.path) == "mlbatch:gpu.installDriver"

    def test_without_the_operators_toolkit_no_pod_of_kind_sees_a_gpu(self) -> None:
        gpu = {"operator": True, "featureDiscovery": True, "installToolkit": False}
        error = only({**shipped(flavor="gpu.1.1gpu"), "gpu": gpu})
        assert key(error.path) == "mlbatch:gpu.installToolkit"

    def test_the_tutorials_operator_goes_with_an_older_kubernetes_than_the_default(self) -> None:
        gpu = {"operator": True, "featureDiscovery": True, "operatorVersion": "v24.9.0"}
        error = only({**shipped(flavor="gpu.1.1gpu"), "gpu": gpu})
        assert (key(error.path), error.value) == ("mlbatch:gpu.operatorVersion", "v24.9.0")
        assert (
            "Kubernetes 1.34.0 are known not to work: GPU operator 24.9.0 supports Kubernetes 1.24 to" in error.message
        )
        assert "set gpu.operatorVersion to v26.3.3, or openstack.kind.kubernetes to a version of 1.31" in error.hint
        for kubernetes in ("1.31.12", "1.24.0"):
            older = shipped(flavor="gpu.1.1gpu", kind={"kubernetes": kubernetes})
            assert errors_of({**older, "gpu": gpu, "nvshare": {"enabled": True}}) == []

    def test_cudas_packages_are_for_one_ubuntu(self) -> None:
        error = only(shipped(flavor="gpu.1.1gpu", image="Ubuntu-24.04"))
        assert (key(error.path), error.hint) == (
            "mlbatch:openstack.image",
            "set mlbatch:openstack.image to Ubuntu-22.04",
        )
        assert errors_of(shipped(image="Ubuntu-24.04")) == []


def test_layers_are_refused_below_the_kubernetes_that_they_need() -> None:
    on = {"queueing": {"enabled": True}, "tenancy": {"enabled": True}}
    raw = {**shipped(kind={"kubernetes": "1.24.0"}), **on}
    found = {key(error.path): error.message for error in errors_of(raw)}
    assert found.keys() == {"mlbatch:queueing.kueueVersion", "mlbatch:scheduling.schedulerVersion"}
    assert all("this cluster has 1.24.0" in message for message in found.values())
    assert errors_of({**shipped(), **on}) == []


def test_monitoring_is_refused_where_helm_would_refuse_its_chart() -> None:
    on = {"monitoring": {"enabled": True}}
    error = only({**shipped(kind={"kubernetes": "1.24.0"}), **on})
    assert (key(error.path), error.value) == ("mlbatch:monitoring.enabled", True)
    assert error.message == "kube-prometheus-stack 88.6.1 needs Kubernetes 1.25 or later, and this cluster has 1.24.0"
    assert errors_of({**shipped(kind={"kubernetes": "1.31.12"}), **on}) == []
    assert errors_of({**shipped(kind={"kubernetes": "1.24.0"}), "monitoring": {"enabled": False}}) == []


def test_the_version_that_a_refused_scheduler_asks_for_is_one_that_kind_has() -> None:
    on = {"queueing": {"enabled": True}, "tenancy": {"enabled": True}}
    assert errors_of({**shipped(kind={"kubernetes": "1.33.4"}), **on}) == []
    found = errors_of({**shipped(kind={"kubernetes": "1.24.0"}), **on})
    (error,) = [one for one in found if one.path == ("scheduling", "schedulerVersion")]
    assert error.hint.endswith(", or mlbatch:openstack.kind.kubernetes to 1.34.0")
    assert errors_of({**shipped(kind={"kubernetes": "1.34.0"}), **on}) == []


def test_teams_without_the_layers_that_they_need_are_told_to_switch_them_on() -> None:
    raw = {**shipped(), "teams": [{"name": "blue", "users": ["alice"], "share": 1}]}
    found = errors_of(raw)
    assert [key(error.path) for error in found] == ["mlbatch:queueing.enabled", "mlbatch:tenancy.enabled"]
    assert {error.hint for error in found} == {"set it to true, or remove the teams"}
    assert errors_of({**raw, "queueing": {"enabled": True}, "tenancy": {"enabled": True}}) == []


def test_a_kubernetes_that_kind_has_no_image_of_is_refused() -> None:
    assert only(shipped(kind={"kubernetes": "1.29.0"})).expected == ("1.34.0, 1.33.4, 1.32.8, 1.31.12, 1.24.0")


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
