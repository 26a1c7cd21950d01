"""Rules of an admission policy on pods that enforce Pod Security's Baseline.

A job with pinned memory, or with a mounted folder of its node, needs more than Baseline, so the namespace's Pod
Security level has to be `privileged`. The policy enforces the rest of Baseline in this case too. The lists are those of
k8s.io/pod-security-admission v0.34, `policy/`. The policy itself has a stricter rule for volumes.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from components.kubernetes.admission import Validation, words

_CAPABILITIES: Final = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
_SYSCTLS: Final = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop")


def validations(capabilities: Sequence[str] = ()) -> Iterator[Validation]:
    """Yield the rules. In them, `variables.containers` has all containers of a pod.

    capabilities: capabilities that containers may add besides those of Baseline.
    """
    yield from _of_the_node()
    yield from _of_containers(capabilities)
    yield from _of_confinement()


def _of_the_node() -> Iterator[Validation]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        yield Validation(
            expression=f"!object.spec.?{field}.orValue(false)",
            message=f"spec.{field}: pods of a team share no network and no processes with their node; remove it",
        )
    yield Validation(
        expression=f"object.spec.?securityContext.?sysctls.orValue([]).all(s, s.name in {words(_SYSCTLS)})",
        message="spec.securityContext.sysctls: only sysctls that a pod has for itself may be set: "
        + ", ".join(_SYSCTLS),
    )


def _of_containers(capabilities: Sequence[str]) -> Iterator[Validation]:
    yield Validation(
        expression=_each("!c.?securityContext.?privileged.orValue(false)"),
        message="securityContext.privileged: containers of a team's pods are not privileged; remove it",
    )
    added = (*_CAPABILITIES, *capabilities)
    yield Validation(
        expression=_each(f"c.?securityContext.?capabilities.?add.orValue([]).all(a, a in {words(added)})"),
        message=f"securityContext.capabilities.add: containers of a team's pods add none but {', '.join(added)}",
    )
    yield Validation(
        expression=_each("c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)"),
        message="ports.hostPort: containers of a team's pods open no port of the node; use a Service",
    )
    yield Validation(
        expression=_both("windowsOptions.?hostProcess.orValue(false) == false"),
        message="securityContext.windowsOptions.hostProcess: pods of a team are no processes of the node; remove it",
    )
    yield Validation(
        expression=_each("c.?securityContext.?procMount.orValue('Default') == 'Default'"),
        message="securityContext.procMount: containers of a team's pods see /proc masked; remove it",
    )
    hosts = ", ".join(f"c.?{probe}.?{kind}.?host.orValue('')" for probe in _PROBES for kind in ("httpGet", "tcpSocket"))
    yield Validation(
        expression=_each(f"[{hosts}].all(h, h == '')"),
        message="host of a probe or a lifecycle hook: the node would call it in the pod's place; remove it, for the "
        "pod itself is the default",
    )


def _of_confinement() -> Iterator[Validation]:
    for field, name in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        yield Validation(
            expression=_both(f"{field}.?type.orValue('RuntimeDefault') != 'Unconfined'"),
            message=f"securityContext.{field}: pods of a team run under a {name} profile; set RuntimeDefault, or none",
        )
    yield Validation(
        expression="object.metadata.?annotations.orValue({}).all(k, "
        f"!k.startsWith('{_APPARMOR_ANNOTATION}') || object.metadata.annotations[k] in ['', 'runtime/default'] || "
        "object.metadata.annotations[k].startsWith('localhost/'))",
        message=f"metadata.annotations[{_APPARMOR_ANNOTATION}...]: pods of a team run under an AppArmor profile; "
        "remove it",
    )
    yield Validation(
        expression=_both(f"seLinuxOptions.?type.orValue('') in {words(_SELINUX_TYPES)}"),
        message="securityContext.seLinuxOptions.type: pods of a team have a container's type; remove it",
    )
    for field in ("user", "role"):
        yield Validation(
            expression=_both(f"seLinuxOptions.?{field}.orValue('') == ''"),
            message=f"securityContext.seLinuxOptions.{field}: pods of a team choose none; remove it",
        )


def _each(condition: str) -> str:
    """Return CEL that is true if all containers `c` meet a condition."""
    return f"variables.containers.all(c, {condition})"


def _both(condition: str) -> str:
    """Return CEL that is true if the security contexts of the pod and of all containers meet a condition."""
    return f"object.spec.?securityContext.?{condition} && {_each(f'c.?securityContext.?{condition}')}"
