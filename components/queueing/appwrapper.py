"""AppWrapper: a job made of many objects that start, fail and restart together.

The configuration is MLBatch's (project-codeflare/mlbatch, `setup.k8s/appwrapper/coscheduling/config_patch.yaml`), with
the fields of AppWrapper's `pkg/config/config.go`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import yaml

from components import names
from components.artifacts import Release
from components.kubernetes.controller import ONE_REPLICA, ControllerPods
from components.kubernetes.manifests import Document
from components.kubernetes.rbac import rule
from components.kubernetes.resources import Resources
from components.queueing.fault_tolerance import DEFAULTS, FaultTolerance
from components.queueing.operators import Operator, OperatorLayer, install

RESOURCES: Final = Resources(cpu_request="250m", memory_request="250Mi", cpu_limit="1", memory_limit="1000Mi")
_HEALTH_LABEL: Final = "autopilot.ibm.com/gpuhealth"

AUTOPILOT_TAINTS: Final = {
    names.GPU: (
        {"key": _HEALTH_LABEL, "value": "WARN", "effect": "PreferNoSchedule"},
        {"key": _HEALTH_LABEL, "value": "ERR", "effect": "NoSchedule"},
        {"key": _HEALTH_LABEL, "value": "TESTING", "effect": "NoSchedule"},
        {"key": _HEALTH_LABEL, "value": "EVICT", "effect": "NoExecute"},
    )
}
"""Values of a node's label for a resource. AppWrapper keeps jobs off such nodes or moves them away, and the slack queue
lends less. Defaults of AppWrapper 1.1 (`pkg/config/config.go`) and the value ERR of earlier versions."""

FILES: Final = "configmaps"
"""Files of jobs. Upstream's controller may not create ConfigMaps (v1.2.2, `config/rbac/role.yaml`). Members may create
them directly, so wrapped ConfigMaps grant no new right."""
_ROLE: Final = "appwrapper-manager-role"
_OWN_ROLE: Final = "appwrapper-leader-election-role"
"""Role in AppWrapper's own namespace, which has its certificate."""
_SECRETS: Final = "secrets"


@dataclass(frozen=True, kw_only=True)
class AppWrappersArgs:
    """The arguments of the controller.

    scheduler_name: scheduler for pods of wrapped jobs that name none. Empty selects the cluster's default.
    fault_tolerance: of jobs that set no values.
    """

    release: Release
    scheduler_name: str = ""
    fault_tolerance: FaultTolerance = DEFAULTS
    gpu_resource: str = names.GPU
    pods: ControllerPods = ONE_REPLICA


class AppWrappers(OperatorLayer):
    """Install the AppWrapper controller into mlbatch-system, which must exist. Kueue queues its jobs."""

    def __init__(self, name: str, args: AppWrappersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:queueing:AppWrappers", name, None, opts)
        self._install(name, args.release.manifest, _operator(args), lambda document: edit(document, args))


def edit(document: Document, args: AppWrappersArgs) -> Document | None:
    """Return a document of AppWrapper's manifest as MLBatch installs it, or None if MLBatch omits it."""
    result = install(document, _operator(args))
    if result is None:
        return None
    which = (result["kind"], result["metadata"]["name"])
    if which == ("ClusterRole", _ROLE):
        # Upstream's controller can read all Secrets of the cluster, but needs only its own certificate.
        result["rules"] = [rule for rule in result["rules"] if _SECRETS not in rule.get("resources", ())]
        result["rules"].append(rule("", [FILES], ["create", "delete", "get", "list", "patch", "watch"]))
        # Since v1.2 it records events through this API, but upstream's role has only the older one.
        result["rules"].append(rule("events.k8s.io", ["events"], ["create", "patch", "update"]))
    elif which == ("Role", _OWN_ROLE):
        result["rules"].append(rule("", [_SECRETS], ["get", "list", "update", "watch"]))
    return result


def _operator(args: AppWrappersArgs) -> Operator:
    return Operator(
        name="appwrapper",
        upstream_namespace="appwrapper-system",
        images=args.release.images,
        resources=RESOURCES,
        pods=args.pods,
        config_map="appwrapper-operator-config",
        config_key="config.yaml",
        config=yaml.safe_dump(
            configuration(args.scheduler_name, args.fault_tolerance, args.gpu_resource), sort_keys=False
        ),
    )


def configuration(
    scheduler_name: str = "", fault_tolerance: FaultTolerance = DEFAULTS, gpu_resource: str = names.GPU
) -> Mapping[str, Any]:
    """Return the operator's configuration. Fields that are not in it keep upstream's defaults.

    The check of each wrapped object against the user's permissions is off. Users can wrap kinds that they cannot create
    directly, because their role allows only AppWrappers. The tenancy layer decides which kinds they may wrap.
    """
    return {
        "appwrapper": {
            "autopilot": {
                "injectAntiAffinities": True,
                "monitorNodes": True,
                "resourceTaints": {gpu_resource: list(AUTOPILOT_TAINTS[names.GPU])},
            },
            "userRBACAdmissionCheck": False,
            "defaultQueueName": names.LOCAL_QUEUE,
            "faultTolerance": fault_tolerance.body(),
            **({"schedulerName": scheduler_name} if scheduler_name else {}),
        },
        "controllerManager": {
            "health": {"bindAddress": ":8081"},
            "metrics": {"bindAddress": ":8443"},
            "leaderElection": True,
        },
    }
