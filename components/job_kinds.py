"""Which kinds jobs are made of, each with its API, and who deals with it. What others list of them is derived.

What a kind's manifest looks like inside is said where rules read it: `components/tenancy/pod_templates.py` has where
its pods are, `components/tenancy/growing_jobs.py` by what it grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from components import names


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of the Kubernetes API.

    group: empty for the core. plural: the resource's name. controller: who makes its pods, as `managedBy` of a job
    names it; nothing for what names nobody.
    """

    group: str
    version: str
    kind: str
    plural: str
    controller: str | None

    @property
    def api(self) -> str:
        """Group and version, as `apiVersion` has them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def identity(self) -> str:
        """API version and kind, such as batch/v1/Job."""
        return f"{self.api}/{self.kind}"

    @property
    def resource(self) -> str:
        """The resource as quotas and definitions name it, such as rayjobs.ray.io."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def framework(self) -> str:
        """The kind as Kueue's integrations name it, such as ray.io/rayjob."""
        return f"{self.group}/{self.kind.lower()}"


_KUBEFLOW: Final = "kubeflow.org"
_RAY: Final = "ray.io"
_KUBERAY: Final = "ray.io/kuberay-operator"

POD: Final = JobKind(group="", version="v1", kind="Pod", plural="pods", controller=None)
JOB: Final = JobKind(group="batch", version="v1", kind="Job", plural="jobs", controller="kubernetes.io/job-controller")
JOB_SET: Final = JobKind(
    group="jobset.x-k8s.io",
    version="v1alpha2",
    kind="JobSet",
    plural="jobsets",
    controller="jobset.sigs.k8s.io/jobset-controller",
)
PYTORCH_JOB: Final = JobKind(
    group=_KUBEFLOW, version="v1", kind="PyTorchJob", plural="pytorchjobs", controller="kubeflow.org/training-operator"
)
TRAIN_JOB: Final = JobKind(
    group="trainer.kubeflow.org",
    version="v1alpha1",
    kind="TrainJob",
    plural="trainjobs",
    controller="trainer.kubeflow.org/trainjob-controller",
)
RAY_CLUSTER: Final = JobKind(group=_RAY, version="v1", kind="RayCluster", plural="rayclusters", controller=_KUBERAY)
RAY_JOB: Final = JobKind(group=_RAY, version="v1", kind="RayJob", plural="rayjobs", controller=_KUBERAY)
APPWRAPPER: Final = JobKind(
    group=names.APPWRAPPER_GROUP,
    version=names.APPWRAPPER_API.rpartition("/")[2],
    kind="AppWrapper",
    plural="appwrappers",
    controller="workload.codeflare.dev/appwrapper-controller",
)
"""Controllers: k8s.io/api batch/v1; JobSet v1alpha2; training-operator and KubeRay v1; Trainer
v1alpha1; AppWrapper v1beta2."""

POD_GROUP: Final = JobKind(
    group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups", controller=None
)
"""Runs nothing: it says which pods are bound together."""
DEPLOYMENT: Final = JobKind(group="apps", version="v1", kind="Deployment", plural="deployments", controller=None)
STATEFUL_SET: Final = JobKind(group="apps", version="v1", kind="StatefulSet", plural="statefulsets", controller=None)

_MPI_JOB: Final = JobKind(group=_KUBEFLOW, version="v2beta1", kind="MPIJob", plural="mpijobs", controller=None)
_PADDLE_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="PaddleJob", plural="paddlejobs", controller=None)
_TF_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="TFJob", plural="tfjobs", controller=None)
_XGBOOST_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="XGBoostJob", plural="xgboostjobs", controller=None)

RUN: Final = (JOB, JOB_SET, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB)
"""Jobs whose pods AppWrapper counts by itself, so that each AppWrapper may contain them."""
ENDLESS: Final = (DEPLOYMENT, STATEFUL_SET)
"""What AppWrapper counts as well, and that never ends: where the settings name it, AppWrappers may contain it."""
SUBMITTED: Final = (APPWRAPPER, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, TRAIN_JOB)
"""Jobs that members may create by themselves (project-codeflare/mlbatch, `setup.k8s/mlbatch-edit-role.yaml`), and
TrainJobs, which AppWrapper 1.2.2 cannot contain, for it does not count their pods (`pkg/utils/utils.go`)."""
QUEUED: Final = (
    _MPI_JOB,
    RAY_JOB,
    RAY_CLUSTER,
    JOB_SET,
    _PADDLE_JOB,
    PYTORCH_JOB,
    _TF_JOB,
    _XGBOOST_JOB,
    TRAIN_JOB,
    APPWRAPPER,
)
"""Jobs that Kueue queues, in the order of its configuration. MLBatch's list without `kubeflow.org/mxjob`, which Kueue
dropped in 0.11, and with TrainJobs.

`batch/job` is off: users submit Jobs inside of AppWrappers. AppWrapper 1.0 and later has no queueing of its own
(`pkg/config/config.go`), so Kueue's built-in integration is the one that manages AppWrappers; Kueue 0.10 had none, and
MLBatch declared them as an external framework.
"""
