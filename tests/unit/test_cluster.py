"""What layers get from a cluster: options, namespaces, and the facts of the target."""

from collections.abc import Callable
from dataclasses import replace

import pulumi_kubernetes as kubernetes

from components import names
from components.kubernetes.cluster import Cluster
from components.kubernetes.manifests import Manifest
from components.kubernetes.namespace import Namespace, NamespaceArgs
from components.kubernetes.node_pool import GPU_TAINT, GPU_TOLERATION, NodePool
from components.kubernetes.placement import NodeGroup, Placement
from components.layer import Layer, needed
from components.nodes.machines import H100_SXM5
from tests.unit.harness import Record, build


class Outer(Layer):
    """A layer on a layer."""

    def __init__(self, name: str, below: Layer) -> None:
        super().__init__("test:Outer", name)
        self.ready = [below]


def cluster(provider: kubernetes.Provider) -> Cluster:
    pool = NodePool(count=2, shape=H100_SXM5.shape())
    return Cluster(provider=provider, pools=[pool], placement=Placement())


def installed(program: Callable[[Cluster], object], name: str = "pods") -> tuple[Record, set[str]]:
    """Return a program's registrations on a cluster, and the dependencies of the object with a name."""
    record = build(lambda: program(cluster(kubernetes.Provider("cluster", kubeconfig="{}"))))
    (found,) = [item for item in record.resources if item.name == name]
    return record, {urn.rpartition("::")[2] for urn in record.closure(found)}


def body(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_a_layer_waits_for_what_other_layers_call_ready_and_for_the_cluster() -> None:
    def program(lab: Cluster) -> None:
        first, pool = Manifest("first", body("first"), lab.options()), Manifest("pool", body("pool"), lab.options())
        lab = replace(lab, ready=[first], gpus_ready=[pool])
        namespace = Namespace("system", NamespaceArgs(name="mlbatch-system"), lab.options())
        Namespace("pods", NamespaceArgs(name="plain"), lab.options(Outer("outer", namespace)))
        Namespace("jobs", NamespaceArgs(name="gpus"), lab.options(gpus=True))

    record, waited = installed(program)
    assert {"first", "mlbatch-system"} <= waited
    assert "pool" not in waited
    (jobs,) = [item for item in record.resources if item.name == "jobs"]
    assert {urn.rpartition("::")[2] for urn in record.closure(jobs)} >= {"first", "pool"}


def test_a_resource_stands_for_itself_and_a_layer_for_what_it_calls_ready() -> None:
    def program(lab: Cluster) -> None:
        namespace = Namespace("system", NamespaceArgs(name="mlbatch-system"), lab.options())
        plain = Manifest("pods", body("plain"), lab.options())
        assert needed([Outer("outer", namespace), plain]) == [*namespace.ready, plain]

    installed(program)


def test_every_object_goes_with_what_the_cluster_goes_with_and_is_made_anew_with_it() -> None:
    def program(lab: Cluster) -> None:
        machine = Manifest("machine", body("machine"), lab.options())
        Namespace("pods", NamespaceArgs(name="plain"), replace(lab, made_by=machine).options())

    record, _ = installed(program)
    (machine,) = [item.urn for item in record.resources if item.name == "machine"]
    component, child = (next(item for item in record.resources if item.name == name) for name in ("pods", "plain"))
    assert component.deleted_with == next(
        item.urn for item in record.resources if item.type == "pulumi:providers:kubernetes"
    )
    assert component.replace_with == child.replace_with == (machine,)


def test_on_a_cluster_that_is_kept_nothing_is_deleted_while_the_way_to_it_is() -> None:
    record, _ = installed(lambda lab: Namespace("pods", NamespaceArgs(name="plain"), replace(lab, kept=True).options()))
    (provider,) = [item.urn for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    (component,) = [item for item in record.resources if item.name == "pods"]
    assert (component.deleted_with, component.replace_with) == (provider, ())


def test_without_such_a_resource_objects_stand_for_themselves() -> None:
    record, _ = installed(lambda lab: Namespace("pods", NamespaceArgs(name="plain"), lab.options()))
    assert {(item.deleted_with, item.replace_with) for item in record.resources} == {("", ())}


def test_namespaces_of_older_stacks_are_taken_over_and_not_replaced() -> None:
    record, _ = installed(lambda lab: Namespace("pods", NamespaceArgs(name="plain"), lab.options()))
    (component,) = [item for item in record.resources if item.name == "pods"]
    assert component.type == "mlbatch:kubernetes:Namespace"
    assert set(component.former_types) == {
        "mlbatch:nodes:PrivilegedNamespace",
        "mlbatch:queueing:SystemNamespace",
        "mlbatch:workloads:WorkloadsNamespace",
    }


def test_a_namespace_has_its_labels_and_those_that_let_privileged_pods_in() -> None:
    args = NamespaceArgs(name="agents", labels={"owner": "platform"}, privileged=True)
    record, _ = installed(lambda lab: Namespace("pods", args, lab.options()))
    modes = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    assert record.one("Namespace", "agents").inputs["metadata"]["labels"] == {"owner": "platform", **modes}


def test_a_node_group_says_in_a_pod_what_it_has_and_no_more() -> None:
    assert NodeGroup().body() == {}
    assert NodeGroup(node_selector={"pool": "gpu"}, tolerations=[GPU_TOLERATION]).body() == {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    assert GPU_TAINT["key"] == GPU_TOLERATION["key"] == names.GPU


def test_options_hand_the_clusters_own_provider_down() -> None:
    record, _ = installed(lambda lab: Namespace("pods", NamespaceArgs(name="plain"), lab.options()))
    (provider,) = [item.urn for item in record.resources if item.type == "pulumi:providers:kubernetes"]
    assert record.one("Namespace", "plain").provider.rpartition("::")[0] == provider
