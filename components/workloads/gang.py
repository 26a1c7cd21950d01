"""A sample gang: pods that run together or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from components import names
from components.kubernetes import workloads
from components.kubernetes.manifests import Document, Manifest
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import UNPRIVILEGED
from components.scheduling.pod_group import in_group, pod_group
from components.tenancy.quota import Quota
from components.workloads.submission import SUBMITTER


@dataclass(frozen=True, kw_only=True)
class GangArgs:
    """The arguments of the job.

    user: user of the job, recorded as an annotation. None for no particular user.
    image: has a `sleep` command.
    node_selector: of the GPU nodes. Kueue adds the tolerations of its flavor.
    has_pod_groups: pods of a PodGroup are bound together, and the gang gets a PodGroup.
    """

    namespace: pulumi.Input[str]
    queue: str = names.LOCAL_QUEUE
    user: str | None = None
    pods: int
    requests: Quota
    seconds: int
    priority_class: str
    image: str
    node_selector: Mapping[str, str] = field(default_factory=dict)
    has_pod_groups: bool = False


class Gang(pulumi.ComponentResource):
    """Submit an AppWrapper with one Job.

    Kueue and AppWrapper reject or revert changes of a submitted job. Any change, here or by hand, therefore resubmits
    it. AppWrapper deletes a completed job after a week, and the next update resubmits it.
    """

    name: pulumi.Output[str]

    def __init__(self, name: str, args: GangArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:workloads:Gang", name, None, opts)
        wrapper = Manifest(
            name,
            app_wrapper(name, args),
            pulumi.ResourceOptions(parent=self, replace_on_changes=["metadata", "spec"], delete_before_replace=True),
        )
        self.name = wrapper.object_name
        self.register_outputs({"name": self.name})


def app_wrapper(name: str, args: GangArgs) -> Document:
    """Return the AppWrapper. The gang is the pods of its Job, with as many completions as run in parallel.

    Limits equal requests, as extended resources require. Source of the shape: MLBatch tutorial, sample jobs.
    """
    requests = {resource: str(amount) for resource, amount in args.requests.items()}
    container = {
        "name": "sleeper",
        "image": args.image,
        "command": ["sleep", str(args.seconds)],
        "securityContext": dict(UNPRIVILEGED),
        "resources": {"requests": requests, "limits": requests},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "priorityClassName": args.priority_class,
        **NodeGroup(node_selector=args.node_selector).body(),
        "containers": [container],
    }
    job = workloads.job(name, None, {}, pod, {"parallelism": args.pods, "completions": args.pods})
    components = [pod_group(name, args.pods), in_group(name, job)] if args.has_pod_groups else [job]
    return {
        "apiVersion": names.APPWRAPPER_API,
        "kind": "AppWrapper",
        "metadata": {
            "name": name,
            "namespace": args.namespace,
            "labels": {names.QUEUE_LABEL: args.queue},
            **({"annotations": {SUBMITTER: args.user}} if args.user else {}),
        },
        "spec": {"components": [{"template": component} for component in components]},
    }
