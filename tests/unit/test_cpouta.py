"""Target `cpouta` under mocks: everything that OpenStack is asked for, what stays, and what users get."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pulumi
import pytest
import yaml
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from components.openstack.first_boot.kept import _Keeping
from stacks.config.inputs import interpret
from stacks.deploy import deploy
from stacks.settings import support_end
from stacks.targets.cpouta import infrastructure
from stacks.targets.cpouta.interfaces import interfaces
from stacks.targets.cpouta.outputs import installed
from stacks.targets.cpouta.project_facts import ProjectFacts, ServerFacts
from stacks.targets.cpouta.settings import MOST_KEYS
from stacks.targets.cpouta.values import LONGEST_KEY, handed
from tests.unit.configurations import ROOT, settings_of
from tests.unit.harness import Record, Registered, build
from tests.unit.releases import FOLDER
from tests.unit.test_cpouta_project import FACTS, VOLUME
from tests.unit.test_cpouta_settings import shipped

ADDRESS = "86.50.228.10"
KUBECONFIG = """
kind: Config
current-context: kind-mlops-platform
contexts: [{name: kind-mlops-platform, context: {cluster: vm, user: vm}}]
clusters: [{name: vm, cluster: {server: "https://127.0.0.1:21234"}}]
users: [{name: vm, user: {token: made-up}}]
"""
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILRAB9KLBebIS3T6CQzFcLZeh0uyh1MafBbQmtzuICAV colleague"
LAYERS = {
    "monitoring": {"enabled": True},
    "queueing": {"enabled": True},
    "tenancy": {"enabled": True},
    "teams": [{"name": "blue", "users": ["alice"], "share": 1}, {"name": "red", "users": ["bob"], "share": 1}],
}
"""The batch platform's, which are off unless they are switched on."""
PLATFORM = ("grafana", "mlops", "nodes", "queues", "sample", "target", "teams", "unenforced")
"""Outputs of every stack."""


class Run:
    """The registrations of a configuration in a project, and its outputs."""

    def __init__(
        self,
        facts: ProjectFacts | None = FACTS,
        *,
        preview: bool = False,
        sections: Mapping[str, Any] = MappingProxyType({}),
        outputs: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        **values: Any,
    ) -> None:
        files = {"artifacts": str(FOLDER), "verify": False}
        found = interpret({**shipped(**values), "mirror": files, **sections}, base=ROOT, environment={})
        self.outputs: dict[str, Any] = {}
        self.record: Record = build(
            lambda: self._program(replace(found, site=facts)),
            outputs=lambda kind, name, given: outputs.get(kind.rpartition(":")[2]) or _outputs(kind, name, given),
            preview=preview,
        )

    def _program(self, found: Any) -> None:
        for name, value in deploy(found).items():
            pulumi.Output.from_input(value).apply(lambda known, name=name: self.outputs.update({name: known}))

    def all(self, kind: str) -> list[Registered]:
        return [item for item in self.record.resources if item.type.endswith(f":{kind}")]

    def one(self, kind: str) -> Registered:
        (found,) = self.all(kind)
        return found


