"""Fields of wrapped manifests that are there without a value, which rules in CEL cannot be asked about.

Kubernetes takes `containers: null` for no containers, and templates of manifests that leave a value empty write it so.
A rule that meets one ends with an error of CEL, by which the job is refused in words that name neither the field nor
what to do. Other fields may be null, as kubectl's own `creationTimestamp: null` is.
"""

from __future__ import annotations

from typing import Final

from components import names
from components.kubernetes.admission import Validation, words

FIELDS: Final = (
    "annotations",
    "backoffLimit",
    "completions",
    "containers",
    "elasticPolicy",
    "enableInTreeAutoscaling",
    "enableIngress",
    "finalizers",
    "headGroupSpec",
    "initContainers",
    "labels",
    "limits",
    "manualSelector",
    "minMember",
    "minReplicas",
    "minResources",
    "numOfHosts",
    "parallelism",
    "pytorchReplicaSpecs",
    "rayClusterSpec",
    "replicas",
    "replicatedJobs",
    "requests",
    "scaleStrategy",
    "scheduleTimeoutSeconds",
    "spec",
    "template",
    "workerGroupSpecs",
    "workersToDelete",
)
"""Those of which rules for wrapped manifests read items, a number or a truth (`components.tenancy.wrapped_kinds`)."""

_AMOUNTS: Final = (names.CPU, names.MEMORY, names.DISK)

EMPTY: Final = r"""'%s'.format([variables.manifests]).findAll(r'"[^"\\]+": ?null').map(found, found.split('"')[1])"""
"""CEL of the names of all fields that are null. Written as a text, names and texts stand in quotation marks, and those
within them are escaped (google/cel-go, ext/formatting.go)."""

_MISSED: Final = f"variables.empty.filter(name, name in {words([*FIELDS, *_AMOUNTS])} || name.contains('/')).join(', ')"

VALIDATION: Final = Validation(
    expression=f"{_MISSED} == ''",
    message="a manifest has a field that is null: give it a value, or leave it out",
    message_expression=f"'a manifest has a field that is null: give a value to ' + {_MISSED} + ', or leave it out'",
)
"""Before all others of `variables.manifests`: the first that a request does not meet is what its author reads. Names of
most resources have a slash."""
