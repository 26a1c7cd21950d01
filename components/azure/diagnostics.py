"""The export of a cluster's audit and control plane logs to Log Analytics."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import monitor, operationalinsights

from components.azure.scope import ResourceScope


@dataclass(frozen=True, kw_only=True)
class DiagnosticsArgs:
    """The arguments of the export.

    cluster: must exist.
    cluster_id: its resource ID.
    categories: logs to export, of `aks.LOG_CATEGORIES`.
    workspace: resource ID of the Log Analytics workspace. None creates one in the scope.
    name: of a created workspace, from `aks.workspace_name`.
    retention_days: how long a created workspace keeps logs.
    """

    cluster: pulumi.Resource
    cluster_id: pulumi.Input[str]
    scope: ResourceScope
    categories: Sequence[str]
    workspace: str | None = None
    name: str
    retention_days: int


class Diagnostics(pulumi.ComponentResource):
    """Export logs into tables of their own: AKSAuditAdmin, AKSAudit and AKSControlPlane. The workspace outlives it.

    Its setting is deleted by itself, not with the cluster: Azure can keep it for the next cluster of the same name
    (learn.microsoft.com/azure/azure-monitor/platform/diagnostic-settings).
    """

    def __init__(self, name: str, args: DiagnosticsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:azure:Diagnostics", name, None, opts)
        workspace: pulumi.Input[str] | None = args.workspace
        if workspace is None:
            workspace = operationalinsights.Workspace(
                args.name,
                workspace_name=args.name,
                **args.scope.arguments(),
                sku=operationalinsights.WorkspaceSkuArgs(name=operationalinsights.WorkspaceSkuNameEnum.PER_GB2018),
                retention_in_days=args.retention_days,
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            ).id
        monitor.DiagnosticSetting(
            f"{args.name}-setting",
            name="mlbatch",
            resource_uri=args.cluster_id,
            workspace_id=workspace,
            log_analytics_destination_type="Dedicated",
            logs=[monitor.DiagnosticsLogSettingsArgs(category=each, enabled=True) for each in args.categories],
            opts=pulumi.ResourceOptions(parent=self, replace_with=[args.cluster], delete_before_replace=True),
        )
        self.register_outputs({})