def _outputs(kind: str, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if kind.endswith(":FloatingIp"):
        return {"address": ADDRESS}
    if kind.endswith(":RandomPassword"):
        return {"result": "a" * 64}
    if kind.endswith("RemoteCluster"):
        return {"kubeconfig": KUBECONFIG, "versions": {"docker": "28.5.2"}, "checks": {"hello-world": "passed"}}
    return {"id": VOLUME} if kind.endswith(":Volume") else {}


def numbers(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs with the mocks' whole numbers as such."""
    return {name: int(value) if isinstance(value, float) else value for name, value in inputs.items()}


@pytest.mark.parametrize("owner", ["", "organization/mlbatch/test"])
def test_a_name_that_is_ones_own_is_taken(owner: str) -> None:
    assert Run(replace(FACTS, has_group=True, owner=owner)).one("Instance").inputs["name"] == "mlops-platform"


def test_a_name_that_another_stack_has_is_refused_before_anything_is_registered() -> None:
    with pytest.raises(pulumi.RunError, match="stack acme/mlbatch/other already has a VM") as caught:
        Run(replace(FACTS, has_group=True, owner="acme/mlbatch/other"))
    assert 'mlbatch:openstack.name = "mlops-platform"' in str(caught.value)
    assert "Nothing was created or changed" in str(caught.value)


def rules(run: Run) -> dict[str, tuple[Any, ...]]:
    """Return what Neutron knows each rule by, by the name of its resource."""
    keys = ("ethertype", "portRangeMin", "portRangeMax", "remoteIpPrefix")
    return {item.name: tuple(numbers(item.inputs)[key] for key in keys) for item in run.all("SecGroupRule")}


def test_a_changed_address_is_one_rule_made_and_one_deleted_and_nothing_else() -> None:
    two = {"me": "203.0.113.7/32", "office": "2001:db8:1::/48"}
    before, after = Run(sshFrom=two), Run(sshFrom={**two, "me": "198.51.100.9/32"})
    assert rules(before) == {
        "tcp-22-203.0.113.7/32": ("IPv4", 22, 22, "203.0.113.7/32"),
        "tcp-22-2001-db8-1--/48": ("IPv6", 22, 22, "2001:db8:1::/48"),
    }
    assert rules(after).items() - rules(before).items() == {
        ("tcp-22-198.51.100.9/32", ("IPv4", 22, 22, "198.51.100.9/32"))
    }
    old, new = ({item.urn: item.inputs for item in run.record.resources} for run in (before, after))
    assert [urn.rpartition("::")[2] for urn in old.keys() - new.keys()] == ["tcp-22-203.0.113.7/32"]
    assert all(old[urn] == new[urn] for urn in old.keys() & new.keys())


def test_no_rule_is_made_while_neutron_still_has_the_same_one() -> None:
    """The engine makes first and deletes last, and Neutron refuses a second rule of the same port and network."""
    two = {"me": "203.0.113.7/32", "office": "192.0.2.0/28"}
    before = rules(Run(sshFrom=two))
    for after in ({"home": two["me"], "office": two["office"]}, {"me": two["office"], "office": two["me"]}):
        changed = Run(sshFrom=after)
        assert rules(changed) == before
        assert {item.ignore_changes for item in changed.all("SecGroupRule")} == {("description",)}
    opened = Run(sshFrom={"me": two["me"]}, ports=[{"name": "web", "port": 443, "source": two["me"]}])
    assert {(rule.inputs["description"], rule.former_names) for rule in opened.all("SecGroupRule")} == {
        ("SSH from me", ("ssh-me",)),
        ("web", ("port-web",)),
    }


def test_replacing_the_vm_keeps_address_and_data() -> None:
    run = Run()
    instance, volume, attached = run.one("Instance"), run.one("Volume"), run.one("VolumeAttach")
    assert instance.delete_before_replace
    assert not instance.protect
    stays = {"openstack:networking/port:Port", "openstack:networking/floatingIp:FloatingIp"}
    assert stays.isdisjoint(item.type for item in run.record.resources if instance.urn in run.record.closure(item))
    assert instance.urn not in run.record.closure(run.one("FloatingIpAssociate"))
    assert instance.urn not in run.record.closure(volume)
    assert (volume.protect, volume.retain_on_delete) == (True, True)
    (data,) = [item for item in run.all("RandomPassword") if item.name == "mlops"]
    assert data.protect, "the databases on the volume know no other password"
    # The VM is stopped before its volume is taken from it: its deletion detaches it.
    assert attached.deleted_with == instance.urn
    assert attached.inputs == {"instanceId": "machine-id", "volumeId": VOLUME}


def test_a_volume_that_is_there_is_attached_and_left_alone() -> None:
    other = "99999999-2222-3333-4444-555555555555"
    run = Run(volume={"existing": other})
    assert run.all("Volume") == []
    assert run.one("VolumeAttach").inputs["volumeId"] == other
    assert run.outputs["billingUnits"] == {"vm": "8.4", "floatingIp": "0.2", "total": "8.6"}


def test_only_gpus_change_the_first_boot() -> None:
    small, large = Run().one("Instance"), Run(flavor="standard.3xlarge").one("Instance")
    gpu = Run(flavor="gpu.1.1gpu").one("Instance")
    assert small.inputs["userData"] == large.inputs["userData"]
    assert "driver" in gpu.inputs["userData"]
    assert gpu.inputs["userData"] != small.inputs["userData"]


def test_others_sign_in_by_their_own_keys() -> None:
    run = Run(otherPublicKeys=[OTHER_KEY])
    (user,) = yaml.safe_load(run.one("Instance").inputs["userData"])["users"]
    assert user["ssh_authorized_keys"] == [run.one("Keypair").inputs["publicKey"], OTHER_KEY]


def test_as_many_keys_as_settings_take_fit_into_the_user_data() -> None:
    """The largest first boot: with GPUs, and a cluster. YAML writes ten characters for one letter of its keys."""
    odd = f"{OTHER_KEY} " + "\N{GRINNING FACE}" * 60
    own = f"{OTHER_KEY} {'x' * (LONGEST_KEY - len(OTHER_KEY) - len(' ') * 3)}"
    assert handed(own) == LONGEST_KEY
    number = MOST_KEYS // handed(odd)
    run = Run(flavor="gpu.1.1gpu", sshPublicKey=own, otherPublicKeys=[odd] * number)
    (user,) = yaml.safe_load(run.one("Instance").inputs["userData"])["users"]
    assert len(user["ssh_authorized_keys"]) == number + 1


KEEPING = _Keeping()
_LATER = ("flavor", "other keys")
"""Inputs that a state of an older version does not have."""


def kept(run: Run) -> Mapping[str, Any]:
    """Return the inputs of the user data, from a state."""
    return run.one("UserData").inputs


@pytest.mark.parametrize(
    "values",
    [
        {"flavor": "standard.3xlarge"},
        {"sshFrom": {"me": "198.51.100.9/32"}},
        {"firstBootMinutes": 90},
        {"kind": {"recreate": True}},
    ],
)
def test_what_asks_for_no_new_vm_leaves_its_user_data(values: Mapping[str, Any]) -> None:
    renewed = replace(FACTS, images={name: f"{image}, renewed" for name, image in FACTS.images.items()})
    newer = {**kept(Run(renewed, **values)), "text": "of another version of this program", "revision": "another"}
    assert KEEPING.diff("", dict(kept(Run())), newer).changes is False


@pytest.mark.parametrize(
    ("values", "because"),
    [
        ({"flavor": "hpc.6.14core"}, "flavor"),
        ({"image": "Ubuntu-26.04"}, "image"),
        ({"generation": 2}, "generation"),
        ({"user": "somebody"}, "user"),
        ({"kind": {"apiPort": 6444}}, "cluster"),
        ({"volume": {"existing": "99999999-2222-3333-4444-555555555555"}}, "volume"),
        ({"bootVolume": 100}, "bootVolume"),
        ({"availabilityZone": "nova"}, "availabilityZone"),
        ({"name": "other"}, "name"),
        ({"otherPublicKeys": [OTHER_KEY]}, "other keys"),
    ],
)
def test_a_new_vm_has_the_newest_first_boot(values: Mapping[str, Any], because: str) -> None:
    before, after = kept(Run()), kept(Run(**values))
    asked = [{**run["asked"]} for run in (before, after)]
    assert {name for name in asked[0] | asked[1] if asked[0].get(name) != asked[1].get(name)} == {because}
    found = KEEPING.diff("", dict(before), dict(after))
    assert (found.changes, found.replaces) == (True, ["asked"])


def test_a_newer_default_leaves_the_vm_and_the_name_of_its_image() -> None:
    """An older version of this program had other defaults, and recorded them."""
    older = {"image": "Ubuntu-22.04", "gpu": "driver 535, CUDA 12.2, toolkit 1.17.8-1"}
    gpu = {"flavor": "gpu.1.1gpu"}
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"image": "Ubuntu-24.04"}, True),
        ({"gpu": {"cuda": "12.9"}}, True),
        ({"gpu": {"cuda": "12.2"}, "image": "Ubuntu-22.04"}, False),
        ({"gpu": {}}, False),
    ]
    for written, replaces in cases:
        now = kept(Run(**gpu, **written))
        before = {**kept(Run(**gpu)), "asked": {**now["asked"], **older}}
        assert KEEPING.diff("", before, dict(now)).changes is replaces, written
    run = Run(outputs={"UserData": {"asked": older}})
    assert run.one("Instance").inputs["metadata"]["mlbatch-image"] == "Ubuntu-22.04"


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ("standard.xxlarge", "standard.3xlarge", False),
        ("hpc.5.16core", "hpc.5.32core", False),
        ("standard.xxlarge", "hpc.5.16core", True),
        ("hpc.5.16core", "hpc.6.14core", True),
        ("standard.xxlarge", "gpu.1.1gpu", True),
        ("gpu.1.1gpu", "gpu.1.2gpu", True),
        ("gpu.1.1gpu", "standard.xxlarge", True),
    ],
)
def test_what_csc_cannot_resize_is_a_new_vm(old: str, new: str, replaces: bool) -> None:
    before, after = kept(Run(flavor=old)), kept(Run(flavor=new))
    assert KEEPING.diff("", dict(before), dict(after)).changes is replaces


