"""Installs the admission policies that isolate teams, as settings and cluster require."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from components import names
from components.kubernetes.admission import AdmissionPolicy
from components.kubernetes.cluster import Cluster
from components.kubernetes.namespace import pod_security
from components.kubernetes.security import PodSecurity
from components.scheduling.priorities import PRIORITIES
from components.tenancy import (
    callers,
    job_bounds,
    lasting_tokens,
    operator_scope,
    own_volumes,
    pod_policy,
    prompt_deletion,
    quota_gate,
    requested_projects,
    service_policy,
    train_job_room,
    train_jobs,
    user_queues,
    wrapped_kinds,
)
from components.tenancy.boundary import Boundary, BoundaryArgs
from components.tenancy.pod_policy import PodRules
from components.tenancy.promises import Promise
from components.tenancy.service_policy import ServiceRules
from stacks.config.inputs import StackInputs
from stacks.layers import gpu_nodes
from stacks.layers.scheduling import schedulers


def install(inputs: StackInputs[Any], cluster: Cluster) -> list[Boundary]:
    """Register the policies and return the resources that teams wait for: none if the cluster has no policies."""
    if not cluster.has_admission_policies:
        return []
    return [Boundary("boundary", BoundaryArgs(policies=policies(inputs, cluster)), cluster.options())]


def policies(inputs: StackInputs[Any], cluster: Cluster) -> Sequence[AdmissionPolicy]:
    """Return the policies for the namespaces of teams, and for namespaces that users create."""
    tenancy, gatekeepers = inputs.settings.tenancy, inputs.target.gatekeepers(inputs.settings)
    running = inputs.resolved.running_kueue
    if running is not None:
        gatekeepers = replace(gatekeepers, kueue=running.account, counts_ray=running.counts_ray)
    jobs, rules = tenancy.jobs, pod_rules(inputs, cluster)
    own = list(inputs.target.projects(inputs.settings))
    return [
        pod_policy.policy(rules),
        service_policy.policy(service_rules(inputs, cluster)),
        *train_job_room.policies(),
        wrapped_kinds.policy(jobs.wrapped_kinds, cluster.gpu_resource),
        quota_gate.policy(cluster.gpu_resource, gatekeepers),
        train_jobs.policy(gatekeepers.trainer or callers.TRAINER),
        user_queues.policy(others=running is not None and running.has_queues),
        job_bounds.policy(jobs.bounds(), inputs.settings.tenancy.longest_grace_seconds),
        prompt_deletion.policy(tenancy.longest_grace_seconds),
        own_volumes.policy([team.name for team in inputs.settings.teams]),
        lasting_tokens.policy(gatekeepers),
        *operator_scope.policies(without=_without(inputs)),
        *(
            [requested_projects.policy(rules.devices, own, cluster.default_priority)]
            if inputs.target.has_projects
            else []
        ),
    ]


def _without(inputs: StackInputs[Any]) -> Sequence[str]:
    """Return the promises without a policy. That for operators of jobs stays for those that the stack installs."""
    own = inputs.settings.queueing
    installs = any(each.enabled for each in (own.training_operator, own.kuberay, own.job_set, own.trainer))
    kept = {str(Promise.JOB_OPERATOR_SCOPE)} if installs else set()
    return [name for name in inputs.resolved.unenforced if name not in kept]


def pod_rules(inputs: StackInputs[Any], cluster: Cluster) -> PodRules:
    """Return what pods of teams may have of this cluster."""
    settings = inputs.settings
    fabrics = [cluster.fabric, *(division.fabric for division in inputs.resolved.divisions[1:])]
    network = list(dict.fromkeys(each.resource for each in fabrics if each.resource is not None))
    scratch, own = settings.gpu.nvme_scratch, cluster.default_priority
    return PodRules(
        tolerations=cluster.placement.gpus.tolerations,
        devices=(cluster.gpu_resource, *network),
        uncounted=max((each.devices for each in fabrics if each.resource == names.SHARED_INFINIBAND), default=1),
        withheld=[names.GPU] if cluster.gpu_resource != names.GPU else [],
        mounts_give_gpus=gpu_nodes.gives_by_mounts(settings),
        priority_classes=(*PRIORITIES, *([own] if own is not None else [])),
        schedulers=schedulers(inputs),
        pinned_memory=bool(network),
        scratch_folder=scratch.folder if scratch.enabled else None,
        grace_seconds=settings.tenancy.longest_grace_seconds,
    )


def service_rules(inputs: StackInputs[Any], cluster: Cluster) -> ServiceRules:
    """Return which teams have Services that are reached from outside."""
    teams = inputs.settings.teams
    return ServiceRules(
        load_balancers=[team.name for team in teams if team.services.load_balancers],
        node_ports=[team.name for team in teams if team.services.node_ports],
        annotations=tuple(cluster.load_balancer or {}),
    )


def namespace_labels(inputs: StackInputs[Any], cluster: Cluster) -> Mapping[str, str]:
    """Return the labels that make Kueue manage teams' namespaces, and Pod Security restrict them.

    The level is Baseline. Where jobs have pinned memory or mount the scratch folder, which Baseline refuses, only the
    admission policy restricts pods. OpenShift sets these labels itself, after who may use which
    SecurityContextConstraints.
    """
    running = inputs.resolved.running_kueue
    managed = running.labels if running is not None else {}
    if cluster.pod_security is PodSecurity.SCC:
        return managed
    return {**managed, **pod_security("baseline" if pod_rules(inputs, cluster).is_baseline else "privileged")}
