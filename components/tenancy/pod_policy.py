"""Limit what pods in teams' namespaces may request: Pod Security's Baseline, and rules beyond Pod Security Standards.

A member must not get a pod that exceeds its quota or reaches its node. The rules apply to every pod and every creator,
because members submit jobs whose pods are created by controllers. Sources: kubernetes.io,
concepts/security/pod-security-standards. What queues count: AppWrapper v1.2.2 `pkg/utils/utils.go`, Kueue v0.19.2
`pkg/workload/resources.go`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from components import names
from components.kubernetes.admission import AdmissionPolicy, Requests, Validation, words
from components.kubernetes.security import PINNED_MEMORY
from components.queueing.kueue import UNCOUNTED
from components.scheduling.priorities import PRIORITIES
from components.tenancy import amounts, pod_baseline, scratch_rules
from components.tenancy.boundary import TEAM_NAMESPACES
from components.tenancy.promises import Promise

DEFAULT_SCHEDULER: Final = "default-scheduler"
GRACE_SECONDS: Final = 120
"""Seconds for a pod to write a checkpoint before it is killed. The platform's jobs take 30."""

VOLUMES: Final = (
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "emptyDir",
    "persistentVolumeClaim",
    "ephemeral",
)
"""The list of Pod Security's Restricted without inline CSI volumes, because these have no PVC that a quota counts."""

AFFINITY_TERMS: Final = 16
"""The most terms of a pod about other pods. A scheduler keeps 700 bytes for each, and compares each with every new pod
of any team (kube-scheduler v1.35, `pkg/scheduler/framework/types.go` and `plugins/interpodaffinity`). With 900 terms,
1,300 pods fill the memory of the packing scheduler."""

_JOB_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
"""Kubernetes' Job controller removes this finalizer, also from pods without a Job (pkg/controller/job)."""

_GPU_MOUNTS: Final = "/var/run/nvidia-container-devices"
"""A mount at this path requests a GPU (NVIDIA/nvidia-container-toolkit, internal/config/image)."""

_NETWORKS: Final = "k8s.ovn.org/"
"""Prefix of the annotations that OVN-Kubernetes, OpenShift's network, reads. With two of them, a pod of any namespace
becomes the gateway for the traffic that leaves another namespace (ovn-kubernetes, `go-controller/pkg/ovn/egressgw.go`,
addPodExternalGW)."""
_ATTACHED: Final = ("k8s.v1.cni.cncf.io/network-status", "v1.multus-cni.io/default-network")
"""The first annotation has a pod's networks, written by Multus, and the address of that gateway comes from it. The
second replaces the cluster's network, so that its network policies no longer apply to the pod (multus-cni,
`docs/configuration.md`)."""
_JOINED: Final = "k8s.v1.cni.cncf.io/networks"
"""More networks of a pod, separated by commas. A network without a namespace is in the pod's namespace, where only
administrators create networks (multus-cni, `docs/how-to-use.md`)."""
_OWN_NETWORKS: Final = "^[a-z0-9.-]+(@[a-z0-9.-]+)?(, *[a-z0-9.-]+(@[a-z0-9.-]+)?)*$"
"""Names of networks, each optionally with the name of the pod's interface."""

_UNHEALTHY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_UNHEALTHY_SECONDS: Final = 300
"""The toleration that DefaultTolerationSeconds adds to every pod. A longer one would keep a job on a failed node."""
_MEMORY_PRESSURE: Final = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}
"""The toleration that PodTolerationRestriction adds to every pod that is not BestEffort."""


