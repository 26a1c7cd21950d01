"""Names as Kubernetes takes them."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, TypeAlias

from stacks.config.errors import MISSING, ConfigError, Path, another_name
from stacks.settings.model import Rule, form

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NAMES: Final = (
    "at most 63 letters, digits, -, _ and ., with a letter or digit first and last, behind a domain and / where it has "
    "one"
)
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def is_label_value(value: str) -> bool:
    """Whether a label or a taint can have a value."""
    return _VALUE.fullmatch(value) is not None


def label_errors(path: Path, labels: Mapping[str, str]) -> Iterator[ConfigError]:
    """Yield errors of invalid labels in a selector (k8s.io/apimachinery, pkg/util/validation)."""
    for name, value in labels.items():
        prefix, _, own = name.rpartition("/")
        if not _QUALIFIED.fullmatch(own) or ("/" in name and not is_subdomain(prefix)):
            yield ConfigError(
                (*path, name),
                "Kubernetes would reject this label's name",
                "write the label as `kubectl get nodes --show-labels` shows it",
                expected=_NAMES,
                value=MISSING,
            )
        elif not _VALUE.fullmatch(value):
            yield ConfigError(
                (*path, name),
                "Kubernetes would reject this label's value",
                "write the value as `kubectl get nodes --show-labels` shows it",
                expected="at most 63 letters, digits, -, _ and ., with a letter or digit first and last",
                value=MISSING,
            )


_CLASSES: Final = f"1 to {SUBDOMAIN_LENGTH} of a-z, 0-9, - and ., with a letter or digit first and last"
_BOUNDED: Final = rf"(?=.{{1,{SUBDOMAIN_LENGTH}}}$){_SUBDOMAIN.pattern}"


def _class(what: str, kind: str) -> Rule:
    """Return a validator of the name of a cluster-wide class. kind: as `kubectl` takes it."""
    hint = f"write it as `kubectl get {kind}` shows it, or remove the key"
    return form(_BOUNDED, _CLASSES, f"this cannot be the name of a {what}", hint)


ClassName: TypeAlias = Annotated[str, _class("storage class", "storageclass")]
"""A storage class's name."""
RuntimeClassName: TypeAlias = Annotated[str, _class("RuntimeClass", "runtimeclass")]
"""A RuntimeClass's name."""


def qualified_errors(path: Path, name: str, value: object = MISSING) -> Iterator[ConfigError]:
    """Yield the error of an invalid name of a label, taint or annotation. value: of that key, if it has one."""
    prefix, _, own = name.rpartition("/")
    if not _QUALIFIED.fullmatch(own) or ("/" in name and not is_subdomain(prefix)):
        yield ConfigError(
            path,
            "Kubernetes would reject this name",
            "write the name as `kubectl` shows it",
            expected=_NAMES,
            value=value,
        )


def service_error(path: Path, name: str, longest: int = LABEL_LENGTH) -> Iterator[ConfigError]:
    """Yield the error of a name that is invalid for a Service (RFC 1035 label). longest: maximum characters."""
    if is_label(name) and not name[0].isdigit() and len(name) <= longest:
        return
    simpler = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")[:longest].strip("-")
    yield ConfigError(
        path,
        "Kubernetes would reject objects named after this",
        another_name(name, simpler),
        expected=f"at most {longest} of a-z, 0-9 and -, with a letter first and no - at the end (RFC 1035 label)",
    )


def is_host(name: str) -> bool:
    """Whether something can be the name of a host (RFC 1123) or an address; digits and dots are one only if it is."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return is_subdomain(name.lower()) and not re.fullmatch(r"[0-9.]+", name)
    return True


def is_label(name: str) -> bool:
    """Whether a name is an RFC 1123 label, as namespaces and most objects need."""
    return _LABEL.fullmatch(name) is not None and len(name) <= LABEL_LENGTH


def is_subdomain(name: str) -> bool:
    """Whether a name is an RFC 1123 subdomain."""
    return _SUBDOMAIN.fullmatch(name) is not None and len(name) <= SUBDOMAIN_LENGTH


def label_error(path: Path, name: str) -> Iterator[ConfigError]:
    """Yield the error of a name that is not an RFC 1123 label, with a similar valid name."""
    if is_label(name):
        return
    simpler = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LABEL_LENGTH].strip("-")
    reason = f"it has {len(name)} characters" if len(name) > LABEL_LENGTH else "it has invalid characters"
    yield ConfigError(
        path,
        f"Kubernetes would reject this name: {reason}",
        another_name(name, simpler),
        expected=f"at most {LABEL_LENGTH} of a-z, 0-9 and -, with a letter or digit first and last (RFC 1123 label)",
    )
