"""Microsoft.OperationalInsights and Microsoft.Insights: workspaces, and the logs that resources send to them."""

from emulator.azure.errors import refused
from emulator.azure.services.base import CLUSTER, Kind, Request, require
from emulator.azure.store import Properties

_RETENTION = (30, 730)
_CATEGORIES = {
    CLUSTER: (
        "cloud-controller-manager", "cluster-autoscaler", "csi-azuredisk-controller", "csi-azurefile-controller",
        "csi-snapshot-controller", "fleet-mcs-controller-manager", "fleet-member-agent",
        "fleet-member-net-controller-manager", "guard", "karpenter-events", "kube-apiserver", "kube-audit",
        "kube-audit-admin", "kube-controller-manager", "kube-scheduler",
    ),
}  # fmt: skip
"""Logs by type (https://learn.microsoft.com/azure/azure-monitor/reference/supported-logs/logs-index)."""


class Workspace(Kind):
    """A Log Analytics workspace.

    Source: learn.microsoft.com/azure/azure-monitor/logs/data-retention-configure, for the retention.
    """

    token = "azure-native:operationalinsights:Workspace"

    def check(self, request: Request) -> None:
        days = request.body.get("retentionInDays", _RETENTION[0])
        if not _RETENTION[0] <= days <= _RETENTION[1]:
            raise refused("InvalidRetention", days=days, least=_RETENTION[0], most=_RETENTION[1])


class DiagnosticSetting(Kind):
    """The export of a resource's logs. It reads back with every log of the resource.

    Sources: hashicorp/terraform-provider-azurerm, issues 2985 (unknown category), 10388 (every log) and 21161, and
    Azure/bicep-registry-modules, issue 3407 (two settings with a workspace and category).
    """

    token = "azure-native:monitor:DiagnosticSetting"

    def check(self, request: Request) -> None:
        known = self._known(request)
        workspace = require(request.state, request.body["workspaceId"], f"{request.id} (workspaceId)").id
        for category in _enabled(request.body):
            if category not in known:
                raise refused("CategoryNotSupported", category=category)
            for other in request.others(self.type, _target(request)):
                if other.properties["workspaceId"].lower() == workspace.lower() and category in _enabled(
                    other.properties
                ):
                    raise refused("DataSinkInUse", sink=workspace, setting=other.name, category=category)

    def computed(self, request: Request) -> Properties:
        given = request.body["logs"]
        listed = {each["category"] for each in given}
        others = [{"category": each, "enabled": False} for each in self._known(request) if each not in listed]
        return {"logs": [*given, *others]}

    def _known(self, request: Request) -> tuple[str, ...]:
        return _CATEGORIES.get(require(request.state, _target(request), request.id).type, ())


def _target(request: Request) -> str:
    return f"/{request.names['resourceUri'].strip('/')}"


def _enabled(properties: Properties) -> list[str]:
    return [str(each["category"]) for each in properties["logs"] if each["enabled"]]