def test_what_an_older_version_did_not_ask_for_is_nothing_new() -> None:
    before, after = kept(Run()), kept(Run(otherPublicKeys=[OTHER_KEY]))
    old = {**before, "asked": {name: text for name, text in before["asked"].items() if name not in _LATER}}
    assert KEEPING.diff("", old, dict(before)).changes is False
    assert KEEPING.diff("", old, dict(after)).replaces == ["asked"]


def test_the_vm_is_told_what_is_kept_and_a_newer_first_boot_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    Run()
    assert "another first boot" not in caplog.text
    old = {"text": "#cloud-config\nold: true\n", "revision": "of an older version", "image_id": "image-0"}
    run = Run(outputs={"UserData": old})
    assert run.one("Instance").inputs["userData"] == old["text"]
    assert run.one("Instance").inputs["imageId"] == "image-0", "whatever its name stands for today"
    assert "text" in run.one("UserData").secrets
    assert (
        "this version has another first boot than the VM had, and the VM stays as it is. Raise "
        "mlbatch:openstack.generation for a new one"
    ) in caplog.text


def test_warnings_name_the_versions_of_the_existing_vm(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support_end, "today", lambda: date(2028, 5, 2))
    older = {"image": "Ubuntu-22.04", "gpu": "driver 580, CUDA 12.9, toolkit 1.20.1-1"}
    Run(replace(FACTS, server=ServerFacts(flavor="gpu.1.1gpu")), outputs={"UserData": {"asked": older}})
    warned = [text.partition(": ")[2] for text in caplog.messages if text.startswith("mlbatch:openstack.generation: ")]
    assert [text.partition(" gets")[0] for text in warned] == ["Ubuntu 22.04", "NVIDIA's driver 580"]
    assert "The default, 24.04, gets them until 2029-05-31: raise this key for a new VM with it" in warned[0]
    caplog.clear()
    written = {"image": "Ubuntu-22.04", "gpu": {"driver": "580"}, "flavor": "gpu.1.1gpu"}
    Run(replace(FACTS, server=ServerFacts(flavor="gpu.1.1gpu")), outputs={"UserData": {"asked": older}}, **written)
    assert [text.partition(": ")[0] for text in caplog.messages if "gets fixes until" in text] == [
        "mlbatch:openstack.image",
        "mlbatch:openstack.gpu.driver",
    ]
    caplog.clear()
    Run()
    assert "gets fixes until" not in caplog.text, "the rules warn about a new VM"


