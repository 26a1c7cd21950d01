"""Rules for drivers, device plugins and the versions that go together."""

from __future__ import annotations

from collections.abc import Iterator

from components import names
from components.compatibility import Assessment, Combination, Verdict, assess
from components.nodes.network_operator import DevicePlugin
from stacks.problems import Problem, key
from stacks.reading import Parts


def check(parts: Parts) -> Iterator[Problem]:
    """Yield what is wrong with the GPU nodes' software."""
    yield from _versions(parts)
    yield from _quotas_for_ports(parts)


def warnings(parts: Parts) -> list[str]:
    """Return what nobody knows to work, in words for the reader of a run."""
    found = _assessed(parts)
    if found is None or found[1].verdict is not Verdict.UNKNOWN:
        return []
    combination, assessment = found
    return [f"{_spelt(combination)}: {assessment.reason}; {assessment.fix}"]


def _versions(parts: Parts) -> Iterator[Problem]:
    found = _assessed(parts)
    if found is None or found[1].verdict is not Verdict.BROKEN:
        return
    combination, assessment = found
    yield Problem(
        path=("gpu", "operatorVersion"),
        value=combination.gpu_operator,
        wrong=f"{_spelt(combination)} are known not to work: {assessment.reason}",
        allowed=f"a combination that works; see {assessment.source}",
        fix=assessment.fix,
    )


def _assessed(parts: Parts) -> tuple[Combination, Assessment] | None:
    """Return what the stack installs and what is known of it; None while sections are missing."""
    if parts.gpu is None or parts.azure is None:
        return None
    fabric = parts.gpu.fabric
    combination = Combination(
        gpu_operator=parts.gpu.operator_version,
        network_operator=fabric.operator_version if fabric.enabled else None,
        driver=parts.gpu.driver,
        kubernetes=parts.azure.kubernetes_version,
    )
    return combination, assess(combination)


def _spelt(combination: Combination) -> str:
    network = f", network operator {combination.network_operator}" if combination.network_operator else ""
    return (
        f"GPU operator {combination.gpu_operator}{network}, driver {combination.driver} "
        f"and Kubernetes {combination.kubernetes}"
    )


def _quotas_for_ports(parts: Parts) -> Iterator[Problem]:
    """Refuse quotas for ports that no node offers: jobs that ask for them would be admitted and never start."""
    if parts.gpu is None:
        return
    fabric = parts.gpu.fabric
    if fabric.enabled and fabric.device_plugin is DevicePlugin.SRIOV:
        return
    because = (
        f"{key(('gpu', 'fabric', 'devicePlugin'))} is {fabric.device_plugin}, which offers {names.SHARED_INFINIBAND}"
        if fabric.enabled
        else f"{key(('gpu', 'fabric', 'enabled'))} is false"
    )
    for index, team in enumerate(parts.teams):
        amount = team.quota.infiniband if team is not None and team.quota is not None else None
        if amount is not None and amount.nano:
            yield Problem(
                path=("teams", index, "quota", names.INFINIBAND),
                value=str(amount),
                wrong=f"no node will offer {names.INFINIBAND}: {because}",
                allowed="0",
                fix=f"remove the key, or set {key(('gpu', 'fabric'))} to enabled with devicePlugin sriov",
            )
