"""Common parts of all health checks: a pod on each node that marks the node, measures, and reports.

The measuring container has the GPUs and no access to the cluster. Only the two others have the service account.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from components import names
from components.health.reporter import ACCOUNT, NAMESPACE, NCCL_GATE, QUEUE_LABEL, QUEUE_VALUES, TAINT_VALUE, Check
from components.kubernetes.manifests import Document
from components.kubernetes.objects import with_namespace
from components.kubernetes.programs import API_CLIENT, FILES_FOLDER, OWN_NODE, Program
from components.kubernetes.resources import Resources
from components.kubernetes.security import NOBODY, READ_ONLY
from components.kubernetes.volumes import Volume, volumes
from components.workloads.indexed_job import files_name, headless_service, indexed_job
from components.workloads.pods import WORKLOAD_LABEL, Container, NodePods, container, shared_memory

SETTINGS: Final = "report.json"
RESULTS: Final = "/results"
OUTPUT: Final = f"{RESULTS}/output.txt"
EXIT_CODE: Final = f"{RESULTS}/exit-code"
RESOURCES: Final = Resources(cpu_request="100m", memory_request="64Mi", cpu_limit="500m", memory_limit="256Mi")


@dataclass(frozen=True, kw_only=True)
class GateArgs:
    """The effect of a result on a node.

    effect: of a failed node's taint. NoSchedule keeps new pods away. NoExecute also ends all pods there that do not
    tolerate it, including those of GPU operators.
    report_to_queues: also set the label that AppWrapper and the slack controller read.
    """

    effect: str = "NoSchedule"
    report_to_queues: bool = True


@dataclass(frozen=True, kw_only=True)
class CheckArgs:
    """How a check runs.

    trigger: any text. A change reruns the check.
    gate: None measures and prints only, without changing nodes.
    checks: all checks, including this one. A node that failed one of them is still checked.
    python_image: with Python 3.11 or later, for the reporter.
    """

    pods: NodePods
    trigger: str
    gate: GateArgs | None = None
    checks: Sequence[Check] = (NCCL_GATE,)
    python_image: str


def report_settings(check: Check, args: CheckArgs, judged: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the reporter's settings. judged: rules for the output."""
    gate = args.gate
    taint = {"key": check.taint, "value": TAINT_VALUE, "effect": gate.effect} if gate else None
    queues = {"key": QUEUE_LABEL, "value": QUEUE_VALUES[gate.effect]} if gate and gate.report_to_queues else None
    return {
        "check": check.name,
        "output": OUTPUT,
        "exitCode": EXIT_CODE,
        "trigger": args.trigger,
        "write": gate is not None,
        "label": check.label,
        "annotation": check.annotation,
        "failLabels": [other.label for other in args.checks],
        "taint": taint,
        "queueLabel": queues,
        **judged,
    }


def documents(
    check: Check,
    args: CheckArgs,
    measure: Container,
    *,
    judged: Mapping[str, Any],
    data: Mapping[str, str],
    extra: Sequence[Volume] = (),
) -> list[Document]:
    """Return a check's objects: files, Service and Job.

    measure: the measuring container without the common volumes. It writes OUTPUT and EXIT_CODE and always succeeds.
    data: its files.
    extra: its volumes.
    """
    files = files_name(check.name)
    settings = json.dumps(report_settings(check, args, judged), indent=2)
    program = Program(module="components.health.node_report", shared=[API_CLIENT], files={**data, SETTINGS: settings})
    pod = _pod(check.name, args, program, measure, extra)
    job = indexed_job(check.name, args.pods, pod, annotations=program.checksum())
    # The failure of one node must not end the checks of the others.
    job["spec"] |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": args.pods.nodes}
    del job["spec"]["backoffLimit"]
    return [
        program.config_map(files, NAMESPACE, {WORKLOAD_LABEL: files}),
        with_namespace(headless_service(check.name), NAMESPACE),
        with_namespace(job, NAMESPACE),
    ]


def results() -> Volume:
    """Return the volume for the output of the measuring container."""
    return Volume(name="results", path=RESULTS, source={"emptyDir": {"sizeLimit": "64Mi"}})


def _pod(check: str, args: CheckArgs, program: Program, measure: Container, extra: Sequence[Volume]) -> Document:
    own = (program.volume(files_name(check)), results())
    writes = args.gate is not None
    credentials = _credentials() if writes else ()
    mounted = (shared_memory(args.pods.shared_memory), *own, *extra, *credentials)
    reporters = [_reporter(step, program, args, (*own, *credentials)) for step in ("mark", "report")]
    # A failed node is checked again, which can remove its taint.
    placement = args.pods.placement.tolerating(one.taint for one in args.checks)
    elsewhere = {"labelSelector": {"matchLabels": {WORKLOAD_LABEL: check}}, "topologyKey": names.HOST}
    spec: Document = {
        "restartPolicy": "Never",
        **placement.body(),
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [elsewhere]}},
        "initContainers": [
            *(reporters[:1] if writes else []),
            container(args.pods, replace(measure, volumes=(*own, *extra))),
        ],
        "containers": reporters[1:],
        "volumes": volumes(mounted),
    }
    if writes:
        spec["serviceAccountName"] = ACCOUNT
    return spec


def _reporter(step: str, program: Program, args: CheckArgs, mounted: Sequence[Volume]) -> Document:
    arguments = (f"{FILES_FOLDER}/{SETTINGS}", step)
    container = program.container(step, args.python_image, arguments, RESOURCES, mounted, [OWN_NODE])
    return {**container, "securityContext": {**NOBODY, **READ_ONLY}}


def _credentials() -> tuple[Volume, ...]:
    """Return the service account's token, bound to the pod and thereby to its node, for containers that mount it."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    projected = {"projected": {"defaultMode": 0o444, "sources": sources}}
    return (Volume(name="account", path="/var/run/secrets/mlbatch", source=projected, read_only=True),)
