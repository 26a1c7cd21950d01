"""Azure's node health checks on each GPU node, on demand: hardware, GPUs, NVLink, InfiniBand.

Sources: Azure/azurehpc-health-checks for the checks; edwardsp/ai-on-aks, examples/healthcheck and examples/aksnhc, for
running them as a Job and for the taint. The image is a fixed version of upstream's, and the configuration is the
platform's. Before the checks, the job verifies that the image expects this order of arguments.
"""

from dataclasses import dataclass
from typing import Final

import pulumi

from components.azure.baselines import NodeBaseline, checks, configuration
from components.health.check_job import EXIT_CODE, OUTPUT, CheckArgs, documents
from components.health.reporter import Check
from components.kubernetes.manifests import Document
from components.kubernetes.programs import FILES_FOLDER
from components.kubernetes.volumes import Volume
from components.workloads.nccl import NcclProgram
from components.workloads.pods import Container
from components.workloads.submission import SubmittedJob

NODE_CHECK: Final = Check(name="node-check", taint="aznhc")
"""The taint is from edwardsp/ai-on-aks."""
SHARED_MEMORY: Final = "128Gi"
TIMEOUT_SECONDS: Final = 900
"""Seconds for all checks of a node together, mostly all-reduce and InfiniBand. Upstream's 500 are enough only until the
first failure."""
_CONFIGURATION: Final = "aznhc.conf"
_ROOT: Final = "/azure-nhc"
_NOT_APPLICABLE: Final = "NHCNA"
"""Azure's fault code for a check that could not run."""

NCCL_PROGRAM: Final = NcclProgram(test="/opt/nccl-tests/build/all_reduce_perf", topologies=f"{_ROOT}/topofiles")
"""The all-reduce test in the checks' image. Without an SSH server, it can test only single nodes."""


@dataclass(frozen=True, kw_only=True)
class NodeCheckArgs:
    """The arguments of the checks.

    kernel_log: mount the host's /var/log/syslog read-only for the checks of GPU and link errors. On nodes without this
    file (Azure Linux), the pods would not start. If false, these checks are omitted.
    """

    check: CheckArgs
    baseline: NodeBaseline
    kernel_log: bool = True


class NodeCheck(SubmittedJob):
    """Run the checks once for each value of the trigger, on as many nodes as the job has pods.

    A pod takes a whole node. It waits for an idle node until the job's deadline. It does not use the queues.
    """

    def __init__(self, name: str, args: NodeCheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("health:NodeCheck", name, job_documents(args), opts)


def job_documents(args: NodeCheckArgs) -> list[Document]:
    """Return the objects of the check."""
    measure = Container(
        name="check",
        command=["/bin/bash", "-c", script()],
        variables={"AZ_NHC_ROOT": _ROOT},
        volumes=(),
        ports={},
        working_directory=_ROOT,
    )
    source = {"hostPath": {"path": "/var/log/syslog", "type": "File"}}
    log = Volume(name="kernel-log", path=f"{_ROOT}/syslog", source=source, read_only=True)
    return documents(
        NODE_CHECK,
        args.check,
        measure,
        judged={
            "kind": "nhc",
            "expected": checks(args.baseline, kernel_log=args.kernel_log),
            "notApplicable": _NOT_APPLICABLE,
        },
        data={_CONFIGURATION: configuration(args.baseline, kernel_log=args.kernel_log)},
        extra=(log,) if args.kernel_log else (),
    )


def script() -> str:
    """Return the script of the measuring container. It runs all checks, even after a failure, and logs their names."""
    return f"""set -u
exec > {OUTPUT} 2>&1
if ! grep -q 'MESSAGE_SIZE=\\$3' /etc/nhc/scripts/azure_nccl_allreduce.nhc; then
  echo "this image's check_nccl_allreduce takes its arguments in another order than the configuration gives them"
  exit 0
fi
mkdir -p {_ROOT}/output
timeout {TIMEOUT_SECONDS + 60} nhc -a -v DETACHED_MODE=0 CONFFILE={FILES_FOLDER}/{_CONFIGURATION} \\
  LOGFILE={_ROOT}/output/aznhc.log TIMEOUT={TIMEOUT_SECONDS}
code=$?
cat {_ROOT}/output/aznhc.log
echo "$code" > {EXIT_CODE}
"""
