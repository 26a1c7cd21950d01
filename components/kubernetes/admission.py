"""ValidatingAdmissionPolicies: rules in CEL that the API server enforces.

Available from Kubernetes 1.30 (kubernetes.io, reference/access-authn-authz/validating-admission-policy). They need no
webhook, which could be unavailable. The API server evaluates them after all mutating webhooks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from components.kubernetes.manifests import Document

API: Final = "admissionregistration.k8s.io/v1"
MOST_ITEMS: Final = 10_000
"""The most fields and items of an object that rules are applied to. The time of a loop in CEL grows with the square of
the number, which the API server's limit of costs does not count: a loop over 64,000 items takes five seconds of a CPU
(google/cel-go v0.26.0, `interpreter/runtimecost.go`, refValStack)."""
MOST_LEVELS: Final = 24
"""The most lists and mappings within each other in a part of an object without a schema. CEL writes such a part as text
by copying it once for each level (google/cel-go v0.26.0, `ext/formatting.go`). A RayJob needs 17."""
_MOST_ESCAPES: Final = 65_536
"""The most characters that `json_size` counts as six bytes. Longer lists of them take memory of the API server."""
_FIELDS: Final = ("spec", "data", "binaryData", "type")
_METADATA: Final = {"labels": "{}", "annotations": "{}", "ownerReferences": "[]", "finalizers": "[]"}
_ITEMS: Final = r"""findAll(r'"(?:[^"\\]|\\.)*"|[,{\[]').size()"""
"""CEL of the number of strings, separators, lists and mappings in a text form. The contents of strings do not count."""


@dataclass(frozen=True, kw_only=True)
class Requests:
    """The requests that a policy matches: kinds of one API group.

    resources: plural names. `pods/*` also matches subresources.
    operations: CREATE, UPDATE, DELETE, CONNECT.
    scope: Namespaced or Cluster, * for both. A policy with a namespace selector also matches all cluster-scoped
    objects.
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
    """A condition in CEL that a request must meet.

    message: the error for the caller.
    message_expression: CEL of a message that names the value. If it fails, the caller gets `message`.
    reason: the API's reason for the error, such as Forbidden. None is Invalid, after which controllers do not retry.
    """

    expression: str
    message: str
    message_expression: str | None = None
    reason: str | None = None

    def body(self) -> Document:
        """Return the validation."""
        own = {"messageExpression": self.message_expression} if self.message_expression else {}
        reason = {"reason": self.reason} if self.reason else {}
        return {"expression": self.expression, "message": self.message, **own, **reason}


@dataclass(frozen=True, kw_only=True)
class AdmissionPolicy:
    """Rules for some requests. A request is rejected if one rule is not met or cannot be evaluated.

    namespaces: labels of the namespaces that the policy applies to. Empty matches all.
    conditions: CEL by name. The policy applies to requests that meet all of them.
    variables: CEL by name. Each may use only earlier ones.
    bounded: reject objects with more than MOST_ITEMS before the rules are applied. False for rules about controllers.
    quota: name of the ResourceQuota in the request's namespace that the rules have as `params`. Without one of this
    name, the policy does not apply. None: the rules have no `params`.
    """

    name: str
    requests: Sequence[Requests]
    namespaces: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    bounded: bool = True
    quota: str | None = None
    validations: Sequence[Validation]

    def documents(self) -> list[Document]:
        """Return the policy and its binding, which enforces it."""
        params = {"paramRef": {"name": self.quota, "parameterNotFoundAction": "Allow"}} if self.quota else {}
        binding = {
            "apiVersion": API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.name},
            "spec": {"policyName": self.name, "validationActions": ["Deny"], **params},
        }
        return [self._policy(), binding]

    def _policy(self) -> Document:
        selector = {"namespaceSelector": {"matchLabels": dict(self.namespaces)}} if self.namespaces else {}
        conditions = [{"name": name, "expression": text} for name, text in self.conditions.items()]
        judged = {"judged": _JUDGED} if self.bounded else {}
        variables = [{"name": name, "expression": text} for name, text in {**judged, **self.variables}.items()]
        params = {"paramKind": {"apiVersion": "v1", "kind": "ResourceQuota"}} if self.quota else {}
        return {
            "apiVersion": API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.name},
            "spec": {
                "failurePolicy": "Fail",
                **params,
                "matchConstraints": {
                    "matchPolicy": "Equivalent",
                    **selector,
                    "resourceRules": [request.body() for request in self.requests],
                },
                **({"matchConditions": conditions} if conditions else {}),
                **({"variables": variables} if variables else {}),
                "validations": [validation.body() for validation in self._all_validations()],
            },
        }

    def _all_validations(self) -> list[Validation]:
        if not self.bounded:
            return list(self.validations)
        return [_FEW_ITEMS, *(_guarded(each) for each in self.validations)]


