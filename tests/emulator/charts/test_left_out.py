"""Webhooks of charts are left out of what Helm installs, and hooks and webhooks are named."""

from __future__ import annotations

import subprocess
import sys

from emulator.charts import left_out

MANIFEST = """---
# Source: c/templates/webhook.yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: guard
webhooks: []
---
# Source: c/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  labels: {a: b}
  name: settings
data:
  text: |
    ---
    kind: APIService
---
# Source: c/templates/hook.yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: "prepare"
  annotations:
    "helm.sh/hook": pre-install
---
# Source: c/templates/json.yaml
{
 "apiVersion": "apiregistration.k8s.io/v1",
 "kind": "APIService",
 "metadata": {
  "name": "v1.things"
 }
}
"""


def test_what_would_be_called_at_simulated_controllers_is_dropped_and_the_rest_stays() -> None:
    kept = left_out.kept(MANIFEST)
    assert "ValidatingWebhookConfiguration" not in kept
    assert "v1.things" not in kept
    config = MANIFEST.split("# Source: c/templates/config.yaml")[1].split("---\n# Source: c/templates/hook.yaml")[0]
    assert config in kept


def test_a_document_that_is_laid_out_otherwise_is_kept_or_dropped_by_its_kind() -> None:
    compact = '---\n{"metadata": {"name": "x"}, "kind": "CustomResourceDefinition"}\n'
    hidden = '---\n{"metadata": {"name": "y"}, "kind": "APIService"}\n'
    assert left_out.kept(f"{compact}{hidden}---\n# a comment\n") == compact


def test_what_is_not_installed_is_named_once() -> None:
    assert left_out.described(MANIFEST * 2) == [
        "APIService/v1.things",
        "Job/prepare",
        "ValidatingWebhookConfiguration/guard",
    ]


def test_it_is_a_filter_for_helm() -> None:
    done = subprocess.run(
        [sys.executable, "-m", left_out.__name__], input=MANIFEST, capture_output=True, text=True, check=True
    )
    assert done.stdout == left_out.kept(MANIFEST)
