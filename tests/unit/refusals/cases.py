"""Configurations with errors, from the YAML files of this folder. Those of `accepted.yaml` have none.

An entry names an example and what differs in it, by path: `aks: {gpu.driverVersion: latest}`. Its `facts` are what
differs in the example's cluster, or in an OpenStack project, which `project` selects. `concealed` are encrypted values.
`all` names a list that the tests compute.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import TypeAdapter

from stacks.config.cluster_facts import ClusterFacts
from stacks.config.secrets import Concealed
from stacks.targets.cpouta.project_facts import ProjectFacts
from tests.unit import (
    test_aks,
    test_azure_settings,
    test_certified_gpu_operator,
    test_cpouta_project,
    test_cpouta_settings,
    test_existing,
    test_finetuning,
    test_network,
    test_nvshare,
    test_openshift,
    test_openshift_ai,
    test_openshift_workbench,
    test_pools,
    test_pretraining,
    test_sakkara,
    test_settings,
    test_vllm_settings,
    test_workload_settings,
    test_workloads_everywhere,
)
from tests.unit.configurations import aks, changed

Raw = dict[str, Any]
Facts = ClusterFacts | ProjectFacts

_KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILRAB9KLBebIS3T6CQzFcLZeh0uyh1MafBbQmtzuICAV"
_TAGS: Final = {f"tag{index}": "" for index in range(50)}
_EXAMPLES: Final[Mapping[str, Callable[[], Raw]]] = {
    "aks": aks,
    "aks shipped": test_aks.shipped,
    "azure": lambda: {"target": "aks", "azure": test_azure_settings.valid()},
    "batch inference": test_vllm_settings.with_batch,
    "certified": test_certified_gpu_operator.chosen,
    "cpouta": test_cpouta_settings.shipped,
    "existing": test_existing.shipped,
    "fine-tuning": test_finetuning.raw,
    "nothing": dict,
    "one machine": test_workloads_everywhere.cpouta,
    "one team": test_network.valid,
    "openshift": test_openshift.shipped,
    "openshift-ai": test_openshift_ai.chosen,
    "openshift-ai 2.16": lambda: test_openshift_ai.chosen(version="2.16"),
    "openshift-ai 3": lambda: test_openshift_ai.chosen(version="3.4"),
    "pre-training": test_pretraining.raw,
    "sakkara": test_sakkara.with_sakkara,
    "sharing": test_nvshare.config,
    "simulated": lambda: {"target": "simulated"},
    "three nodes": test_workloads_everywhere.simulated,
    "two nodes": test_workload_settings.valid,
    "two pools": test_pools.simulated,
    "two teams": test_settings.valid,
    "workbench": test_openshift_workbench.wanted,
}
_COMPUTED: Final[Mapping[str, Callable[[], Iterable[Raw]]]] = {
    "keys that AKS rejects": lambda: (
        changed(_EXAMPLES["azure"](), {"azure.sshPublicKey": key})
        for key in (test_azure_settings.SHORT, test_azure_settings.ED25519, test_azure_settings.ECDSA)
    ),
    "too many networks": lambda: [
        changed(
            _EXAMPLES["azure"](), {"azure.apiServer.authorizedRanges": [f"203.0.{index}.0/24" for index in range(201)]}
        )
    ],
    "too many tags": lambda: [
        changed(_EXAMPLES["azure"](), {"azure.tags": {f"tag{index}": "" for index in range(51)}})
    ],
    "a tag too many": lambda: [aks({"tags": _TAGS, "gpuPool": {"skipGpuDriverInstallTag": True}})],
    "as many tags as possible": lambda: (
        aks({"tags": _TAGS}),
        aks({"tags": dict(list(_TAGS.items())[1:]), "gpuPool": {"skipGpuDriverInstallTag": True}}),
    ),
    "long numbers": lambda: (
        changed(test_settings.valid(), {"nodes.cpu": text}) for text in ("1" * 5000, "1e" + "9" * 5000)
    ),
    "many pools": lambda: [test_pools.simulated(*({**test_pools.SPOT, "name": f"p{n}"} for n in range(64)))],
    "many ranges": lambda: [
        aks(
            workloads={
                "jupyterlab": {
                    "enabled": True,
                    "submission": {"gang": "none"},
                    "exposure": "public",
                    "sourceRanges": [f"{n}.0.0.0/8" for n in range(64)],
                }
            }
        )
    ],
    "a long folder": lambda: [aks(mirror={"artifacts": "/" + "a" * 5000})],
    "a short key": lambda: [test_cpouta_settings.shipped(sshPublicKey=test_azure_settings.SHORT)],
    "keys with long remarks": lambda: (
        test_cpouta_settings.shipped(sshPublicKey=f"{_KEY} {remark}")
        for remark in ("x" * 3000, "\N{GRINNING FACE}" * 300)
    ),
    "too many keys": lambda: [test_cpouta_settings.shipped(otherPublicKeys=[f"{_KEY} colleague"] * 150)],
}
_EXISTING: Final = ClusterFacts(
    identifier=test_existing.UID,
    version="1.34",
    nodes=test_existing.NODES,
    storage_classes=frozenset({"nfs-client"}),
)
_OPENSHIFT: Final = replace(_EXISTING, nodes=test_openshift.NODES, openshift="4.21.3")
_FACTS: Final[Mapping[str, Facts]] = {
    "aks": _EXISTING,
    "certified": replace(_OPENSHIFT, nodes=(test_certified_gpu_operator.WORKER,) * 3),
    "cpouta": test_cpouta_project.FACTS,
    "existing": _EXISTING,
    "gone": test_cpouta_project.GONE,
    "noted": test_cpouta_project.NOTED,
    "sakkara": replace(_OPENSHIFT, nodes=tuple(map(test_existing.node, test_sakkara.WORKERS))),
    "sharing": replace(_EXISTING, nodes=(test_existing.node("a", **{"nvidia.com/gpu": "1"}),)),
    "whole": test_cpouta_project.TestWhatIsThere.FULL,
}


def cases(topic: str) -> Iterator[Raw]:
    """Yield the configurations of a topic."""
    return (raw for raw, _ in with_facts(topic))


def with_facts(topic: str) -> Iterator[tuple[Raw, Facts]]:
    """Yield the configurations of a topic, each with the facts of its cluster or project."""
    for entry in _entries(topic):
        own, project = entry.pop("facts", {}), entry.pop("project", None)
        ((example, changes),) = entry.items()
        usual = _FACTS.get(project or example, _OPENSHIFT)
        facts = _adapter(type(usual)).validate_python(changed(asdict(usual), own))
        yield from ((raw, facts) for raw in _configurations(example, changes))


@cache
def _adapter(kind: type[Facts]) -> TypeAdapter[Facts]:
    """Return what creates facts. Its creation takes most of the time of the tests that need one."""
    return TypeAdapter(kind)


def interpreted() -> Iterator[tuple[Raw, Mapping[str, str]]]:
    """Yield configurations with encrypted values, each with the environment that the engine runs in."""
    for entry in _entries("interpreted"):
        environment, concealed = entry.pop("environment", {}), entry.pop("concealed", {})
        ((example, changes),) = entry.items()
        for raw in _configurations(example, changes):
            yield raw | {key: Concealed[name] for key, name in concealed.items()}, environment


def _entries(topic: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load((Path(__file__).parent / f"{topic}.yaml").read_text())


def _configurations(example: str, changes: Any) -> Iterable[Raw]:
    return _COMPUTED[changes]() if example == "all" else [changed(_EXAMPLES[example](), changes)]
