"""Cinder's backend: volumes that are allocated and attached, but store no bytes."""

from __future__ import annotations

from typing import Any

from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class Nowhere(driver.VolumeDriver):
    """A volume driver (`cinder/interface/volume_driver.py`) without storage."""

    VERSION = "1.0.0"

    def check_for_setup_error(self) -> None:
        """Accept the call."""

    def create_volume(self, volume: Any) -> None:
        """Accept the call: the volume is only in Cinder's database."""

    def delete_volume(self, volume: Any) -> None:
        """Accept the call."""

    def extend_volume(self, volume: Any, new_size: int) -> None:
        """Accept the call."""

    def create_snapshot(self, snapshot: Any) -> None:
        """Accept the call."""

    def delete_snapshot(self, snapshot: Any) -> None:
        """Accept the call."""

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        """Accept the call."""

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        """Accept the call."""

    def clone_image(
        self, context: Any, volume: Any, image_location: Any, image_meta: Any, image_service: Any
    ) -> tuple[dict[str, Any], bool]:
        """Report that the backend has copied the image itself, like Ceph."""
        return {}, True

    def retype(self, context: Any, volume: Any, new_type: Any, diff: Any, host: Any) -> tuple[bool, None]:
        """Return success: all types are on this backend."""
        return True, None

    def ensure_export(self, context: Any, volume: Any) -> None:
        """Accept the call."""

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        """Accept the call."""

    def remove_export(self, context: Any, volume: Any) -> None:
        """Accept the call."""

    def initialize_connection(self, volume: Any, connector: Any) -> dict[str, Any]:
        """Return the connection that Nova's fake driver records."""
        return {"driver_volume_type": "fake", "data": {"volume_id": volume.id, "target_lun": 1}}

    def terminate_connection(self, volume: Any, connector: Any, **options: Any) -> None:
        """Accept the call."""

    def _update_volume_stats(self) -> None:
        self._stats = {
            "volume_backend_name": "nowhere",
            "vendor_name": "none",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "total_capacity_gb": "infinite",
            "free_capacity_gb": "infinite",
            "reserved_percentage": 0,
            "multiattach": False,
        }