def _guarded(validation: Validation) -> Validation:
    """Return a validation of judged objects. The API server evaluates the message of a rule that is met, too."""
    text = validation.message_expression
    return replace(
        validation,
        expression=f"!variables.judged || ({validation.expression})",
        message_expression=text and f"variables.judged ? {text} : ''",
    )


def written(item: str, metadata: Mapping[str, str] = _METADATA) -> str:
    """Return CEL of the text form of what people write in an object. metadata: fields, with the value if absent."""
    fields = [f"{item}.?{field}.orValue({{}})" for field in _FIELDS]
    fields += [f"{item}.metadata.?{field}.orValue({empty})" for field, empty in metadata.items()]
    return f"'{'%s' * len(fields)}'.format([{', '.join(fields)}])"


def json_size(text: str) -> str:
    """Return CEL of a bound on the bytes that a text form has as JSON. It is too low only above 384 KiB.

    The API server, its store and AppWrapper write <, > and & with six bytes each, and most control characters (Go,
    encoding/json). The text form has one byte for <, > and &, and two or four for control characters (Go,
    strconv.Quote).
    """
    return rf"(bytes({text}).size() + 5 * {text}.findAll(r'[<>&]|\\[avx]', {_MOST_ESCAPES}).size())"


_KEYS: Final = " + ".join(f"object.?{field}.orValue({{}}).size()" for field in ("data", "binaryData"))
"""CEL of the number of keys of a ConfigMap or Secret. It is cheap, unlike the text form of all keys."""
_COSTLY: Final = f"!'{'.' * 89}'.contains('{'-' * 89}')"
"""CEL that is true, and costs 81 units. A loop with it reaches the API server's limit of costs before it is slow."""


def _is_shallow(value: str, levels: int = MOST_LEVELS) -> str:
    """Return CEL that is true if a value has at most this many lists and mappings within each other."""
    if not levels:
        return f"!(type({value}) in [dyn(list), dyn(map)])"
    items = f"(type({value}) == list ? {value} : {value}.map(k, {value}[k]))"
    inner = _is_shallow(f"v{levels}", levels - 1)
    few = f"{value}.size() <= {MOST_ITEMS}"
    return f"(!(type({value}) in [dyn(list), dyn(map)]) || ({few} && {items}.all(v{levels}, {_COSTLY} && {inner})))"


SHALLOW: Final = " && ".join(
    _is_shallow(f"dyn(object.?{part}.orValue([]))") for part in ("spec.?components", "metadata.?managedFields")
)
"""CEL that is true if the parts without a schema are not nested too deeply: those of AppWrappers, and managedFields,
which each caller may write. Each policy has a copy, because the API server evaluates all policies one after the other,
also after one has rejected the request (k8s.io/apiserver v0.36.3, `validating/dispatcher.go`)."""
_JUDGED: Final = (
    f"object == null || ({SHALLOW} && (({_KEYS} <= {MOST_ITEMS} && {written('object')}.{_ITEMS} <= {MOST_ITEMS}) || "
    f"(oldObject != null && {written('object')}.{_ITEMS} <= {written('oldObject')}.{_ITEMS})))"
)
_FEW_ITEMS: Final = Validation(
    expression="variables.judged",
    message=f"an object has at most {MOST_ITEMS} fields and items, labels and annotations included, and {MOST_LEVELS} "
    "levels of lists and mappings: remove some",
)


def words(values: Sequence[str]) -> str:
    """Return a CEL list of string literals."""
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"
