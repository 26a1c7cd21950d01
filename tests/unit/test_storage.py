"""Blob driver, storage classes and volumes, with the values that the driver takes."""

import base64
from typing import Any

import pulumi
import pytest

from components.artifacts import Mirror
from components.azure import catalogue
from components.azure.blob_driver import BlobDriverArgs, blob_driver_values
from components.azure.blob_volume import (
    BlobVolume,
    BlobVolumeArgs,
    BlockCache,
    ManagedIdentity,
    SasToken,
    WorkloadIdentity,
    mount_options,
    volume_name,
)
from components.azure.storage_classes import Reclaim, StorageClasses, StorageClassesArgs, files_class
from components.catalogue import find_chart
from components.kubernetes.quantity import Quantity
from tests.unit.harness import Record, Registered, build, strings

TOKEN = "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0"
IDENTITY = ManagedIdentity(client_id="11111111-2222-3333-4444-555555555555")


def volume(**changes: Any) -> BlobVolumeArgs:
    values = {
        "claim": "olmo-data",
        "namespace": "workloads",
        "account": "mlbatchdata",
        "container": "olmo",
        "access": IDENTITY,
    }
    return BlobVolumeArgs(**{**values, **changes})


def created(args: BlobVolumeArgs) -> Record:
    return build(lambda: BlobVolume("data", args))


def volume_of(record: Record) -> Registered:
    (found,) = record.of("PersistentVolume")
    return found


class TestBlobDriver:
    def values(self, blobfuse: str | None) -> Any:
        chart = Mirror().chart(find_chart("blob-csi-driver", charts=catalogue.CHARTS))
        return blob_driver_values(BlobDriverArgs(chart=chart, blobfuse=blobfuse))

    def test_the_nodes_own_can_stay(self) -> None:
        assert self.values(None)["node"]["blobfuseProxy"] == {"installBlobfuse": False, "installBlobfuse2": False}


NODES = {"network": "lab-net", "resource_group": "lab"}


class TestStorageClasses:
    def test_a_share_is_its_users_alone(self) -> None:
        options = files_class(StorageClassesArgs(**NODES))["mountOptions"]
        assert {"dir_mode=0770", "file_mode=0660", "uid=1000", "gid=100"} <= set(options)

    def test_data_goes_with_its_claim_only_where_asked_for(self) -> None:
        assert files_class(StorageClassesArgs(**NODES, reclaim=Reclaim.DELETE))["reclaimPolicy"] == "Delete"

    def test_a_class_that_cannot_be_changed_is_replaced(self) -> None:
        record = build(lambda: StorageClasses("classes", StorageClassesArgs(**NODES, blob=False)))
        assert "azureblob-fuse-premium" not in {item.object_name for item in record.of("StorageClass")}
        for item in record.of("StorageClass"):
            assert {"parameters", "reclaimPolicy"} <= set(item.replace_on_changes)
            assert item.delete_before_replace


