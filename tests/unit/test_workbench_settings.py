"""The settings of the workbench: defaults, and one message with a fix for each error."""

from __future__ import annotations

from stacks.settings.workbench import WorkbenchSettings


def test_the_guides_workbench_is_the_default() -> None:
    """Seed 003, 10.1, without permissions that the demo does not need."""
    own = WorkbenchSettings()
    assert (own.namespace, own.image, own.version, own.size) == ("sandbox", "Standard Data Science", "2024.1", "Small")
    assert (str(own.storage), own.connection) == ("20Gi", "minio")
    assert {name: str(amount) for name, amount in own.queue.amounts().items()} == {
        "cpu": "9",
        "memory": "36Gi",
        "nvidia.com/gpu": "5",
    }
    assert (own.enabled, own.edit_for_group, own.queue.open_to_all) == (False, False, False)
    assert (own.object_store.kind, own.object_store.tls) == ("seaweedfs", True)
    assert not own.object_store.guide_credentials
