"""Settings that were measured as faster under load are set on every target, for every source of the operator."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.unit.harness import Record
from tests.unit.whole_stacks import STACKS, registered

KUEUE = "config.kueue.x-k8s.io/"
CONFIGURED = sorted(STACKS.keys() - {"openshift-ai-3"})
"""Red Hat's operator configures the Kueue of OpenShift AI 3."""


def configurations(record: Record) -> Iterator[dict[str, Any]]:
    """Yield the files of ConfigMaps that are Kueue's configuration."""
    for found in record.of("ConfigMap"):
        for text in (found.inputs.get("data") or {}).values():
            if KUEUE in text:
                yield yaml.safe_load(text)


@pytest.mark.parametrize("stack", CONFIGURED)
def test_kueue_may_ask_as_much_on_every_target(stack: str) -> None:
    """What Kueue 0.19 has by default (apis/config/v1beta2/defaults.go); an older one has 20 and 30."""
    (found,) = configurations(registered(stack))
    assert found["clientConnection"] == {"qps": 300, "burst": 500}


@pytest.mark.parametrize("stack", CONFIGURED)
def test_kueue_looks_at_as_many_appwrappers_where_it_does_so_itself(stack: str) -> None:
    """To the Kueue of OpenShift AI they are of an external framework."""
    (found,) = configurations(registered(stack))
    workers = found["controller"]["groupKindConcurrency"].get("AppWrapper.workload.codeflare.dev")
    assert workers == (None if "externalFrameworks" in found["integrations"] else 10)