class TestBlobVolume:
    def test_as_the_identity_of_its_namespace_each_pod_mounts_for_itself_and_shares_no_folder(self) -> None:
        args = volume(access=WorkloadIdentity(client_id="client"))
        found = volume_of(created(args))
        assert found.inputs["spec"]["csi"]["volumeAttributes"] == {
            "protocol": "fuse2",
            "storageAccount": "mlbatchdata",
            "containerName": "olmo",
            "clientID": "client",
            "mountWithWorkloadIdentityToken": "true",
        }
        assert set(mount_options(volume())) - set(mount_options(args)) == {
            f"--block-cache-path=/mnt/blobfuse-{volume_name(volume())}",
            "--cleanup-on-start=true",
            "--block-cache-disk-size=102400",
            "--block-cache-disk-timeout=604800",
            "--block-cache-pool-size=1024",
        }
        assert volume_name(args) != volume_name(volume())

    @pytest.mark.parametrize(("block_kib", "mib"), [(4, 256), (4096, 256), (8192, 512), (65536, 1024)])
    def test_what_one_pod_mounts_for_itself_takes_little_of_the_nodes_memory(self, block_kib: int, mib: int) -> None:
        cache = BlockCache(block_kib=block_kib)
        own = mount_options(volume(access=WorkloadIdentity(client_id="client"), cache=cache))
        assert f"--block-cache-pool-size={mib}" in own
        assert "--block-cache-pool-size=1024" in mount_options(volume(cache=cache))

    def test_an_identity_made_anew_makes_the_same_volume_anew_and_its_claim_goes_first(self) -> None:
        """The engine takes what comes of an output down before the output's resource, and what only waits after it."""
        before, after = (created(volume(access=WorkloadIdentity(client_id=each))) for each in ("old", "new"))
        assert volume_of(before).object_name == volume_of(after).object_name
        assert volume_of(before).inputs["spec"]["csi"] != volume_of(after).inputs["spec"]["csi"]
        assert volume_of(after).urn in after.one("PersistentVolumeClaim", "olmo-data").sources["spec"]

    def test_each_volume_caches_in_a_folder_of_its_own_that_blobfuse_can_make(self) -> None:
        """Two volumes have blobs of the same path; and blobfuse2 makes a folder, not those above it (`os.Mkdir`)."""
        different = [volume(), volume(container="other"), volume(claim="more"), volume(namespace="red")]
        options = [option for each in different for option in mount_options(each)]
        folders = {option.partition("=")[2] for option in options if option.startswith("--block-cache-path=")}
        assert len(folders) == len(different)
        assert {folder.rpartition("/")[0] for folder in folders} == {"/mnt"}

    def test_blocks_can_be_larger(self) -> None:
        options = mount_options(volume(cache=BlockCache(block_kib=512)))
        assert "--block-cache-block-size=0.5" in options

    @pytest.mark.parametrize("token", [TOKEN, f"?{TOKEN}", f" {TOKEN}\n"])
    def test_a_token_is_a_token_and_not_an_account_key(self, token: str) -> None:
        record = created(volume(access=SasToken(token=pulumi.Output.secret(token))))
        secret = record.one("Secret", "olmo-data-sas-token")
        decoded = {key: base64.b64decode(value).decode() for key, value in secret.inputs["data"].items()}
        assert decoded == {"azurestorageaccountname": "mlbatchdata", "azurestorageaccountsastoken": TOKEN}
        volume_spec = volume_of(record).inputs["spec"]
        assert volume_spec["csi"]["nodeStageSecretRef"] == {"name": "olmo-data-sas-token", "namespace": "workloads"}
        assert volume_spec["csi"]["volumeAttributes"]["AzureStorageAuthType"] == "sas"

    def test_a_plain_token_becomes_secret_and_shows_nowhere_else(self) -> None:
        record = created(volume(access=SasToken(token=TOKEN)))
        secret = record.one("Secret", "olmo-data-sas-token")
        assert "data" in secret.secrets
        others = [item.inputs for item in record.resources if item is not secret]
        assert not [text for text in strings(others) if "c2VjcmV0" in text]

    def test_one_container_can_be_a_volume_in_two_namespaces(self) -> None:
        def program() -> None:
            BlobVolume("a", volume(namespace="blue"))
            BlobVolume("b", volume(namespace="red"))

        found = build(program).of("PersistentVolume")
        assert len({item.inputs["spec"]["csi"]["volumeHandle"] for item in found}) == 2
        assert {item.object_name.rpartition("-")[0] for item in found} == {"blue-olmo-data", "red-olmo-data"}

    @pytest.mark.parametrize(
        "change",
        [
            {"container": "other"},
            {"account": "otherdata"},
            {"read_only": False},
            {"access": SasToken(token=TOKEN)},
            {"capacity": Quantity.parse("16Ti")},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_other_data_is_another_volume_whose_claim_takes_the_old_ones_place(self, change: dict[str, Any]) -> None:
        before, after = created(volume()), created(volume(**change))
        assert volume_of(before).object_name != volume_of(after).object_name
        assert not volume_of(after).delete_before_replace, "the API server keeps a volume for as long as it is bound"
        claim = after.one("PersistentVolumeClaim", "olmo-data", "workloads")
        assert claim.inputs["spec"]["volumeName"] == volume_of(after).object_name
        assert claim.delete_before_replace
        assert claim.replace_on_changes == ("spec",)

    def test_another_way_of_reading_changes_the_volume_in_place(self) -> None:
        before, after = created(volume()), created(volume(cache=BlockCache(block_kib=512)))
        assert volume_of(before).object_name == volume_of(after).object_name
        assert volume_of(before).inputs["spec"]["csi"] == volume_of(after).inputs["spec"]["csi"]
