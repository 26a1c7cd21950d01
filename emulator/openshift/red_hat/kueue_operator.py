"""The stub of Red Hat build of Kueue (openshift/kueue-operator, pkg/operator, pkg/configmap, pkg/webhook)."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml

from emulator.cluster.api import MERGE_PATCH, Object, unless_gone
from emulator.openshift.red_hat.stub import JOB_SET, KUEUE, MANAGED, Stub, condition, has_certificates

_CONFIGURATION: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
_FINALIZER: Final = "kueue.openshift.io/finalizer"


class KueueOperator(Stub):
    """Installs Kueue for the object Kueue `cluster`, and removes it (pkg/operator/target_config_reconciler.go)."""

    package = "kueue-operator"

    def _work(self) -> None:
        found = self._read(KUEUE)
        if found is None:
            return
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers") or []
        if "deletionTimestamp" in metadata:
            self._clean()
            left = [each for each in finalizers if each != _FINALIZER]
            self._api.patch(KUEUE, {"metadata": {"finalizers": left}}, MERGE_PATCH)
            return
        if not has_certificates(self._api):
            message = "please make sure that cert-manager is installed on your cluster"
            self._report(KUEUE, found, _conditions(False, message))
            return
        if _FINALIZER not in finalizers:
            self._api.patch(KUEUE, {"metadata": {"finalizers": [*finalizers, _FINALIZER]}}, MERGE_PATCH)
        config = found["spec"]["config"]
        frameworks = config["integrations"]["frameworks"]
        is_available = self._install("kueue", found, lambda document: configure(document, config), config)
        lacking = "JobSet" in frameworks and self._read(JOB_SET) is None
        degraded = "Please install the following on your cluster: JobSet" if lacking else ""
        self._report(KUEUE, found, _conditions(is_available, degraded))

    def _clean(self) -> None:
        """Delete objects with `kueue` in their name, also of others, as the operator does when Kueue is deleted."""
        admission, rights = "/apis/admissionregistration.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"
        kept = ("kueue-operator", "openshift.io", "kueue-batch-user-role", "kueue-batch-admin-role")
        for collection, spared in (
            (f"{admission}/mutatingwebhookconfigurations", ()),
            (f"{admission}/validatingwebhookconfigurations", ()),
            (f"{rights}/clusterroles", kept),
            (f"{rights}/clusterrolebindings", ("kueue-operator",)),
        ):
            for item in self._api.get(collection)["items"]:
                name = item["metadata"]["name"]
                if "kueue" in name and not any(part in name for part in spared):
                    with unless_gone():
                        self._api.delete(f"{collection}/{name}", {})


def configure(document: Object, config: Object) -> None:
    """Give a manifest of Kueue the operator's configuration and webhooks."""
    if document["kind"] == "ConfigMap":
        document["data"] = {"controller_manager_config.yaml": yaml.safe_dump(_kueue_config(config))}
    elif document["kind"] == "Deployment":
        template = document["spec"]["template"]["metadata"]
        digest = hashlib.sha256(json.dumps(_kueue_config(config)).encode()).hexdigest()
        template["annotations"] = {**(template.get("annotations") or {}), "configmap/kueue-manager-config": digest}
        template["labels"]["app.openshift.io/name"] = "kueue"
    elif document["kind"].endswith("WebhookConfiguration"):
        document["webhooks"] = list(_webhooks(document["webhooks"], config["integrations"]["frameworks"]))


def _kueue_config(config: Object) -> Object:
    """Return Kueue's configuration (pkg/configmap/configmap.go)."""
    frameworks = [_CONFIGURATION["frameworks"].get(each, "") for each in config["integrations"]["frameworks"]]
    policy = (config.get("workloadManagement") or {}).get("labelPolicy")
    found = {**_CONFIGURATION["template"], "integrations": {"frameworks": frameworks}}
    found["manageJobsWithoutQueueName"] = policy == "None"
    gang = config.get("gangScheduling") or {}
    if gang.get("policy") == "ByWorkload":
        blocks = gang["byWorkload"]["admission"] == "Sequential"
        found["waitForPodsReady"] = {"timeout": "5m", "blockAdmission": blocks}
    if (config.get("preemption") or {}).get("preemptionPolicy") == "FairSharing":
        found["fairSharing"] = _CONFIGURATION["fairSharing"]
    return found


def _webhooks(webhooks: Iterable[Object], frameworks: Iterable[str]) -> Iterator[Object]:
    """Yield the webhooks of these frameworks and of Kueue's kinds, only for managed namespaces (pkg/webhook)."""
    clusters = {"clusterqueue", "resourceflavor", "cohort"}
    wanted = {each.removeprefix("Batch").lower() for each in frameworks} | clusters | {"workload"}
    if wanted & {"deployment", "statefulset", "leaderworkerset"}:
        wanted.add("pod")
    for webhook in webhooks:
        name = webhook["name"][1:].removesuffix(".kb.io")
        if name in wanted:
            if name not in clusters:
                selector = webhook.setdefault("namespaceSelector", {})
                managed = {"key": MANAGED, "operator": "In", "values": ["true"]}
                selector["matchExpressions"] = [managed, *selector.get("matchExpressions", ())]
            yield webhook


def _conditions(available: bool, degraded: str) -> list[Object]:
    reason = "AsExpected" if available else "NotEnoughReplicas"
    return [
        condition("Available", available, reason, ""),
        condition("Progressing", not available, reason, ""),
        condition("Degraded", bool(degraded), "MissingDependencies" if degraded else reason, degraded),
    ]
