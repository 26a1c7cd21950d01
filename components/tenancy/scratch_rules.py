"""Rules for mounts of the node's scratch space: each pod mounts its own folder, and no other part of the node.

The kubelet expands the folder of a mount from the container's environment (kubernetes/kubernetes,
pkg/kubelet/kubelet_pods.go: makeEnvironmentVariables, makeMounts). For a repeated name the last variable counts, and
`env` overrides `envFrom`. All variables of this name therefore must be the pod's own uid.
"""

import json

from components.kubernetes.admission import Validation
from components.kubernetes.programs import OWN_POD

_VARIABLE = OWN_POD["name"]
_FIELD = "metadata.uid"
_VOLUMES = "object.spec.?volumes.orValue([]).filter(v, has(v.hostPath))"
_CONTAINERS = "(dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([])))"
_DEBUGGERS = "object.spec.?ephemeralContainers.orValue([])"
_IS_SCRATCH = f"m.name in {_VOLUMES}.map(v, v.name)"
"""A mount `m` of the scratch space. The pod policy rejects all other hostPath volumes."""


def validations(folder: str) -> list[Validation]:
    """Return the validations for a policy on pods. folder: where a node mounts the scratch space.

    Ephemeral containers cannot mount a part of it, because Kubernetes lets them mount only whole volumes.
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
