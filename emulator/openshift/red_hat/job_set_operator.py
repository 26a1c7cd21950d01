"""The stub of Red Hat's JobSet operator (openshift/jobset-operator, pkg/operator/target_config_reconciler.go)."""

from emulator.openshift.red_hat.stub import JOB_SET, Stub, condition, has_certificates


class JobSetOperator(Stub):
    """Installs JobSet for the object JobSetOperator `cluster`, which owns the definition, too."""

    package = "job-set"

    def _work(self) -> None:
        found = self._read(JOB_SET)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        if not has_certificates(self._api):
            message = "please make sure that cert-manager is installed on your cluster"
            degraded = condition("TargetConfigControllerDegraded", True, "CertManager", message)
            self._report(JOB_SET, found, [degraded])
        else:
            is_available = self._install("jobset", found, owns_kinds=True)
            self._report(JOB_SET, found, [condition("Available", is_available, "Deployment", "")])
