"""Two matrix multiplications that share a GPU: upstream's test of NVshare, with a time limit and a result."""

from dataclasses import dataclass
from typing import Final

import pulumi

from components import names
from components.kubernetes import workloads
from components.kubernetes.manifests import SKIP_AWAIT, Document, Manifest
from components.kubernetes.placement import NodeGroup
from components.kubernetes.security import UNPRIVILEGED
from components.layer import Layer

NAME: Final = "nvshare-tf-matmul"
PODS: Final = 2
_SLACK_SECONDS: Final = 900
"""Seconds to pull the image and until a GPU is available."""

_RUN: Final = (
    "{ timeout $SECONDS_AT_MOST python -u /tf-matmul.py 2>&1; echo $? > /tmp/code; } | tee /tmp/output; "
    "tail -n 2 /tmp/output > /dev/termination-log; exit $(cat /tmp/code)"
)
"""Writes the last two lines as the container's termination message: PASS and the seconds that it took. Exit code 124 is
a timeout of `timeout`."""


@dataclass(frozen=True, kw_only=True)
class NvshareVerificationArgs:
    """The arguments of the test.

    image: upstream's, with TensorFlow. It installs one package from PyPI at the start.
    nodes: nodes with a GPU of at least 10 GB of memory that NVshare offers.
    timeout_seconds: of each multiplication.
    """

    namespace: pulumi.Input[str]
    image: str
    nodes: NodeGroup
    timeout_seconds: int = 1200


class NvshareVerification(Layer):
    """Run both at once. The update does not wait for them: `mlbatch status` says how they ended."""

    def __init__(self, name: str, args: NvshareVerificationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("mlbatch:nodes:NvshareVerification", name, None, opts)
        options = pulumi.ResourceOptions(parent=self, replace_on_changes=["spec"], delete_before_replace=True)
        self.ready = [Manifest(f"{name}/Job", job_body(args), options)]
        self.register_outputs({})


def job_body(args: NvshareVerificationArgs) -> Document:
    """Return the Job (grgalex/nvshare, tests/kubernetes/manifests/nvshare-tf-pod-1.yaml and -2.yaml, at 1a8f211).

    Its own deadline is later than that of the multiplications, and ends pods that never start.
    """
    container = {
        "name": NAME,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", _RUN],
        "env": [
            {"name": "NVSHARE_DEBUG", "value": "1"},
            {"name": "SECONDS_AT_MOST", "value": str(args.timeout_seconds)},
        ],
        "resources": {"limits": {names.SHARED_GPU: "1"}},
        "securityContext": dict(UNPRIVILEGED),
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        **args.nodes.body(),
        "containers": [container],
    }
    spec = {
        "completionMode": "Indexed",
        "completions": PODS,
        "parallelism": PODS,
        "backoffLimit": 0,
        "activeDeadlineSeconds": args.timeout_seconds + _SLACK_SECONDS,
    }
    labels = {"app.kubernetes.io/name": NAME}
    return workloads.job(NAME, args.namespace, labels, pod, spec, annotations=SKIP_AWAIT)
