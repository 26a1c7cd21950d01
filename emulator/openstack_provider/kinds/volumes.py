"""Volumes, and their attachment to servers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from emulator.openstack_provider.call import GONE, Call, given
from emulator.openstack_provider.errors import ApiError
from emulator.openstack_provider.kinds.base import Kind, Values, newest
from emulator.plugin.errors import ProviderError

_FROM_BACKUP: Final = "3.47"
_ONLINE_RESIZE: Final = "3.42"
_TAGGED: Final = "2.49"
_MULTIATTACH: Final = "2.60"
_IN_USE: Final = ("available", "in-use")
_DETACHING: Final = ("in-use", "attaching", "detaching")


class Volume(Kind):
    """A volume. It grows in place, attached only where `enableOnlineResize` says so; Cinder refuses to shrink it."""

    token = "openstack:blockstorage/volume:Volume"

    def create(self, call: Call, inputs: Values) -> None:
        body = given(
            availability_zone=inputs.get("availabilityZone"),
            backup_id=inputs.get("backupId"),
            consistencygroup_id=inputs.get("consistencyGroupId"),
            description=inputs.get("description"),
            imageRef=inputs.get("imageId"),
            metadata=inputs.get("metadata"),
            name=inputs.get("name"),
            size=inputs["size"],
            snapshot_id=inputs.get("snapshotId"),
            source_replica=inputs.get("sourceReplica"),
            source_volid=inputs.get("sourceVolId"),
            volume_type=inputs.get("volumeType"),
        )
        hints = _hints(inputs)
        request = {"volume": body, **({"OS-SCH-HNT:scheduler_hints": hints} if hints else {})}
        made = call.storage.post("/volumes", request, _FROM_BACKUP if inputs.get("backupId") else None)["volume"]
        call.identifier = made["id"]
        call.made(call.identifier)
        self._wait(call, ["available"], ["downloading", "creating"])

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        volumes = call.storage.get("/volumes/detail", name=inputs.get("name"))["volumes"]
        alike = [each for each in volumes if _noted(each) == _noted(inputs)]
        return newest(alike, since)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.storage.find(f"/volumes/{identifier}")
        if found is None:
            return None
        volume = found["volume"]
        read = {
            "size": volume["size"],
            "description": volume["description"] or "",
            "availabilityZone": volume["availability_zone"],
            "name": volume["name"] or "",
            "snapshotId": volume["snapshot_id"] or "",
            "backupId": volume.get("backup_id") or "",
            "sourceVolId": volume["source_volid"] or "",
            "volumeType": volume["volume_type"],
            "metadata": volume["metadata"],
            "volumeRetypePolicy": state.get("volumeRetypePolicy") or "never",
            "attachments": [
                {"id": each["id"], "instanceId": each["server_id"], "device": each["device"]}
                for each in volume["attachments"]
            ],
        }
        image = (volume.get("volume_image_metadata") or {}).get("image_id")
        return {**read, "imageId": image} if image and not state else read

    def update(self, call: Call, before: Values, after: Values, changed: frozenset[str]) -> None:
        path = f"/volumes/{call.identifier}"
        if "size" in changed:
            self._extend(call, path, after)
        if "volumeType" in changed:
            policy = after.get("volumeRetypePolicy") or "never"
            request = {"new_type": after["volumeType"], "migration_policy": policy}
            call.storage.post(f"{path}/action", {"os-retype": request})
            self._wait(call, _IN_USE, ["retyping"])
        body: dict[str, Any] = {"name": after.get("name") or "", "description": after.get("description") or ""}
        if "metadata" in changed:
            body["metadata"] = after.get("metadata") or {}
        call.storage.put(path, {"volume": body})

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = f"/volumes/{identifier}"
        found = call.storage.find(path)
        if found is None:
            return
        attachments = found["volume"]["attachments"]
        for each in attachments:
            try:
                call.compute.delete(f"/servers/{each['server_id']}/os-volume_attachments/{each['id']}")
            except ApiError as error:
                if error.status != 409:
                    raise
        if attachments:
            self._wait(call, ["available", GONE], _DETACHING)
        if found["volume"]["status"] != "deleting":
            call.storage.delete(path)
        self._wait(call, [GONE], ["deleting", "downloading", "available"])

    def _extend(self, call: Call, path: str, after: Values) -> None:
        version = None
        if call.storage.get(path)["volume"]["status"] == "in-use":
            if not after.get("enableOnlineResize"):
                raise ProviderError(
                    f"the volume {call.identifier} is attached to a server, and resizing it there is not enabled: set "
                    "enableOnlineResize, or detach it first"
                )
            version = _ONLINE_RESIZE
        call.storage.post(f"{path}/action", {"os-extend": {"new_size": after["size"]}}, version)
        self._wait(call, _IN_USE, ["extending"])

    def _wait(self, call: Call, targets: Any, pending: Any) -> None:
        def status() -> str:
            found = call.storage.find(f"/volumes/{call.identifier}")
            if found is None:
                return GONE
            if found["volume"]["status"] == "error":
                raise ProviderError(
                    f"the volume {call.identifier} is in error status: the logs of the Block Storage API and the "
                    "cloud's administrator know why"
                )
            return str(found["volume"]["status"])

        call.wait(f"the volume {call.identifier}", status, targets, pending)


class VolumeAttach(Kind):
    """A volume attached to a server. Its ID is `<server>/<attachment>`; it is kept once the volume is in use."""

    token = "openstack:compute/volumeAttach:VolumeAttach"

    def create(self, call: Call, inputs: Values) -> None:
        server, volume = inputs["instanceId"], inputs["volumeId"]
        version = _MULTIATTACH if inputs.get("multiattach") else _TAGGED if inputs.get("tag") else None
        body = given(volumeId=volume, device=inputs.get("device"), tag=inputs.get("tag"))
        path = f"/servers/{server}/os-volume_attachments"
        made = call.compute.post(path, {"volumeAttachment": body}, version)["volumeAttachment"]
        call.made(f"{server}/{made['id']}")
        confirm = not (inputs.get("vendorOptions") or {}).get("ignoreVolumeConfirmation")

        def status() -> str:
            if call.compute.find(f"{path}/{made['id']}") is None:
                return "ATTACHING"
            if not confirm:
                return "ATTACHED"
            of_volume = call.storage.get(f"/volumes/{volume}")["volume"]["status"]
            if of_volume == "error":
                raise ProviderError(f"the volume {volume} went into error status while it was attached to {server}")
            return "ATTACHED" if of_volume == "in-use" else "ATTACHING"

        call.wait(f"the volume {volume} at the server {server}", status, ["ATTACHED"], ["ATTACHING"])
        call.identifier = f"{server}/{made['id']}"

    def find(self, call: Call, inputs: Values, since: datetime) -> str | None:
        # Nova does not say since when; a volume is attached to a server once.
        server = inputs["instanceId"]
        found = call.compute.find(f"/servers/{server}/os-volume_attachments") or {"volumeAttachments": []}
        made = (each["id"] for each in found["volumeAttachments"] if each["volumeId"] == inputs["volumeId"])
        return next((f"{server}/{attachment}" for attachment in made), None)

    def read(self, call: Call, identifier: str, state: Values) -> dict[str, Any] | None:
        found = call.compute.find(_attachment(identifier))
        if found is None:
            return None
        attachment = found["volumeAttachment"]
        return {
            "instanceId": attachment["serverId"],
            "volumeId": attachment["volumeId"],
            "device": attachment["device"] or "",
        }

    def delete(self, call: Call, identifier: str, state: Values) -> None:
        path = _attachment(identifier)

        def status() -> str:
            if call.compute.find(path) is None:
                return GONE
            try:
                call.compute.delete(path)
            except ApiError as error:
                # Nova refuses while it is detaching.
                if error.status != 400:
                    raise
            return "detaching"

        call.wait(f"the attachment {identifier}", status, [GONE])


def _noted(volume: Values) -> tuple[str, str, int, Values]:
    """Return what tells a volume from others, of its inputs as of what Cinder says."""
    return volume.get("name") or "", volume.get("description") or "", volume["size"], volume.get("metadata") or {}


def _attachment(identifier: str) -> str:
    server, _, attachment = identifier.partition("/")
    if not attachment:
        raise ProviderError(f"{identifier!r} is no ID of an attachment: <server>/<attachment> is expected")
    return f"/servers/{server}/os-volume_attachments/{attachment}"


def _hints(inputs: Values) -> dict[str, Any]:
    hints = (inputs.get("schedulerHints") or [{}])[0]
    return given(
        different_host=hints.get("differentHosts"),
        same_host=hints.get("sameHosts"),
        query=hints.get("query"),
        local_to_instance=hints.get("localToInstance"),
    ) | (hints.get("additionalProperties") or {})