@dataclass(frozen=True, kw_only=True)
class PodRules:
    """The values that depend on the cluster.

    tolerations: of the taints of GPU nodes.
    devices: extended resources. A pod that requests one gets a toleration of its taint (Kubernetes'
    ExtendedResourceToleration).
    withheld: extended resources that pods cannot request.
    uncounted: the most devices of a pod that no quota counts (`UNCOUNTED`).
    mounts_give_gpus: NVIDIA's runtime gives a container each GPU that is named by one of its mounts.
    priority_classes, schedulers: the allowed names.
    pinned_memory: pods may add IPC_LOCK, which RDMA needs.
    scratch_folder: folder of the nodes. Each pod may mount its own subfolder. None forbids it.
    grace_seconds: the longest time that a pod may take to end.
    """

    tolerations: Sequence[Mapping[str, str]] = ()
    devices: Sequence[str] = ()
    withheld: Sequence[str] = ()
    uncounted: int = 1
    mounts_give_gpus: bool = False
    priority_classes: Sequence[str] = tuple(PRIORITIES)
    schedulers: Sequence[str] = (DEFAULT_SCHEDULER,)
    pinned_memory: bool = False
    scratch_folder: str | None = None
    grace_seconds: int = GRACE_SECONDS

    @property
    def is_baseline(self) -> bool:
        """True if every pod that meets the rules also meets Pod Security's Baseline."""
        return not self.pinned_memory and self.scratch_folder is None


def policy(rules: PodRules) -> AdmissionPolicy:
    """Return the policy.

    It admits updates that do not change a checked field, so that pods older than the policy can end.
    """
    return AdmissionPolicy(
        name=Promise.POD_ISOLATION.policy,
        requests=[
            Requests(group="", versions=["v1"], resources=["pods"]),
            Requests(
                group="", versions=["v1"], resources=["pods/ephemeralcontainers", "pods/resize"], operations=["UPDATE"]
            ),
        ],
        namespaces=TEAM_NAMESPACES,
        conditions={"changes": _CHANGES},
        variables={
            "run": "dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([]))",
            "containers": "variables.run + dyn(object.spec.?ephemeralContainers.orValue([]))",
        },
        validations=[
            *pod_baseline.validations([PINNED_MEMORY] if rules.pinned_memory else []),
            *_of_volumes(rules),
            *_of_scheduling(rules),
            *_of_networks(),
            *_of_quota(rules),
            *_of_gpus(rules),
            *_of_end(rules),
        ],
    )


_CHANGES: Final = (
    "oldObject == null || object.spec != oldObject.spec || "
    "!object.metadata.?finalizers.orValue([]).all(f, f in oldObject.metadata.?finalizers.orValue([]))"
)


def _of_volumes(rules: PodRules) -> Iterator[Validation]:
    kinds = " || ".join(f"has(v.{kind})" for kind in VOLUMES)
    volumes = "object.spec.?volumes.orValue([])"
    host = " || has(v.hostPath)" if rules.scratch_folder is not None else ""
    yield Validation(
        expression=f"{volumes}.all(v, {kinds}{host})",
        message=f"spec.volumes: pods of a team mount volumes of these kinds: {', '.join(VOLUMES)}"
        + (f", and the node's folder {rules.scratch_folder}" if host else "; for a folder of the node use emptyDir"),
    )
    if rules.scratch_folder is not None:
        yield from scratch_rules.validations(rules.scratch_folder)


