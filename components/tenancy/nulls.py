"""Reject fields of wrapped manifests that are null, because rules in CEL cannot evaluate them.

Kubernetes reads `containers: null` as an empty list, and templates of manifests with an empty value produce it. A rule
that reads such a field ends with an error of CEL. This error names neither the field nor the fix. Other fields may be
null, such as kubectl's `creationTimestamp: null`.
"""

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
    "ephemeralContainers",
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
    "schedulingGates",
    "spec",
    "template",
    "tolerations",
    "workerGroupSpecs",
    "workersToDelete",
)
"""Fields whose items, number or boolean the rules for wrapped manifests read (`components.tenancy.wrapped_kinds`), and
those that AppWrapper takes for a list (v1.2.2, `resource_management.go`, createComponent)."""

_AMOUNTS: Final = (names.CPU, names.MEMORY, names.DISK)

EMPTY: Final = r"""'%s'.format([variables.manifests]).findAll(r'"[^"\\]+": ?null').map(found, found.split('"')[1])"""
"""CEL of the names of all fields that are null. In the text form of a manifest, names and strings are quoted, and
quotation marks inside them are escaped (google/cel-go, ext/formatting.go)."""

_MISSED: Final = f"variables.empty.filter(name, name in {words([*FIELDS, *_AMOUNTS])} || name.contains('/')).join(', ')"

VALIDATION: Final = Validation(
    expression=f"{_MISSED} == ''",
    message="a manifest has a field that is null: give it a value, or leave it out",
    message_expression=f"'a manifest has a field that is null: give a value to ' + {_MISSED} + ', or leave it out'",
)
"""Comes before all other uses of `variables.manifests`, because the API server reports the first validation that fails.
Names of most resources contain a slash."""
