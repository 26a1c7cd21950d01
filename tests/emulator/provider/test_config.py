"""The provider resource's own inputs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.plugin.errors import ProviderError
from emulator.plugin.wire import UNKNOWN
from emulator.provider import config
from emulator.provider.config import Reachable, Settings


def kubeconfig(server: str = "https://127.0.0.1:1", namespace: str = "", token: str = "t") -> dict[str, Any]:
    context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server}},
            {"name": "other", "cluster": {"server": "https://o"}},
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": context}, {"name": "y", "context": {"cluster": "other", "user": "u"}}],
        "current-context": "x",
    }


TEXT = yaml.safe_dump(kubeconfig())


def reasons(inputs: dict[str, Any]) -> str:
    return "; ".join(f"{key}: {reason}" for key, reason in config.problems(inputs))


def test_contents_and_paths_are_read(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(TEXT)
    for value in (TEXT, json.dumps(kubeconfig()), kubeconfig(), str(path)):
        assert Settings.of({"kubeconfig": value}).kubeconfig == kubeconfig()


def test_defaults_and_flags() -> None:
    settings = Settings.of({"kubeconfig": TEXT, "enableConfigMapMutable": "true", "enableSecretMutable": True})
    assert (settings.namespace, settings.config_map_mutable, settings.secret_mutable) == ("default", True, True)
    assert (settings.patch_force, settings.upsert, settings.timeout) == (False, False, 0)
    assert Settings.of({"kubeconfig": yaml.safe_dump(kubeconfig(namespace="n"))}).namespace == "n"
    assert Settings.of({"kubeconfig": TEXT, "namespace": "m"}).namespace == "m"
    assert Settings.of({"kubeconfig": TEXT, "kubeClientSettings": '{"timeout": 7}'}).timeout == 7


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "kubeconfig: no kubeconfig is given"),
        ({"kubeconfig": ""}, "kubeconfig: no kubeconfig is given"),
        ({"kubeconfig": "/no/such/file"}, "kubeconfig: the file /no/such/file cannot be read"),
        ({"kubeconfig": "some/file"}, "neither the contents of a kubeconfig nor an absolute path"),
        ({"kubeconfig": "a: [b\nc: d"}, "neither YAML nor JSON"),
        ({"kubeconfig": "{broken"}, "neither YAML nor JSON"),
        ({"kubeconfig": "a: b\n"}, "it is no kubeconfig"),
        ({"kubeconfig": 7}, "it is a int"),
        ({"kubeconfig": TEXT, "context": "z"}, "the context 'z' does not exist; the kubeconfig has x, y"),
        ({"kubeconfig": TEXT, "cluster": "z"}, "cluster: names the cluster 'z'"),
        ({"kubeconfig": TEXT, "kubeConfig": "x"}, "kubeConfig: is no input of this provider; allowed are alwaysRender"),
        ({"kubeconfig": TEXT, "enableSecretMutable": "yes"}, "enableSecretMutable: is 'yes'; true or false is allowed"),
        ({"kubeconfig": TEXT, "enableServerSideApply": "false"}, "client-side apply is not supported"),
        ({"kubeconfig": TEXT, "renderYamlToDirectory": "/x"}, "rendering YAML to a directory is not supported"),
        ({"kubeconfig": TEXT, "skipUpdateUnreachable": "true"}, "going on without the cluster is not supported"),
        ({"kubeconfig": TEXT, "kubeClientSettings": "{"}, "kubeClientSettings: is no JSON object"),
        ({"kubeconfig": TEXT, "strictMode": "true"}, "context: is required in strict mode"),
    ],
)
def test_mistakes_are_named(inputs: dict[str, Any], message: str) -> None:
    assert message in reasons(inputs)
    with pytest.raises(ProviderError, match="provider input"):
        Settings.of(inputs)


def test_a_broken_kubeconfig_is_not_quoted() -> None:
    assert "sesame" not in reasons({"kubeconfig": "token: [sesame\nother: x"})


def test_unknown_values_and_the_engines_keys_pass() -> None:
    assert reasons({"kubeconfig": UNKNOWN, "version": "4.34.2"}) == ""
    assert reasons({"kubeconfig": TEXT, "enableSecretMutable": UNKNOWN}) == ""


ELSEWHERE = yaml.safe_dump(kubeconfig("https://127.0.0.1:2"))
OTHER_USER = yaml.safe_dump(kubeconfig(token="new"))


@pytest.mark.parametrize(
    ("old", "new", "changed", "replaces"),
    [
        ({"kubeconfig": TEXT}, {"kubeconfig": TEXT}, [], []),
        ({"kubeconfig": TEXT}, {"kubeconfig": ELSEWHERE}, ["kubeconfig"], ["kubeconfig"]),
        ({"kubeconfig": TEXT}, {"kubeconfig": OTHER_USER}, ["kubeconfig"], []),
        ({"kubeconfig": TEXT}, {"kubeconfig": TEXT, "context": "y"}, ["context"], ["context"]),
        ({"kubeconfig": TEXT}, {"kubeconfig": TEXT, "namespace": "n"}, ["namespace"], []),
        (
            {"kubeconfig": TEXT, "clusterIdentifier": "a"},
            {"kubeconfig": ELSEWHERE, "clusterIdentifier": "a"},
            ["kubeconfig"],
            [],
        ),
        (
            {"kubeconfig": TEXT, "clusterIdentifier": "a"},
            {"kubeconfig": TEXT, "clusterIdentifier": "b"},
            ["clusterIdentifier"],
            ["clusterIdentifier"],
        ),
        ({"kubeconfig": TEXT}, {"kubeconfig": TEXT, "clusterIdentifier": "a"}, ["clusterIdentifier"], []),
        ({"kubeconfig": TEXT}, {"kubeconfig": UNKNOWN}, ["kubeconfig"], ["kubeconfig"]),
        (
            {"kubeconfig": TEXT, "clusterIdentifier": "a"},
            {"kubeconfig": UNKNOWN, "clusterIdentifier": "a"},
            ["kubeconfig"],
            [],
        ),
    ],
)
def test_update_or_replacement(
    old: dict[str, Any], new: dict[str, Any], changed: list[str], replaces: list[str]
) -> None:
    difference = config.compare(old, new)
    assert (list(difference.changes), difference.replaces) == (changed, replaces)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"server": "https://127.0.0.1:1/"}, ""),
        (
            {"server": "https://10.0.0.1:6443"},
            "kubeconfig: it leads to https://10.0.0.1:6443, and this provider serves",
        ),
        ({"server": "https://127.0.0.1:2"}, "serves https://127.0.0.1:1 alone: use plain `pulumi`"),
        ({"server": "http://127.0.0.1:1"}, "leads to http://127.0.0.1:1"),
        ({"server": "https://me@elsewhere:1"}, "leads to https://me@elsewhere:1"),
        ({"proxy-url": "http://10.0.0.1:3128"}, "it leads through the proxy http://10.0.0.1:3128"),
    ],
)
def test_a_provider_of_one_api_server_refuses_every_other(change: dict[str, str], message: str) -> None:
    document = kubeconfig()
    document["clusters"][0]["cluster"].update(change)
    found = config.problems({"kubeconfig": document}, Reachable("https://127.0.0.1:1"))
    assert message in "; ".join(f"{key}: {reason}" for key, reason in found)
    assert bool(found) == bool(message)
    if message:
        with pytest.raises(ProviderError, match="this provider serves"):
            Settings.of({"kubeconfig": document}, Reachable("https://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({}, True),
        ({"certificate-authority-data": "b3RoZXI="}, False),
        ({"server": "https://10.0.0.1:2"}, False),
        ({"insecure-skip-tls-verify": True}, False),
    ],
)
def test_a_tunnel_to_the_one_api_server_is_known_by_its_authority(change: dict[str, Any], allowed: bool) -> None:
    document = kubeconfig()
    near = {"server": "https://127.0.0.1:2", "certificate-authority-data": base64.b64encode(b"own").decode()}
    document["clusters"][0]["cluster"].update({**near, **change})
    found = config.problems({"kubeconfig": document}, Reachable("https://127.0.0.1:1", "own"))
    assert (found == []) is allowed


@pytest.mark.parametrize("inputs", [{"context": "y"}, {"cluster": "other"}])
def test_the_context_and_the_cluster_that_are_chosen_count(inputs: dict[str, str]) -> None:
    assert config.problems({"kubeconfig": TEXT, **inputs}) == []
    ((_, reason),) = config.problems({"kubeconfig": TEXT, **inputs}, Reachable("https://127.0.0.1:1"))
    assert "https://o" in reason
    assert "https://127.0.0.1:1" in reason
