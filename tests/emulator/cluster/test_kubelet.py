"""What the local kubelet runs as a process of this machine, and what it leaves to KWOK."""

from __future__ import annotations

import json
from pathlib import Path

from emulator.cluster.content import controllers
from emulator.cluster.kubelet import why_kept_out
from emulator.cluster.layout import Layout
from emulator.paths import Paths


def test_of_another_cluster_only_the_controllers_run(tmp_path: Path) -> None:
    """Somebody asks about a job that has been bound to the local node: none of it runs on the machine of who asks."""
    layout = Layout(Paths.of(root=tmp_path, state=tmp_path))
    manager = {"kind": "Deployment", "metadata": {"name": "kueue", "namespace": "queues"}}
    webhooks = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kueue"}}
    layout.content.write_text(json.dumps({"first": [], "exact": [], "last": [manager, webhooks]}))
    runs_in = controllers(layout)
    assert why_kept_out({"metadata": {"namespace": "queues"}}, runs_in) == ""
    assert why_kept_out({"metadata": {"namespace": "blue"}}, runs_in) == (
        "of another cluster its controllers alone run here"
    )
    assert why_kept_out({"metadata": {"namespace": "blue"}}, None) == ""
