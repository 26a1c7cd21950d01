"""The kinds of jobs, each with its API and its controllers. Other modules derive their lists from it.

The modules with rules know the fields of a kind: `components/tenancy/pod_templates.py` has the paths of its pods,
`components/tenancy/growing_jobs.py` the fields that let it grow.
"""

from dataclasses import dataclass
from typing import Final

from components import names


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of the Kubernetes API.

    group: empty for the core API.
    plural: the resource's name.
    controller: value of `managedBy` for the controller that creates its pods. None for kinds without this field.
    """

    group: str
    version: str
    kind: str
    plural: str
    controller: str | None

    @property
    def api(self) -> str:
        """Group and version in the format of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def identity(self) -> str:
        """API version and kind, such as batch/v1/Job."""
        return f"{self.api}/{self.kind}"

    @property
    def resource(self) -> str:
        """The resource in the format of quotas and CRDs, such as rayjobs.ray.io."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def framework(self) -> str:
        """The kind in the format of Kueue's integrations, such as ray.io/rayjob."""
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
"""Sources of the controllers: k8s.io/api batch/v1; JobSet v1alpha2; training-operator and KubeRay v1; Trainer v1alpha1;
AppWrapper v1beta2."""

POD_GROUP: Final = JobKind(
    group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups", controller=None
)
"""It has no pods. It names pods that are bound together."""
DEPLOYMENT: Final = JobKind(group="apps", version="v1", kind="Deployment", plural="deployments", controller=None)
STATEFUL_SET: Final = JobKind(group="apps", version="v1", kind="StatefulSet", plural="statefulsets", controller=None)

_MPI_JOB: Final = JobKind(group=_KUBEFLOW, version="v2beta1", kind="MPIJob", plural="mpijobs", controller=None)
_PADDLE_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="PaddleJob", plural="paddlejobs", controller=None)
_TF_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="TFJob", plural="tfjobs", controller=None)
_XGBOOST_JOB: Final = JobKind(group=_KUBEFLOW, version="v1", kind="XGBoostJob", plural="xgboostjobs", controller=None)

RUN: Final = (JOB, JOB_SET, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB)
"""Jobs whose pods AppWrapper counts by itself. Every AppWrapper may contain them."""
ENDLESS: Final = (DEPLOYMENT, STATEFUL_SET)
"""Kinds that AppWrapper also counts, but that never end. AppWrappers may contain those in the settings."""
SUBMITTED: Final = (APPWRAPPER, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, TRAIN_JOB)
"""Jobs that members may create directly (project-codeflare/mlbatch, `setup.k8s/mlbatch-edit-role.yaml`), and TrainJobs.
AppWrapper 1.2.2 cannot contain TrainJobs, because it does not count their pods (`pkg/utils/utils.go`)."""
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
"""Jobs that Kueue queues, in the order of its configuration. This is MLBatch's list with TrainJobs, and without
`kubeflow.org/mxjob`, which Kueue dropped in 0.11.

`batch/job` is off, because users submit Jobs inside AppWrappers. AppWrapper 1.0 and later does not queue itself
(`pkg/config/config.go`), so Kueue's built-in integration manages AppWrappers. Kueue 0.10 had none, and MLBatch declared
them as an external framework.
"""