def _of_scheduling(rules: PodRules) -> Iterator[Validation]:
    yield Validation(
        expression="request.operation != 'CREATE' || object.spec.?nodeName.orValue('') == ''",
        message="spec.nodeName: a scheduler chooses a pod's node; use spec.nodeSelector",
    )
    own = "t.?namespaces.orValue([]).all(n, n == request.namespace) && !has(t.namespaceSelector)"
    for field in ("podAffinity", "podAntiAffinity"):
        terms = f"object.spec.?affinity.?{field}"
        yield Validation(
            expression=f"{terms}.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).all(t, {own}) && "
            f"{terms}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.podAffinityTerm)"
            f".all(t, {own})",
            message=f"spec.affinity.{field}: a pod of a team chooses nodes by its own team's pods, and keeps nobody "
            "else's away; remove namespaces and namespaceSelector",
        )
    yield Validation(
        expression="object.spec.?runtimeClassName.orValue('') == ''",
        message="spec.runtimeClassName: pods of a team run in the nodes' own runtime; remove it",
    )
    pods = (f"object.spec.?affinity.?{field}" for field in ("podAffinity", "podAntiAffinity"))
    sizes = (
        f"{each}.?{how}DuringSchedulingIgnoredDuringExecution" for each in pods for how in ("required", "preferred")
    )
    yield Validation(
        expression=f"[{', '.join(f'{each}.orValue([]).size()' for each in sizes)}].sum() <= {AFFINITY_TERMS}",
        message=f"spec.affinity: a pod has at most {AFFINITY_TERMS} terms about other pods, because the scheduler "
        "compares each with all pods; remove some",
    )
    taints = ", ".join(sorted({toleration["key"] for toleration in rules.tolerations} | set(rules.devices)))
    yield Validation(
        expression=f"object.spec.?tolerations.orValue([]).all(t, {_tolerated(rules)})",
        message=f"spec.tolerations: pods of a team tolerate the taints of GPU nodes ({taints or 'there are none'}), "
        f"and for at most {_UNHEALTHY_SECONDS} s (tolerationSeconds) that a node is not ready or unreachable",
    )
    yield Validation(
        expression=f"object.spec.?priorityClassName.orValue('') in {words(('', *rules.priority_classes))}",
        message=f"spec.priorityClassName: pods of a team have one of {', '.join(rules.priority_classes)}; name one",
    )
    yield Validation(
        expression=f"object.spec.?schedulerName.orValue('{DEFAULT_SCHEDULER}') in {words(rules.schedulers)}",
        message=f"spec.schedulerName: pods of a team are placed by {', '.join(rules.schedulers)}; remove it",
    )


def _of_networks() -> Iterator[Validation]:
    """Yield the rules that keep pods on the cluster's network. Only the network may annotate existing pods."""
    yield Validation(
        expression="request.operation != 'CREATE' || object.metadata.?annotations.orValue({}).all(k, "
        f"!k.startsWith('{_NETWORKS}') && !(k in {words(_ATTACHED)}))",
        message=f"metadata.annotations: those of {_NETWORKS}, and {' and '.join(_ATTACHED)}, are written by the "
        "cluster's network alone; remove them",
    )
    networks = f"object.metadata.?annotations[?'{_JOINED}']"
    yield Validation(
        expression=f"request.operation != 'CREATE' || {networks}.orValue('none').matches('{_OWN_NETWORKS}')",
        message=f"metadata.annotations[{_JOINED}]: a pod of a team joins networks of its own namespace; name them "
        "without a namespace, separated by commas",
    )


def _of_quota(rules: PodRules) -> Iterator[Validation]:
    """Yield the rules that keep pods within their admitted resources. Kueue counts only what containers request."""
    asked = " && ".join(
        f"quantity(c.?resources.?requests[?'{resource}'].orValue('0')).isGreaterThan(quantity('0'))"
        for resource in (names.CPU, names.MEMORY)
    )
    yield Validation(
        expression=f"variables.run.all(c, {asked})",
        message="resources.requests: each container of a team's pods asks for cpu and memory, for a quota counts what "
        "is asked for; add both",
    )
    yield Validation(
        expression=f"variables.run.all(c, c.?resources.?limits[?'{names.MEMORY}'].hasValue())",
        message="resources.limits: each container of a team's pods is limited in memory, or it would take its "
        "neighbours'; add the amount that it requests",
    )
    for rule in amounts.BOUNDED:
        yield replace(rule.validation("object"), message=f"resources: {rule.message}")
    shared = " || ".join(f"key.startsWith('{prefix}')" for prefix in UNCOUNTED if prefix != names.DISK)
    limits = "c.?resources.?limits.orValue({})"
    yield Validation(
        expression=f"variables.run.map(c, {limits}.map(key, {shared}, "
        f"quantity(c.resources.limits[key]).asApproximateFloat()).sum()).sum() <= {rules.uncounted}.0",
        message=f"resources: no quota counts network ports that all pods of a node share; ask for {rules.uncounted} in "
        "one container",
    )
    yield Validation(
        expression="dyn(object.spec).?resources.?requests.orValue({}).size() == 0 && "
        "dyn(object.spec).?resources.?limits.orValue({}).size() == 0",
        message="spec.resources: no quota counts what a pod asks for as a whole; move it to the containers",
    )
    yield Validation(
        expression="object.spec.?resourceClaims.orValue([]).size() == 0",
        message="spec.resourceClaims: no quota counts claimed devices; ask for them in a container's resources",
    )
    yield Validation(
        expression="object.spec.?initContainers.orValue([]).all(c, c.?restartPolicy.orValue('') == '')",
        message="spec.initContainers.restartPolicy: no quota counts an init container that stays beside the others; "
        "move it to spec.containers",
    )
    yield Validation(
        expression="request.?subResource.orValue('') != 'resize'",
        message="pods/resize: a pod of a team keeps what its queue has admitted; submit the job anew",
    )
    yield Validation(
        expression="request.operation != 'CREATE' || "
        "!request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')",
        message="a team's own service account creates no pod, which no queue would count; submit an AppWrapper",
    )


