"""Trainings on the targets that have no shared files of their own: simulated nodes, and a VM with one node."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from components.artifacts import Mirror
from components.kubernetes.manifests import Document
from stacks.config.errors import SettingsError
from stacks.config.inputs import StackInputs, interpret
from stacks.deploy import deploy
from stacks.job_manifests import manifest, wanted
from stacks.layers.jobs import documents
from stacks.targets.registry import TARGETS
from tests.unit import test_cpouta, test_cpouta_settings, test_existing, test_settings
from tests.unit.configurations import ROOT
from tests.unit.harness import Record, build
from tests.unit.releases import FOLDER
from tests.unit.test_stack import stack_of

ON = {"enabled": True}
BLUE = {"team": "blue", "user": None}
OPERATORS = {"trainingOperator": ON, "kuberay": ON}
SMALL = MappingProxyType({"cpu": 8, "memory": "64Gi"})
"""Resources that fit a pod on one VM with a GPU."""


def queued(**own: Any) -> dict[str, Any]:
    return {**ON, "submission": {"team": "blue"}, **own}


def simulated(**workloads: Any) -> dict[str, Any]:
    """Three simulated nodes with eight GPUs each."""
    raw = test_settings.valid()
    queueing = {**raw["queueing"], **OPERATORS}
    return {**raw, "queueing": queueing, "samples": {}, "workloads": workloads}


def cpouta(flavor: str = "gpu.1.1gpu", *, nvshare: bool = False, **workloads: Any) -> dict[str, Any]:
    """A VM, with the operator that offers its GPUs to pods."""
    gpu = {"gpu": {"operator": True, "featureDiscovery": True}} if flavor.startswith("gpu") else {}
    raw = {**test_cpouta_settings.shipped(flavor=flavor), **test_cpouta.LAYERS, **gpu}
    return {**raw, "nvshare": {"enabled": nvshare}, "queueing": {**ON, **OPERATORS}, "workloads": workloads}


def of_vm(raw: Mapping[str, Any]) -> StackInputs[Any]:
    return interpret({**raw, "mirror": {"artifacts": str(FOLDER), "verify": False}}, base=ROOT, environment={})


def of_vm_registered(raw: Mapping[str, Any]) -> Record:
    return test_cpouta.Run(sections=raw).record


def printed(inputs: StackInputs[Any], job: str) -> Mapping[str, Document]:
    return {document["kind"]: document for document in documents(inputs, job)}


def amounts(pod: Document) -> dict[str, str]:
    (container,) = pod["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    return dict(container["resources"]["requests"])


def worker(ray_job: Document) -> dict[str, Any]:
    (group,) = ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return dict(group["template"]["spec"])


def torch(wrapper: Document) -> Document:
    (component,) = wrapper["spec"]["components"]
    return dict(component["template"])


def test_every_target_has_workloads() -> None:
    assert [each.name for each in TARGETS.values() if "workloads" not in each.sections] == []


def same(record: Record, inputs: StackInputs[Any], job: str) -> None:
    """Require that members get the objects that the stack registers for a job: claim, program and job."""
    found = documents(inputs, job)
    assert [document["kind"] for document in found][:2] == ["PersistentVolumeClaim", "ConfigMap"]
    for document in found:
        made = record.one(document["kind"], document["metadata"]["name"], "blue")
        assert json.loads(json.dumps(document)) == json.loads(json.dumps(dict(made.inputs)))


def test_what_a_member_is_printed_is_what_the_stack_submits(mirror: Mirror, kubeconfig: Path) -> None:
    inputs = stack_of(simulated(pretraining=queued(nodes=2), finetuning=queued()), mirror, kubeconfig)
    record = build(lambda: deploy(inputs))
    same(record, inputs, "pretraining")
    same(record, inputs, "finetuning")
    whole = cpouta(pretraining=queued(**SMALL))
    same(of_vm_registered(whole), of_vm(whole), "pretraining")
    shared = cpouta(nvshare=True, finetuning=queued(workers=1, **SMALL))
    same(of_vm_registered(shared), of_vm(shared), "finetuning")


def test_a_training_on_simulated_nodes_takes_whole_ones_and_their_volumes(mirror: Mirror, kubeconfig: Path) -> None:
    inputs = stack_of(simulated(pretraining=queued(nodes=2)), mirror, kubeconfig)
    found = printed(inputs, "pretraining")
    assert found["PersistentVolumeClaim"]["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "simulated",
        "resources": {"requests": {"storage": "200Gi"}},
    }
    specification = torch(found["AppWrapper"])["spec"]
    assert {role: each["replicas"] for role, each in specification["pytorchReplicaSpecs"].items()} == {
        "Master": 1,
        "Worker": 1,
    }
    pod = specification["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert amounts(pod) == {"cpu": "64", "memory": "1000Gi", "nvidia.com/gpu": "8"}
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    tuning = printed(stack_of(simulated(finetuning=queued()), mirror, kubeconfig), "finetuning")
    assert tuning["PersistentVolumeClaim"]["spec"]["storageClassName"] == "simulated"
    assert amounts(worker(tuning["RayJob"])) == {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}


def test_simulated_volumes_have_a_class_that_is_nobodys_default(mirror: Mirror, kubeconfig: Path) -> None:
    """A cluster that has a default class keeps it, and a stack without trainings has the class for its members."""
    inputs = stack_of(simulated(), mirror, kubeconfig)
    record = build(lambda: deploy(inputs))
    made = record.one("StorageClass", "simulated", None)
    assert made.inputs["metadata"] == {"name": "simulated"}
    assert {key: made.inputs[key] for key in ("provisioner", "reclaimPolicy", "volumeBindingMode")} == {
        "provisioner": "kubernetes.io/host-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
    assert set(made.replace_on_changes) == {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}


def test_on_one_vm_volumes_are_those_of_its_node() -> None:
    """kind's provisioner makes none that many nodes may mount: such a claim would wait for ever."""
    found = printed(of_vm(cpouta(pretraining=queued(**SMALL))), "pretraining")
    assert found["PersistentVolumeClaim"]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "200Gi"}},
    }
    specification = torch(found["AppWrapper"])["spec"]
    assert specification["nprocPerNode"] == "1"
    assert list(specification["pytorchReplicaSpecs"]) == ["Master"]
    pod = specification["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert amounts(pod) == {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    batch = {"cpu": 4, "memory": "32Gi", "generatorCpu": 1, "generatorMemory": "4Gi"}
    assert printed(of_vm(cpouta(vllm=queued(**batch))), "vllm")["PersistentVolumeClaim"]["spec"]["accessModes"] == [
        "ReadWriteOnce"
    ]


def test_every_volume_of_the_vms_workloads_is_one_that_its_node_can_mount() -> None:
    lab = queued(name="lab", scratch=False, image="registry.example.org/jupyter:1", **SMALL)
    training = {
        **ON,
        "image": "registry.example.org/metaseq",
        "tag": "1",
        "useAim": True,
        "size": "125m",
        "modelParallel": 1,
    }
    metaseq = {**training, "submission": {"team": "blue"}, **SMALL}
    raw = cpouta(jupyterlab=lab, metaseq=metaseq, pretraining=queued(**SMALL))
    claims = {
        claim.object_name: claim.inputs["spec"]
        for claim in of_vm_registered(raw).of("PersistentVolumeClaim")
        if claim.inputs["metadata"]["namespace"] == "blue"
    }
    assert claims.keys() == {"lab-home", "training-logs", "pretraining-checkpoints"}
    assert {(*spec["accessModes"], spec["storageClassName"]) for spec in claims.values()} == {
        ("ReadWriteOnce", "standard")
    }


def test_with_nvshare_jobs_ask_for_shares_printed_or_not(mirror: Mirror, kubeconfig: Path) -> None:
    shared = printed(of_vm(cpouta(nvshare=True, finetuning=queued(workers=1, **SMALL))), "finetuning")
    assert amounts(worker(shared["RayJob"])) == {"cpu": "8", "memory": "64Gi", "nvshare.com/gpu": "1"}
    nodes = tuple(test_existing.node(name, **{"nvidia.com/gpu": "1"}) for name in "ab")
    raw = test_existing.shipped()
    raw["cluster"] = {"pool": {"nodeSelector": raw["cluster"]["pool"]["nodeSelector"]}}
    raw |= {"nvshare": ON, "samples": {}, "queueing": OPERATORS}
    raw |= {"teams": [{"name": "blue", "users": ["alice"], "share": 1}]}
    inputs = test_existing.loaded(wanted(raw, "finetuning", {"workers": 1}, BLUE), mirror, kubeconfig, nodes=nodes)
    elsewhere = printed(inputs, "finetuning")
    assert amounts(worker(elsewhere["RayJob"]))["nvshare.com/gpu"] == "1"


GANG = "2 nodes requested, but target cpouta has one machine with a cluster of one node"


def test_a_member_is_told_the_same_as_the_program() -> None:
    with pytest.raises(SettingsError) as refused:
        manifest(cpouta(), "pretraining", {"nodes": 2, **SMALL}, BLUE)
    (problem,) = refused.value.problems
    assert problem.message == GANG
