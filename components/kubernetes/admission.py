"""ValidatingAdmissionPolicies: rules that the API server itself holds objects to, in CEL.

They are in force from Kubernetes 1.30 (kubernetes.io, reference/access-authn-authz/validating-admission-policy); they
need no webhook that could be away. They are asked after all mutating webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from components.kubernetes.manifests import Document

API: Final = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Which requests a policy is asked about: kinds of one API group, by their plural names.

    resources: `pods/*` also names what is below. operations: CREATE, UPDATE, DELETE, CONNECT.
    scope: Namespaced or Cluster, * for both. A policy for some namespaces holds for all objects of no namespace.
    """

    group: str
    versions: Sequence[str] = ("*",)
    resources: Sequence[str]
    operations: Sequence[str] = ("CREATE", "UPDATE")
    scope: str = "*"

    def body(self) -> Document:
        """Return the resource rule."""
        return {
            "apiGroups": [self.group],
            "apiVersions": list(self.versions),
            "operations": list(self.operations),
            "resources": list(self.resources),
            "scope": self.scope,
        }


@dataclass(frozen=True, kw_only=True)
class Validation:
    """A condition that a request has to meet, in CEL, and what its sender is told otherwise.

    message_expression: CEL of a text, for a message that names the value; `message` is what is said where it fails.
    """

    expression: str
    message: str
    message_expression: str | None = None

    def body(self) -> Document:
        """Return the validation."""
        own = {"messageExpression": self.message_expression} if self.message_expression else {}
        return {"expression": self.expression, "message": self.message, **own}


@dataclass(frozen=True, kw_only=True)
class AdmissionPolicy:
    """Rules for some requests, which are refused unless all are met, and while they cannot be evaluated.

    namespaces: labels of the namespaces for which it holds; empty for all. conditions: CEL by name; the policy holds
    for requests that meet all. variables: CEL by name, in an order in which each uses earlier ones only.
    """

    name: str
    requests: Sequence[Requests]
    namespaces: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    validations: Sequence[Validation]

    def documents(self) -> list[Document]:
        """Return the policy and its binding, which puts it into force."""
        return [self._policy(), self._binding()]

    def _policy(self) -> Document:
        selector = {"namespaceSelector": {"matchLabels": dict(self.namespaces)}} if self.namespaces else {}
        conditions = [{"name": name, "expression": text} for name, text in self.conditions.items()]
        variables = [{"name": name, "expression": text} for name, text in self.variables.items()]
        return {
            "apiVersion": API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "matchPolicy": "Equivalent",
                    **selector,
                    "resourceRules": [request.body() for request in self.requests],
                },
                **({"matchConditions": conditions} if conditions else {}),
                **({"variables": variables} if variables else {}),
                "validations": [validation.body() for validation in self.validations],
            },
        }

    def _binding(self) -> Document:
        return {
            "apiVersion": API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.name},
            "spec": {"policyName": self.name, "validationActions": ["Deny"]},
        }


def words(values: Sequence[str]) -> str:
    """Return a CEL list of texts."""
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"
