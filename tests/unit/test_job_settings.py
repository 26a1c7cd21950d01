"""Bounds of members' jobs: what the settings refuse, and what follows from them for AppWrapper and its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.queueing.fault_tolerance import DEFAULTS
from components.queueing.kueue import REQUEUES, PodsReady
from components.tenancy.job_bounds import JobBounds, spoken
from tests.unit.configurations import errors_of, settings_of

ROOT = Path(__file__).resolve().parents[2]


def configured(**jobs: Any) -> dict[str, Any]:
    return {"target": "simulated", "tenancy": {"jobs": jobs}}


MISTAKES = [
    ({"wrappedKinds": ["apps/v1/Deploymet"]}, "no such kind", "did you mean apps/v1/Deployment?"),
    ({"wrappedKinds": ["Deployment"]}, "no such kind", "did you mean apps/v1/Deployment?"),
    ({"wrappedKinds": ["example.org/v1/Widget"]}, "none that AppWrapper may create", "remove the entry"),
    ({"wrappedKinds": [""]}, "no such kind", "remove the entry"),
    ({"wrappedKinds": ["batch/v1/Job"]}, "may contain this kind anyway", "remove the entry"),
    ({"wrappedKinds": ["apps/v1/Deployment", "apps/v1/Deployment"]}, "there already", "remove the entry"),
    ({"wrappedKinds": ["rbac.authorization.k8s.io/v1/RoleBinding"]}, "any permission", "remove the entry"),
    ({"wrappedKinds": ["v1/PersistentVolumeClaim"]}, "hold back the end of the job", "remove the entry"),
    ({"wrappedKinds": ["v1/Namespace"]}, "administrators", "remove the entry"),
    ({"wrappedKinds": ["v1/Node"]}, "administrators", "remove the entry"),
    ({"wrappedKinds": ["kueue.x-k8s.io/v1beta2/LocalQueue"]}, "change quotas", "remove the entry"),
    ({"wrappedKinds": ["admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"]}, "everybody's requests", "remove"),
    ({"wrappedKinds": ["apiextensions.k8s.io/v1/CustomResourceDefinition"]}, "what kinds of objects", "remove"),
    ({"wrappedKinds": ["certificates.k8s.io/v1/CertificateSigningRequest"]}, "sign in as somebody else", "remove"),
    ({"wrappedKinds": ["networking.k8s.io/v1/NetworkPolicy"]}, "who reaches whom", "remove"),
    ({"wrappedKinds": ["policy/v1/PodDisruptionBudget"]}, "hold back the loss of pods", "remove"),
    ({"wrappedKinds": ["scheduling.k8s.io/v1/PriorityClass"]}, "give way to others", "remove"),
    ({"wrappedKinds": ["storage.k8s.io/v1/StorageClass"]}, "the cluster's storage", "remove"),
    ({"wrappedKinds": ["v1/LimitRange"]}, "administrators", "remove"),
    ({"wrappedKinds": ["v1/PersistentVolume"]}, "administrators", "remove"),
    ({"wrappedKinds": ["v1/ResourceQuota"]}, "administrators", "remove"),
    ({"wrappedKinds": ["v1/ServiceAccount"]}, "administrators", "remove"),
    ({"wrappedKinds": ["workload.codeflare.dev/v1beta2/AppWrapper"]}, "in AppWrappers", "remove the entry"),
    ({"wrappedKinds": ["apps/v1/DaemonSet"]}, "beside the quota", "remove the entry"),
    ({"wrappedKinds": ["ray.io/v1alpha1/RayCluster"]}, "beside the quota", "remove the entry"),
    ({"admissionGraceSeconds": 59}, "AppWrapper itself gives a job that asks for nothing 60 seconds", "write 60"),
    ({"warmupGraceSeconds": 300}, "the platform's own jobs ask for 1800 seconds", "write 1800"),
    ({"failureGraceSeconds": 30}, "AppWrapper itself gives a job that asks for nothing 60 seconds", "write 60"),
    ({"retryPauseSeconds": 89}, "AppWrapper itself gives a job that asks for nothing 90 seconds", "retryPauseSeconds"),
    ({"warmupGraceSeconds": 2100}, "Kueue queues a job anew", "recovery.startTimeoutMinutes"),
    ({"retries": 2}, "AppWrapper itself gives a job that asks for nothing 3", "write 3"),
    ({"forcedDeletionGraceSeconds": 60}, "pods have 120 seconds to end", "tenancy.longestGraceSeconds"),
    ({"failedGraceSeconds": 86401}, "out of range", "a number in that range"),
    ({"retries": "many"}, "this is a text", "write a whole number"),
]


@pytest.mark.parametrize(("jobs", "message", "hint"), MISTAKES, ids=lambda value: str(value)[:50])
def test_a_mistake_is_told_once_with_what_may_stand_there(jobs: dict[str, Any], message: str, hint: str) -> None:
    (error,) = errors_of(configured(**jobs))
    assert error.path[:3] == ("tenancy", "jobs", *jobs)
    assert message in error.message
    assert hint in error.hint


def test_the_defaults_are_no_mistake_and_are_those_of_the_bounds() -> None:
    assert settings_of(configured()).tenancy.jobs.bounds() == JobBounds()
    assert errors_of(configured(wrappedKinds=["apps/v1/Deployment", "apps/v1/StatefulSet"])) == []


def test_appwrapper_is_told_in_its_own_words_and_nanoseconds() -> None:
    """A field that AppWrapper does not know would be left out of account without a word."""
    body = yaml.safe_load(yaml.safe_dump(dict(DEFAULTS.body())))
    assert body == {
        "admissionGracePeriod": 60_000_000_000,
        "warmupGracePeriod": 300_000_000_000,
        "failureGracePeriod": 60_000_000_000,
        "resetPause": 90_000_000_000,
        "retryLimit": 3,
        "deletionGracePeriod": 600_000_000_000,
        "gracePeriodCeiling": 86_400_000_000_000,
    }


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "90s"), (120, "2m"), (3600, "1h"), (5400, "90m")])
def test_bounds_are_told_as_members_write_them(seconds: int, text: str) -> None:
    assert spoken(seconds) == text


class TestJobsThatNeverRun:
    """How long they hold quota, as docs/promises.md says it of the defaults."""

    TEXT = " ".join((ROOT / "docs" / "promises.md").read_text().split())

    def test_a_job_that_asks_for_nothing(self) -> None:
        tries = DEFAULTS.retries + 1
        said = (
            f"{tries} attempts of {DEFAULTS.warmup_grace // 60} minutes, with pauses of {DEFAULTS.retry_pause} seconds"
        )
        assert said in self.TEXT

    def test_a_job_that_asks_for_the_most(self) -> None:
        most = JobBounds()
        tries, between = most.retries + 1, most.forced_deletion_grace + most.retry_pause
        seconds = tries * max(most.warmup_grace, most.admission_grace) + most.retries * between + most.failed_grace
        assert f"{tries} attempts" in self.TEXT
        assert f"of {most.warmup_grace // 60} minutes" in self.TEXT
        assert f"{seconds // 3600} hours and {seconds % 3600 // 60} minutes" in self.TEXT

    def test_a_job_in_no_appwrapper(self) -> None:
        assert f"{REQUEUES} attempts of `mlbatch:recovery.startTimeoutMinutes`" in self.TEXT
        assert REQUEUES * PodsReady().start_seconds > 24 * 3600
        assert f"After {REQUEUES} times" in (ROOT / "docs" / "recovery.md").read_text()
