"""The review of a VM on OpenStack: billing units, and in bold what replaces the VM or changes its volume."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from components.openstack import flavors
from components.openstack.access import remote_cluster
from components.openstack.first_boot import kept
from review import costs, immutable, prices
from review.compare import Operation, compare
from review.losses import losses
from review.markdown import Review, StackReview, render
from review.plan import Plan, Resource
from review.prices import find
from tests.unit.harness import Registered
from tests.unit.test_cpouta import Run


def plan(**values: Any) -> Plan:
    """Return the shipped stack's plan with some values of section openstack changed."""
    resources = [_resource(item) for item in Run(**values).record.resources]
    return Plan({each.urn: each for each in resources})


def _resource(item: Registered) -> Resource:
    secrets: Mapping[str, Any] = {name: f"[secret] {len(item.inputs[name])}" for name in item.secrets}
    return Resource(
        urn=item.urn,
        type=item.type,
        custom=item.is_custom,
        parent=item.parent,
        provider=item.provider,
        inputs={**item.inputs, **secrets},
        property_dependencies={name: tuple(urns) for name, urns in item.sources.items()},
        replace_on_changes=item.replace_on_changes,
        protected=item.protect,
        deleted_with=item.deleted_with,
    )


BASE = plan()


def changed(after: Plan) -> dict[str, Operation]:
    return {each.resource.kind: each.operation for each in compare(BASE, after).changes}


def test_rates_are_those_of_the_program() -> None:
    for name, flavor in flavors.FLAVORS.items():
        found = find(name, "", prices.OPENSTACK)
        assert found is not None
        assert found.per_hour == flavor.rate
    for kind, rate in flavors.VOLUME_RATES.items():
        found = find(f"GiB of a volume of type {kind}", "", prices.OPENSTACK)
        assert found is not None
        assert found.per_hour * 1024 == rate


def test_a_plan_costs_billing_units_and_no_dollars() -> None:
    units = costs.units_of_plan(BASE)
    assert (units.low, units.high, units.unknown) == (Decimal("10.3578125"), Decimal("10.3578125"), ())
    assert costs.of_plan(BASE).prices == ()
    assert costs.units_of_plan(plan(flavor="gpu.1.1gpu")).low == Decimal("61.9578125")


def test_a_volume_that_the_vm_boots_from_costs_what_the_outputs_say() -> None:
    run = Run(bootVolume=1024)
    assert costs.units_of_plan(plan(bootVolume=1024)).low == Decimal("13.9578125")
    assert run.outputs["billingUnits"] == {
        "vm": "8.4",
        "floatingIp": "0.2",
        "volume": "1.758",
        "bootVolume": "3.6",
        "total": "13.958",
    }


def test_an_address_changes_its_rule_alone() -> None:
    changes = compare(BASE, plan(sshFrom={"me": "198.51.100.9/32"})).changes
    assert {(each.resource.name, each.operation) for each in changes} == {
        ("tcp-22-203.0.113.7/32", Operation.DELETE),
        ("tcp-22-198.51.100.9/32", Operation.CREATE),
    }
    assert list(losses(compare(BASE, plan(sshFrom={"me": "198.51.100.9/32"})))) == []


def test_a_resize_replaces_nothing_and_gpus_or_another_family_the_vm() -> None:
    assert changed(plan(flavor="standard.3xlarge")) == {"Instance": Operation.CHANGE}
    for flavor in ("gpu.1.1gpu", "hpc.6.14core"):
        found = changed(plan(flavor=flavor))
        assert {name: operation for name, operation in found.items() if name != "RemoteCluster"} == {
            "UserData": Operation.REPLACE,
            "Instance": Operation.REPLACE,
            "VolumeAttach": Operation.REPLACE,
        }


def test_what_the_programs_own_resources_are_replaced_for_is_known() -> None:
    assert immutable.OWN == {"RemoteCluster": remote_cluster.REPLACING, "UserData": (kept.REPLACING,)}


@pytest.mark.parametrize("values", [{"flavor": "gpu.1.1gpu"}, {"user": "somebody"}])
def test_what_replaces_the_vm_is_in_bold(values: Mapping[str, Any]) -> None:
    stack = StackReview(stack="cpouta", before=BASE, after=plan(**values))
    text = render(Review(base="main", head="change", stacks=(stack,)))
    assert "what is on its own disk; its address and its volume stay" in text
    (bold,) = [line for line in text.splitlines() if "its address and its volume stay" in line]
    assert "**" in bold


def test_another_cluster_is_told_with_what_the_one_on_the_volume_holds() -> None:
    stack = StackReview(stack="cpouta", before=BASE, after=plan(kind={"kubernetes": "1.31.12", "recreate": True}))
    (bold,) = [
        line for line in render(Review(base="main", head="change", stacks=(stack,))).splitlines() if "loses the" in line
    ]
    assert "**replace `UserData user-data`**, which loses the cluster on the volume with all of its data" in bold
    moved = losses(compare(BASE, plan(generation=2)))
    assert "" in [loss.lost for loss in moved if loss.change.resource.kind == "UserData"]


def test_what_touches_the_volume_is_in_bold_and_growing_it_is_not() -> None:
    gone = plan(volume={"existing": "99999999-2222-3333-4444-555555555555"})
    held = {loss.change.resource.kind: loss.lost for loss in losses(compare(BASE, gone))}
    assert held["Volume"] == "the data on the volume, unless it is kept"
    assert changed(plan(volume={"size": 600})) == {"Volume": Operation.CHANGE}


def test_a_protection_that_is_taken_off_is_told() -> None:
    stack = StackReview(stack="cpouta", before=BASE, after=plan(volume={"protect": False}))
    text = render(Review(base="main", head="change", stacks=(stack,)))
    assert "- `Volume data`, `RandomPassword mlops` changed\n  - `protect`: `true` → `false`" in text


def test_the_review_names_the_unit() -> None:
    stack = StackReview(stack="cpouta", before=BASE, after=plan(flavor="gpu.1.1gpu"))
    text = render(Review(base="main", head="change", stacks=(stack,)))
    assert "10.36 → **61.96** billing units" in text
    assert "billing units per hour: 10.36 → **61.96**." in text
