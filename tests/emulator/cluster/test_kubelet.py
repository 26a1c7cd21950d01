"""Pods that the local kubelet runs as processes of this machine, and pods that it leaves to KWOK."""

import json
from pathlib import Path

from emulator.cluster.content import controllers
from emulator.cluster.kubelet import why_kept_out
from emulator.cluster.layout import Layout
from emulator.paths import Paths


def test_of_another_cluster_only_the_controllers_run(tmp_path: Path) -> None:
    """A question about a job that is bound to the local node must not run the job on the asker's machine."""
    layout = Layout(Paths.of(root=tmp_path, state=tmp_path))
    manager = {"kind": "Deployment", "metadata": {"name": "kueue", "namespace": "queues"}}
    webhooks = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kueue"}}
    layout.content.write_text(json.dumps({"first": [], "exact": [], "last": [manager, webhooks]}))
    runs_in = controllers(layout)
    assert why_kept_out({"metadata": {"namespace": "queues"}}, runs_in) == ""
    assert why_kept_out({"metadata": {"namespace": "blue"}}, runs_in) == (
        "a replica of another cluster runs only its controllers"
    )
    assert why_kept_out({"metadata": {"namespace": "blue"}}, None) == ""
