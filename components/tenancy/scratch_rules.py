"""How pods in teams' namespaces mount their nodes' scratch space: each its own folder, and nothing else of the node.

The kubelet works out a mount's folder from the container's environment (kubernetes/kubernetes, pkg/kubelet/
kubelet_pods.go: makeEnvironmentVariables, makeMounts). Of variables of one name the last one counts, and those of `env`
count before those of `envFrom`: hence all of that name have to be the pod's own uid.
"""

from __future__ import annotations

import json

from components.kubernetes.admission import Validation
from components.kubernetes.programs import OWN_POD

_VARIABLE = OWN_POD["name"]
_FIELD = "metadata.uid"
_VOLUMES = "object.spec.?volumes.orValue([]).filter(v, has(v.hostPath))"
_CONTAINERS = "(dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([])))"
_DEBUGGERS = "object.spec.?ephemeralContainers.orValue([])"
_IS_SCRATCH = f"m.name in {_VOLUMES}.map(v, v.name)"
"""Of a mount `m`: hostPath volumes are the scratch space, or the pod is refused anyhow."""


def validations(folder: str) -> list[Validation]:
    """Return what a policy on pods holds them to. folder: where the space is mounted on a node.

    Containers that are added to a running pod mount no part of it: Kubernetes lets them mount whole volumes only.
    """
    mounts = "c.?volumeMounts.orValue([])"
    return [
        Validation(
            expression=f"{_VOLUMES}.all(v, v.hostPath.path == {json.dumps(folder)} && "
            "v.hostPath.?type.orValue('') == 'Directory')",
            message=f"spec.volumes.hostPath: the only folder of a node that pods of a team mount is {folder}, of type "
            "Directory",
        ),
        Validation(
            expression=f"{_CONTAINERS}.all(c, {mounts}.all(m, !({_IS_SCRATCH}) || "
            f"(m.?subPathExpr.orValue('') == '$({_VARIABLE})' && m.?mountPropagation.orValue('None') == 'None')))",
            message=f"volumeMounts: a pod of a team mounts its own folder of {folder}; set subPathExpr to "
            f"$({_VARIABLE}), and no mountPropagation",
        ),
        Validation(
            expression=f"{_CONTAINERS}.all(c, !{mounts}.exists(m, {_IS_SCRATCH}) || "
            f"(c.?env.orValue([]).exists(e, e.name == '{_VARIABLE}') && "
            f"c.env.all(e, e.name != '{_VARIABLE}' || e.?valueFrom.?fieldRef.?fieldPath.orValue('') == '{_FIELD}')))",
            message=f"env: the folder that a pod of a team mounts of {folder} is named by its uid; give the container "
            f"the variable {_VARIABLE} by fieldRef {_FIELD}, once",
        ),
        Validation(
            expression=f"{_DEBUGGERS}.all(c, !{mounts}.exists(m, {_IS_SCRATCH}))",
            message=f"spec.ephemeralContainers: a container that is added to a pod cannot mount {folder}, for it would "
            "see the folders of all pods; remove the mount",
        ),
    ]
