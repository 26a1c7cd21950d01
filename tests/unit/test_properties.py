"""Rules for all settings: accepted settings can be registered, and rejected settings get an error with their key."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings

from components.artifacts import Mirror
from components.kubernetes.quantity import canonical
from stacks.config.cluster_facts import ClusterFacts
from stacks.config.errors import MISSING, ConfigError, SettingsError
from stacks.config.parsing import read
from stacks.deploy import deploy
from stacks.derived.partial import PartialSettings
from stacks.validation import rules
from tests.unit import test_certified_gpu_operator, test_cpouta, test_cpouta_settings, test_openshift
from tests.unit.configurations import errors_of
from tests.unit.harness import Record, build, strings
from tests.unit.settings_strategies import NASTY, changes, knows
from tests.unit.test_aks import deployed, everything
from tests.unit.test_existing import NODES, UID, shipped
from tests.unit.test_settings import valid
from tests.unit.test_stack import quantities, stack_of

BASES: Mapping[str, dict[str, Any]] = {
    "simulated": valid(),
    "aks": everything(),
    "existing": shipped(),
    "cpouta": {**test_cpouta_settings.shipped(), **test_cpouta.LAYERS},
    "openshift": {**test_certified_gpu_operator.chosen(), "workbench": {"enabled": False}},
}
PYTHONS_NONE = r"(?<!Unmanaged, )(?<!did you mean )None\b"
"""Where a message says None it is Python's, but among the channels of Azure's node images."""
FOREIGN_WORDS = re.compile(rf"Input should|validation error|pydantic|Traceback|NoneType|object has no|\b{PYTHONS_NONE}")
LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(?:\.{LABEL})*")
RIGHTS_NAME = re.compile(r"[A-Za-z0-9@._:+-]{1,253}")
"""Of roles and their bindings: Kubernetes takes any segment of a path, here without what no user's name has."""


def share(part: float = 1) -> settings:
    """Return the profile's settings with a part of its examples, for what takes long."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=max(2, int(settings.default.max_examples * part)), suppress_health_check=slow)


CLUSTERS = {
    "existing": ClusterFacts(identifier=UID, version="1.34", nodes=NODES),
    "openshift": ClusterFacts(identifier=UID, version="1.34", nodes=test_openshift.NODES, openshift="4.21.3"),
}


def judged(target: str, raw: Mapping[str, Any]) -> list[ConfigError]:
    """Return the errors of a configuration, on a cluster of three nodes if the target has one."""
    if target not in CLUSTERS:
        return errors_of(raw)
    partial, found = read(raw)
    partial.facts = CLUSTERS[target]
    return found + rules.check(partial)


def assert_told(target: str, raw: Mapping[str, Any]) -> None:
    """Each error has this project's words, an existing or user-written key, no duplicate, and no secret."""
    partial = PartialSettings(raw=raw)
    found = judged(target, raw)
    for error in found:
        text = str(error)
        assert knows(target, error.path) or partial.written(error.path) is not MISSING, text
        assert not FOREIGN_WORDS.search(f"{error.message} {error.expected} {error.hint}"), text
        assert "hunter2" not in text
        assert len(text) < 3000, text
    repeated = [text for text, number in Counter(str(error) for error in found).items() if number > 1]
    assert not repeated


@pytest.mark.parametrize("target", BASES)
def test_what_is_refused_is_told_its_key_in_our_words(target: str) -> None:
    @share()
    @given(changes(target, BASES[target]))
    def holds(raw: dict[str, Any]) -> None:
        assert_told(target, raw)

    holds()


@pytest.mark.parametrize("target", BASES)
def test_no_form_of_a_section_ends_in_an_unexpected_error(target: str) -> None:
    for section in BASES[target]:
        if section != "target":
            for value in NASTY:
                assert_told(target, {**BASES[target], section: value})


def assert_registered(record: Record) -> None:
    """No two objects are one, and all have names and quantities that Kubernetes takes."""
    urns = Counter(item.urn for item in record.resources)
    assert [urn for urn, number in urns.items() if number > 1] == []
    objects = [item for item in record.objects() if "metadata" in item.inputs]
    identities = Counter((item.type, item.inputs["metadata"].get("namespace"), item.object_name) for item in objects)
    assert [identity for identity, number in identities.items() if number > 1] == []
    for item in objects:
        pattern = RIGHTS_NAME if "Role" in item.kind else NAME
        assert pattern.fullmatch(item.object_name), item.object_name
        for _, value in quantities(item.inputs) if item.kind != "CustomResourceDefinition" else ():
            assert canonical(value) == value
    assert not any("hunter2" in text for item in objects for text in strings(item.inputs))


def test_what_is_accepted_on_a_cluster_registers(mirror: Mirror, same_kubeconfig: Path) -> None:
    @share(1 / 12)
    @given(changes("simulated", BASES["simulated"], most=3))
    def holds(raw: dict[str, Any]) -> None:
        raw = {name: value for name, value in raw.items() if name not in ("mirror", "kubernetes")}
        try:
            stack = stack_of(raw, mirror, same_kubeconfig)
        except SettingsError:
            reject()
        assert_registered(build(lambda: deploy(stack)))

    holds()


def test_what_is_accepted_on_azure_registers(mirror: Mirror) -> None:
    @share(1 / 40)
    @given(changes("aks", BASES["aks"], most=3))
    def holds(raw: dict[str, Any]) -> None:
        raw = {name: value for name, value in raw.items() if name != "mirror"}
        assume(not errors_of(raw))
        assert_registered(deployed(mirror, raw))

    holds()