def test_what_a_vm_is_told_is_known_by_its_revision() -> None:
    given = dict(kept(Run()))
    made = KEEPING.create(given)
    assert (made.id, made.outs) == (given["revision"], given)


def test_a_boot_volume_goes_with_the_vm() -> None:
    instance = Run(bootVolume=100).one("Instance")
    assert "imageId" not in instance.inputs
    (device,) = instance.inputs["blockDevices"]
    assert numbers(device) == {
        "sourceType": "image",
        "uuid": "image-2",
        "destinationType": "volume",
        "volumeSize": 100,
        "bootIndex": 0,
        "deleteOnTermination": True,
    }


def test_the_host_key_is_the_same_in_each_run_and_one_that_openssh_reads(tmp_path: Path) -> None:
    config = yaml.safe_load(Run().one("Instance").inputs["userData"])
    again = yaml.safe_load(Run().one("Instance").inputs["userData"])
    private = config["ssh_keys"]["ed25519_private"]
    assert private == again["ssh_keys"]["ed25519_private"]
    load_ssh_private_key(private.encode(), None)
    file = tmp_path / "key"
    file.write_text(private)
    file.chmod(0o600)
    done = subprocess.run(["ssh-keygen", "-y", "-f", file], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (config["ssh_keys"]["ed25519_public"], 0)


def test_what_users_get() -> None:
    run = Run()
    public = yaml.safe_load(run.one("Instance").inputs["userData"])["ssh_keys"]["ed25519_public"]
    assert {name: run.outputs[name] for name in ("target", "nodes")} == {
        "target": "cpouta",
        "nodes": {"count": 1, "instanceType": "standard.xxlarge", "gpus": "0"},
    }
    assert run.outputs["queues"] == {}, "the layer is off"
    assert {name: value for name, value in run.outputs.items() if name not in PLATFORM} == {
        "address": ADDRESS,
        "sshConfig": "\n".join(
            f'Host {host}\n    Hostname {ADDRESS}\n    User ubuntu\n    IdentityFile "~/.ssh/local-cpouta.pem"\n'
            "    StrictHostKeyChecking yes\n"
            for host in ("cpouta", "GPU-cpouta")
        ),
        "knownHosts": f"{ADDRESS} {public}",
        "tunnels": {},
        "kubeconfig": KUBECONFIG,
        "mlopsPassword": "a" * 64,
        "versions": {"docker": "28.5.2"},
        "checks": {"hello-world": "passed"},
        "flavor": "standard.xxlarge",
        "volume": VOLUME,
        "billingUnits": {"vm": "8.4", "floatingIp": "0.2", "volume": "1.758", "total": "10.358"},
    }


def test_versions_have_what_shares_the_gpu_and_the_platform() -> None:
    gpu = {"featureDiscovery": True, "operator": True, "operatorVersion": "v24.9.0"}
    kind = {"kubernetes": "1.31.12"}
    run = Run(sections={"gpu": gpu, "nvshare": {"enabled": True}}, flavor="gpu.1.1gpu", kind=kind)
    assert run.outputs["versions"] == {
        "docker": "28.5.2",
        "gpu-operator": "v24.9.0",
        "nvshare": "nvshare-scheduler-v0.1-8c2f5b90",
    }
    platform = {"mlops": {"enabled": True, "revision": "a" * 40, "digest": f"h1:{'A' * 43}="}}
    assert installed(settings_of(shipped() | platform)) == {"mlops-platform": "a" * 40}


def test_the_cluster_is_waited_for_and_reached_as_the_key_says() -> None:
    run = Run()
    cluster = run.one("RemoteCluster")
    public = yaml.safe_load(run.one("Instance").inputs["userData"])["ssh_keys"]["ed25519_public"]
    given = {name: cluster.inputs[name] for name in ("address", "user", "host_key_public", "vm", "api_port")}
    assert numbers(given) == {
        "address": ADDRESS,
        "user": "ubuntu",
        "host_key_public": public,
        "vm": "machine-id",
        "api_port": 6443,
    }
    assert cluster.inputs["timeout_seconds"] == 3600
    before = run.record.closure(cluster)
    assert {run.one(kind).urn for kind in ("VolumeAttach", "FloatingIpAssociate", "SecGroupRule")} <= before


def test_the_cluster_is_known_by_its_volume_and_its_kubeconfig_is_a_secret() -> None:
    run = Run()
    (provider,) = [item for item in run.record.resources if item.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["clusterIdentifier"] == VOLUME
    assert "kubeconfig" in provider.secrets


@pytest.mark.parametrize(
    ("mlops", "names"),
    [
        ({}, ["pipelines", "mlflow", "mlflowObjects", "prometheus", "grafana"]),
        ({"forwarder": True}, ["pipelines", "mlflow", "mlflowObjects", "prometheus", "grafana", "forwarder", "flower"]),
        ({"integration": False, "option": 6}, ["pipelines", "mlflow", "mlflowObjects"]),
        ({"integration": False, "option": 2}, ["kubeflow", "mlflow", "mlflowObjects"]),
    ],
)
def test_each_user_interface_has_a_tunnel(mlops: Mapping[str, Any], names: list[str]) -> None:
    settings = settings_of({**shipped(flavor="hpc.6.14core"), "mlops": {"enabled": True, **mlops}})
    found = interfaces(settings)
    assert list(found) == names
    assert len({one.local for one in found.values()}) == len(names)
    assert found["mlflow"].command == (
        "ssh -t -L 5000:localhost:15000 cpouta kubectl --kubeconfig /var/lib/mlbatch/kubeconfig --namespace mlflow "
        "port-forward service/mlflow 15000:5000"
    )
    assert {(one.namespace, one.service, f"{one.local}:{one.port}") for one in found.values()} <= {
        ("istio-system", "istio-ingressgateway", "8080:80"),
        ("kubeflow", "ml-pipeline-ui", "8080:80"),
        ("mlflow", "mlflow", "5000:5000"),
        ("mlflow", "mlflow-minio-service", "9001:9001"),
        ("monitoring", "prometheus-service", "8090:8080"),
        ("monitoring", "grafana", "5050:3000"),
        ("forwarder", "fastapi-service", "6500:6500"),
        ("forwarder", "flower-service", "6501:6501"),
    }


def test_what_runs_in_the_cluster_changes_nothing_of_the_vm() -> None:
    """The cluster outlives VMs, and its registry always runs, so the installation tells tools about the cluster."""

    def user_data(**mlops: Any) -> Any:
        settings = settings_of({**shipped(), "mlops": mlops})
        record = build(lambda: infrastructure.create(settings, FACTS), outputs=_outputs)
        (instance,) = [item for item in record.resources if item.type.endswith(":Instance")]
        return instance.inputs["userData"]

    with_registry = user_data(enabled=True, localRegistry=True)
    assert "registry.sh" in with_registry
    assert with_registry == user_data(enabled=True, localRegistry=False) == user_data(enabled=False)


def test_the_batch_platform_is_off_and_can_be_had() -> None:
    assert Run().record.objects() == []
    whole = Run(sections=LAYERS)
    assert whole.outputs["teams"].keys() == {"blue", "red"}
    queue = whole.record.one("ClusterQueue", "blue-cluster-queue")
    cluster = whole.one("RemoteCluster")
    assert cluster.urn in whole.record.closure(queue)


def test_no_object_is_deleted_with_the_stack_and_none_replaced_with_the_vm() -> None:
    """The protected volume has the cluster, and kind's class deletes what a claim had when the claim goes."""
    whole = Run(sections={**LAYERS, "gpu": {"operator": True}}, flavor="gpu.1.1gpu").record
    (provider,) = [item.urn for item in whole.resources if item.type == "pulumi:providers:kubernetes"]
    by_urn = {item.urn: item for item in whole.resources}

    def gone_with(item: Registered) -> str:
        # The engine hands it down to children.
        return item.deleted_with or (gone_with(by_urn[item.parent]) if item.parent in by_urn else "")

    installed = [item for item in whole.resources if item.provider.rpartition("::")[0] == provider]
    assert {"kubernetes:core/v1:Namespace", "kubernetes:helm.sh/v3:Release"} <= {item.type for item in installed}
    assert {gone_with(item) for item in installed} == {provider}
    assert {item.replace_with for item in installed} == {()}
    assert not by_urn[provider].deleted_with


def test_a_preview_without_credentials_shows_the_plan() -> None:
    run = Run(None, preview=True)
    planned, made = ({item.type for item in each.record.resources} for each in (run, Run()))
    assert planned == made
    (provider,) = [item for item in run.record.resources if item.type == "pulumi:providers:openstack"]
    assert provider.inputs == {"authUrl": "https://pouta.csc.fi:5001/v3", "maxRetries": "5"}
    assert {item.provider.rpartition("::")[0] for item in run.all("Instance")} == {provider.urn}


def test_the_provider_takes_its_address_from_the_credentials() -> None:
    (provider,) = [item for item in Run().record.resources if item.type == "pulumi:providers:openstack"]
    assert provider.inputs == {"maxRetries": "5"}