def _of_gpus(rules: PodRules) -> Iterator[Validation]:
    """Yield the rules that keep pods to the GPUs that they were assigned."""
    for resource in rules.withheld:
        asked = " && ".join(f"!('{resource}' in c.?resources.?{part}.orValue({{}}))" for part in ("requests", "limits"))
        yield Validation(
            expression=f"variables.run.all(c, {asked})",
            message=f"resources: {resource} is not for pods of a team; ask for one of {', '.join(rules.devices)}",
        )
    if rules.mounts_give_gpus:
        yield Validation(
            expression="variables.containers.all(c, c.?volumeMounts.orValue([]).all(m, "
            f"!m.mountPath.startsWith('{_GPU_MOUNTS}') && !m.mountPath.contains('//') && "
            "!m.mountPath.contains('/./') && !m.mountPath.contains('/..')))",
            message=f"volumeMounts: a mount below {_GPU_MOUNTS} would be taken for a GPU; mount it elsewhere, under a "
            "path without .. and doubled /",
        )


def _of_end(rules: PodRules) -> Iterator[Validation]:
    """Yield the rules that make a borrower return its capacity in time."""
    yield Validation(
        expression=f"object.metadata.?finalizers.orValue([]).all(f, f == '{_JOB_FINALIZER}')",
        message="metadata.finalizers: pods of a team go when they are deleted; remove them",
    )
    yield Validation(
        expression=f"object.spec.?terminationGracePeriodSeconds.orValue(0) <= {rules.grace_seconds}",
        message=f"spec.terminationGracePeriodSeconds: pods of a team end within {rules.grace_seconds} s, so that "
        "others get back what is theirs; lower it",
    )


def _tolerated(rules: PodRules) -> str:
    """Return CEL that is true if a toleration `t` covers no more than an allowed one does."""
    devices = [{"key": resource, "operator": "Exists"} for resource in rules.devices]
    covered = [_covers(allowed) for allowed in (*rules.tolerations, *devices, _MEMORY_PRESSURE)]
    passing = (
        f"t.?key.orValue('') in {words(_UNHEALTHY)} && t.?effect.orValue('') == 'NoExecute' && "
        f"t.?tolerationSeconds.orValue({_UNHEALTHY_SECONDS + 1}) <= {_UNHEALTHY_SECONDS}"
    )
    return " || ".join(f"({condition})" for condition in (*covered, passing))


def _covers(allowed: Mapping[str, str]) -> str:
    conditions = [f"t.?key.orValue('') == {_text(allowed['key'])}"]
    if allowed.get("operator", "Equal") == "Equal":
        value = _text(allowed.get("value", ""))
        conditions.append(f"t.?operator.orValue('Equal') == 'Equal' && t.?value.orValue('') == {value}")
    if "effect" in allowed:
        conditions.append(f"t.?effect.orValue('') == {_text(allowed['effect'])}")
    return " && ".join(conditions)


def _text(value: str) -> str:
    """Return a CEL string literal for any text."""
    return json.dumps(value)
