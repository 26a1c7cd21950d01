"""The report of a broken node to its provider."""

import json
import re
from importlib import resources
from string import Template
from typing import Final

from components.health.repair_state import Json
from runner.repairs import HOST

_TEXT: Final = Template(resources.files("repair").joinpath("support.txt").read_text())
_AZURE: Final = re.compile(r"azure://(/subscriptions/([^/]+)/.*)")
_API: Final = "2025-01-01-preview"
"""Version of Microsoft.Impact (learn.microsoft.com/azure/azure-impact-reporting/guest-health-impact-report)."""


def report(node: Json, repair: Json) -> str:
    """Return the text for a support request, and on Azure also the request for Guest Health Reporting."""
    metadata, labels = node["metadata"], node["metadata"].get("labels") or {}
    provider = node.get("spec", {}).get("providerID") or "unknown"
    azure = _AZURE.fullmatch(provider)
    text = _TEXT.substitute(
        node=metadata["name"],
        host=labels.get(HOST, "unknown"),
        machine=azure[1] if azure else provider,
        size=labels.get("node.kubernetes.io/instance-type", "unknown"),
        region=labels.get("topology.kubernetes.io/region", "unknown"),
        reason=repair["reason"],
        detail=repair["detail"],
        since=repair["since"],
        state=repair["state"],
        driver=labels.get("nvidia.com/cuda.driver-version.full", "unknown"),
    )
    return f"{text}\n{_guest_health(azure[2], azure[1], metadata['name'], labels, repair)}" if azure else text


def _guest_health(subscription: str, machine: str, node: str, labels: Json, repair: Json) -> str:
    """Return the command that reports the host to Azure. It is in preview, and Azure must have enabled it."""
    if HOST not in labels:
        return f"# Guest Health Reporting needs the physical host. The node has no label {HOST}: see gpu.nodeLabels.\n"
    properties = {
        "startDateTime": repair["since"],
        "impactCategory": f"Resource.Hpc.{repair['category']}",
        "impactDescription": f"{repair['reason']}: {repair['detail']}",
        "impactedResourceId": machine,
        "additionalProperties": {"PhysicalHostName": labels[HOST]},
    }
    name = f"{node}-{re.sub('[^0-9]', '', repair['since'])}"
    body = json.dumps({"properties": properties}).replace("'", "'\\''")
    url = f"https://management.azure.com/subscriptions/{subscription}/providers/Microsoft.Impact/workloadImpacts/{name}"
    return (
        "# Or, if Azure has enabled Guest Health Reporting for your subscription:\n"
        f"az rest --method put --url '{url}?api-version={_API}' --body '{body}'\n"
    )
