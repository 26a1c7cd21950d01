"""The drift check: declared objects of a state, writers, additions that count, and no secrets in the report."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cli import drift as command
from cli.app import main
from drift import closed, fields, report
from drift.check import Finding, check, put_all_back, put_back
from drift.cluster import ClusterError, RefusedError, connected
from drift.compare import ABSENT, Difference, appliable, differences, overlaid, render, settled
from drift.controllers import CHECK, CONTROLLERS
from drift.fields import ENGINE, Writer
from drift.lists import pairs
from drift.report import findings
from drift.restarts import Restart, restart
from drift.state import SECRET, Declared, StateError, export, read
from tests.unit.servers import kubeconfig_of

ENCRYPTED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc:def"}
NOON = "2026-11-22T12:00:00Z"
LATER = "2026-11-22T13:00:00Z"
LAST = "2026-11-22T14:00:00Z"
UID = "0b5c7a3e"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


def managed(manager: str, tree: Mapping[str, Any], time: str = NOON, **rest: Any) -> dict[str, Any]:
    operation = "Apply" if manager == CHECK else "Update"
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": tree, **rest}


def declared(manifest: Mapping[str, Any], **rest: Any) -> Declared:
    return Declared(urn="urn:x", manifest=dict(manifest), uid=UID, **rest)


def lived(manifest: Mapping[str, Any], *entries: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return an object in the API server's form."""
    own = {"uid": UID, "resourceVersion": "7", "managedFields": list(entries), **metadata}
    return {**copy.deepcopy(dict(manifest)), "metadata": {**manifest["metadata"], **own}}


def drifted(what: Declared, applied: dict[str, Any], live: dict[str, Any]) -> list[tuple[Any, ...]]:
    found = differences(what, settled(what, applied, live), live)
    return [(render(each.path), each.declared, each.live, each.writer and each.writer.manager) for each in found]


def deployment(*containers: Mapping[str, Any], **pod: Any) -> dict[str, Any]:
    spec = {"replicas": 1, "template": {"spec": {"containers": list(containers), **pod}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "b"}, "spec": spec}


def of_pod(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {"f:spec": {"f:template": {"f:spec": dict(tree)}}}


MAIN = 'k:{"name":"main"}'
SIDE = 'k:{"name":"side"}'
DECLARED_POD = of_pod({"f:containers": {MAIN: {".": {}, "f:name": {}, "f:image": {}}}})


class TestState:
    def resource(self, **rest: Any) -> dict[str, Any]:
        inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
        return {
            "urn": "urn:c",
            "type": "kubernetes:core/v1:ConfigMap",
            "custom": True,
            "id": "ns/c",
            "inputs": inputs,
            **rest,
        }

    def read(self, *resources: Mapping[str, Any]) -> tuple[Declared, ...]:
        return read({"resources": list(resources)}).objects

    def test_an_object_has_the_name_and_namespace_of_its_id(self) -> None:
        (found,) = self.read(self.resource(outputs={"metadata": {"uid": UID}}))
        assert found.title == "ConfigMap ns/c"
        assert found.uid == UID
        assert found.manifest["metadata"] == {"name": "c", "namespace": "ns"}

    def test_what_is_not_to_be_there_and_what_is_no_object_is_left_out(self) -> None:
        others = [
            self.resource(delete=True),
            self.resource(external=True),
            self.resource(custom=False),
            {**self.resource(), "type": "pulumi:providers:kubernetes"},
            {**self.resource(), "type": "azure-native:network:VirtualNetwork"},
        ]
        assert self.read(*others) == ()

    def test_releases_are_named(self) -> None:
        release = {"urn": "urn:r", "type": "kubernetes:helm.sh/v3:Release", "custom": True, "id": "gpu/operator"}
        state = read({"resources": [release]})
        assert (state.objects, state.releases) == ((), ("gpu/operator",))

    def test_what_is_encrypted_stays_so(self) -> None:
        (found,) = self.read(self.resource(inputs={**self.resource()["inputs"], "data": {"k": ENCRYPTED}}))
        assert found.manifest["data"] == {"k": SECRET}

    @pytest.mark.parametrize(
        ("contents", "expected"),
        [
            ({"stringData": ENCRYPTED}, SECRET),
            ({"data": ENCRYPTED}, SECRET),
            ({"data": {"password": ENCRYPTED}, "stringData": {"user": "plain"}}, SECRET),
            ({"data": {}}, None),
            ({}, None),
        ],
    )
    def test_what_a_secret_holds_is_one_secret(self, contents: dict[str, Any], expected: Any) -> None:
        inputs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **contents}
        (found,) = self.read(self.resource(inputs=inputs))
        assert found.manifest.get("data") is expected
        assert "stringData" not in found.manifest

    def test_schemas_of_definitions_are_spelt_as_kubernetes_does(self) -> None:
        inputs = {**self.resource()["inputs"], "spec": {"x_kubernetes_list_type": "map", "x_own": 1}}
        (found,) = self.read(self.resource(inputs=inputs))
        assert found.manifest["spec"] == {"x-kubernetes-list-type": "map", "x_own": 1}

    def test_a_patch_declares_a_part_and_ignored_paths_are_known(self) -> None:
        (found,) = self.read(
            self.resource(type="kubernetes:core/v1:ConfigMapPatch", ignoreChanges=['metadata.labels["a.b/c"]'])
        )
        assert found.partial
        assert found.ignored == (("metadata", "labels", "a.b/c"),)

    def test_an_engine_that_is_absent_or_refuses_is_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(StateError, match="the `pulumi` command is not on the PATH"):
            export("mysite", tmp_path)
        program = tmp_path / "pulumi"
        program.write_text("#!/bin/sh\necho 'error: no stack named mysite found' >&2; exit 255\n")
        program.chmod(0o755)
        with pytest.raises(StateError, match=r"--stack mysite` failed.*\nerror: no stack named mysite found"):
            export("mysite", tmp_path)


class TestOwners:
    LIVE = lived(
        deployment({"name": "main", "image": "x", "args": ["a"]}),
        managed(ENGINE, of_pod({"f:containers": {MAIN: {".": {}, "f:image": {}, "f:args": {}}}})),
        managed("kubectl-edit", of_pod({"f:containers": {MAIN: {"f:image": {}}}}), LATER),
        managed("kube-controller-manager", {"f:spec": {"f:replicas": {}}}, LAST),
        managed("some-controller", {"f:status": {}}, LAST, subresource="status"),
    )

    def owner(self, *path: str | int) -> Writer | None:
        entry = fields.owner(self.LIVE, ("spec", "template", "spec", *path))
        return entry.writer if entry else None

    def test_a_person_counts_before_the_engine(self) -> None:
        later = datetime(2026, 11, 22, 13, tzinfo=UTC)
        assert self.owner("containers", 0, "image") == Writer(manager="kubectl-edit", time=later)

    def test_a_person_counts_before_a_controller(self) -> None:
        scaled = managed("kubectl-scale", {"f:spec": {"f:replicas": {}}}, NOON)
        live = lived(self.LIVE, *self.LIVE["metadata"]["managedFields"], scaled)
        entry = fields.owner(live, ("spec", "replicas"))
        assert entry is not None
        assert entry.writer.manager == "kubectl-scale"

    def test_what_is_in_a_list_that_is_written_as_a_whole_is_its_writers(self) -> None:
        found = self.owner("containers", 0, "args", 0)
        assert found is not None
        assert found.manager == ENGINE

    def test_what_nobody_has_written_has_no_owner(self) -> None:
        assert self.owner("containers", 0, "name") is None
        assert self.owner("containers", -1) is None
        assert self.owner("hostNetwork") is None

    def test_the_last_person_is_the_suspect(self) -> None:
        found = fields.last_person(self.LIVE)
        assert found is not None
        assert found.manager == "kubectl-edit"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([], [], []),
        (["a", "b"], ["a", "c", "b"], [(0, 0), (None, 1), (1, 2)]),
        (["a", "b"], ["a", "c"], [(0, 0), (1, 1)]),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b", "x": 1}], [(0, None), (1, 0)]),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a"}], [(0, 0), (1, None)]),
    ],
)
def test_items_belong_together_by_name_else_by_value_and_place(left: Any, right: Any, expected: Any) -> None:
    assert list(pairs(left, right)) == expected


class TestAdditions:
    def test_an_item_that_a_person_adds_to_a_declared_list_is_drift(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}))
        live = lived(
            deployment({"name": "main", "image": "x"}, {"name": "side", "image": "y"}),
            managed("kubectl-edit", of_pod({"f:containers": {SIDE: {".": {}, "f:name": {}, "f:image": {}}}})),
        )
        applied = lived(live, *live["metadata"]["managedFields"], managed(CHECK, DECLARED_POD))
        path = 'spec.template.spec.containers[name="side"]'
        assert drifted(what, applied, live) == [(path, ABSENT, {"name": "side", "image": "y"}, "kubectl-edit")]

    def test_an_item_whose_writer_was_wiped_out_is_drift_too(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}))
        live = lived(deployment({"name": "main", "image": "x"}, {"name": "side", "image": "y"}))
        applied = lived(live, managed(CHECK, DECLARED_POD))
        assert [each[0] for each in drifted(what, applied, live)] == ['spec.template.spec.containers[name="side"]']

    @pytest.mark.parametrize("controller", sorted(CONTROLLERS))
    def test_what_is_no_controllers_task_is_drift_in_its_name(self, controller: str) -> None:
        what = declared(deployment({"name": "main", "image": "x"}))
        live = lived(
            deployment({"name": "main", "image": "x"}, {"name": "side"}, hostNetwork=True),
            managed(
                controller,
                of_pod({"f:hostNetwork": {}, "f:containers": {SIDE: {".": {}, "f:name": {}}}}),
                operation="Update",
            ),
        )
        applied = lived(live, *live["metadata"]["managedFields"], managed(CHECK, DECLARED_POD))
        assert drifted(what, applied, live) == [
            ('spec.template.spec.containers[name="side"]', ABSENT, {"name": "side"}, controller),
            ("spec.template.spec.hostNetwork", ABSENT, True, controller),
        ]

    @pytest.mark.parametrize("controller", sorted(CONTROLLERS))
    def test_a_subject_in_a_controllers_name_is_drift(self, controller: str) -> None:
        alice, mallory = ({"kind": "User", "name": name} for name in ("alice", "mallory"))
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"}}
        subject = {'k:{"kind":"User","name":"mallory"}': {".": {}, "f:name": {}}}
        theirs = managed(controller, {"f:subjects": subject}, operation="Update")
        ours = managed(CHECK, {"f:subjects": {'k:{"kind":"User","name":"alice"}': {".": {}, "f:name": {}}}})
        live = lived({**binding, "subjects": [alice, mallory]}, theirs)
        found = drifted(declared({**binding, "subjects": [alice]}), lived(live, theirs, ours), live)
        assert found == [('subjects[name="mallory"]', ABSENT, mallory, controller)]

    def test_what_a_controller_adds_as_its_task_is_none(self) -> None:
        """Kueue starts a job on the nodes of a flavor."""
        what = declared({**deployment({"name": "main", "image": "x"}), "kind": "Job"})
        live = lived(
            {**deployment({"name": "main", "image": "x"}, nodeSelector={"pool": "a"}), "kind": "Job"},
            managed("kueue", {"f:spec": {"f:suspend": {}, **of_pod({"f:nodeSelector": {"f:pool": {}}})["f:spec"]}}),
        )
        live["spec"]["suspend"] = False
        assert drifted(what, lived(live, *live["metadata"]["managedFields"], managed(CHECK, DECLARED_POD)), live) == []
        assert fields.last_person(live) is None

    @pytest.mark.parametrize(("key", "is_drift"), [("service-ca.crt", False), ("another", True)])
    def test_openshifts_authority_writes_its_certificate_and_nothing_else(self, key: str, is_drift: bool) -> None:
        own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "object-store-authority"}}
        theirs = managed("service-ca-operator", {"f:data": {".": {}, f"f:{key}": {}}})
        live = lived({**own, "data": {key: "-----BEGIN"}}, theirs)
        found = drifted(declared(own), lived(live, theirs, managed(CHECK, {"f:metadata": {}})), live)
        assert [writer for *_, writer in found] == (["service-ca-operator"] if is_drift else [])

    @pytest.mark.parametrize("controller", ["kueue", "manager"])
    def test_a_webhook_that_a_controller_has_written_into_is_still_his_who_added_it(self, controller: str) -> None:
        """Kueue and AppWrapper write their certificate into each webhook of their configurations."""
        own, spy = ({"name": name, "clientConfig": {"caBundle": "YQ=="}} for name in ("own", "spy"))
        hooks = {"apiVersion": "v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "h"}}
        certificate = {"f:clientConfig": {"f:caBundle": {}}}
        theirs = [
            managed("kubectl-edit", {"f:webhooks": {'k:{"name":"spy"}': {".": {}, "f:name": {}}}}),
            managed(
                controller, {"f:webhooks": {f'k:{{"name":"{name}"}}': certificate for name in ("own", "spy")}}, LATER
            ),
        ]
        ours = managed(CHECK, {"f:webhooks": {'k:{"name":"own"}': {".": {}, "f:name": {}}}})
        live = lived({**hooks, "webhooks": [own, spy]}, *theirs)
        what = declared({**hooks, "webhooks": [{"name": "own"}]})
        found = drifted(what, lived(live, *theirs, ours), live)
        assert [(path, live, who) for path, _, live, who in found] == [('webhooks[name="spy"]', spy, "kubectl-edit")]

    def test_a_field_that_is_left_out_is_drift_where_that_is_a_decision(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}))
        open_too = {"f:spec": {"f:minReadySeconds": {}, **of_pod({"f:hostNetwork": {}})["f:spec"]}}
        live = lived(deployment({"name": "main", "image": "x"}, hostNetwork=True), managed("kubectl-edit", open_too))
        live["spec"]["minReadySeconds"] = 5
        applied = lived(live, *live["metadata"]["managedFields"], managed(CHECK, DECLARED_POD))
        assert drifted(what, applied, live) == [("spec.template.spec.hostNetwork", ABSENT, True, "kubectl-edit")]

    @pytest.mark.parametrize(("kind", "field"), [("Deployment", "paused"), ("Job", "suspend"), ("CronJob", "suspend")])
    def test_what_keeps_a_workload_from_running_is_drift(self, kind: str, field: str) -> None:
        what = declared({**deployment(), "kind": kind})
        live = lived(what.manifest, managed("kubectl-rollout", {"f:spec": {f"f:{field}": {}}}))
        live["spec"][field] = True
        applied = lived(live, *live["metadata"]["managedFields"], managed(CHECK, DECLARED_POD))
        assert drifted(what, applied, live) == [(f"spec.{field}", ABSENT, True, "kubectl-rollout")]

    def test_a_label_that_rules_select_by_is_drift_and_another_is_none(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}}
        labels = {"a": "b", "own": "x", "metrics": "enabled", "pod-security.kubernetes.io/enforce": "privileged"}
        theirs = managed("kubectl-label", {"f:metadata": {"f:labels": {f"f:{key}": {} for key in list(labels)[1:]}}})
        live = lived(namespace, theirs, labels=labels)
        applied = lived(live, theirs, managed(CHECK, {"f:metadata": {"f:labels": {"f:a": {}}}}), labels=labels)
        assert {path for path, *_ in drifted(declared(namespace), applied, live)} == {
            "metadata.labels.metrics",
            'metadata.labels["pod-security.kubernetes.io/enforce"]',
        }

    def test_a_patch_closes_nothing(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}), partial=True)
        live = lived(deployment({"name": "main", "image": "x"}, {"name": "side"}), managed("kubectl-edit", of_pod({})))
        assert drifted(what, lived(live, managed(CHECK, DECLARED_POD)), live) == []

    def test_metadata_is_open(self) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "finalizers": ["a"]}}
        live = lived(node, managed("x", {"f:metadata": {"f:finalizers": {'v:"b"': {}}}}), finalizers=["a", "b"])
        own = managed(CHECK, {"f:metadata": {"f:finalizers": {'v:"a"': {}}}})
        assert drifted(declared(node), lived(live, own, finalizers=["a", "b"]), live) == []


class TestDifferences:
    def test_what_is_ignored_or_of_a_controller_is_as_it_lives(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}), ignored=(("spec", "replicas"),))
        live = lived(deployment({"name": "main", "image": "x"}))
        live["spec"]["replicas"] = 5
        assert drifted(what, lived(what.manifest), live) == []
        assert drifted(declared(what.manifest), lived(what.manifest), live) == [("spec.replicas", 1, 5, None)]

    def test_a_lending_limit_lives_on_beside_what_is_put_right(self) -> None:
        def queue(quota: str, **more: Any) -> dict[str, Any]:
            resources = [{"name": "gpu", "nominalQuota": quota, **more}]
            groups = [{"flavors": [{"name": "f", "resources": resources}]}]
            return {
                "apiVersion": "v1",
                "kind": "ClusterQueue",
                "metadata": {"name": "q"},
                "spec": {"resourceGroups": groups},
            }

        what, live = declared(queue("8")), lived(queue("16", lendingLimit="4"))
        target = settled(what, lived(queue("8")), live)
        assert target["spec"] == queue("8", lendingLimit="4")["spec"]
        assert [render(each.path) for each in differences(what, target, live)] == [
            'spec.resourceGroups[0].flavors[name="f"].resources[name="gpu"].nominalQuota'
        ]

    @pytest.mark.parametrize(
        ("manager", "paths"), [("admissionsenforcer", []), ("kubectl-edit", ["namespaceSelector"])]
    )
    def test_aks_may_keep_webhooks_out_of_its_namespaces(self, manager: str, paths: list[str]) -> None:
        def hooks(**hook: Any) -> dict[str, Any]:
            kind = "ValidatingWebhookConfiguration"
            return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "h"}, "webhooks": [{"name": "a", **hook}]}

        selector = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}
        tree = {"f:webhooks": {'k:{"name":"a"}': {"f:namespaceSelector": {}}}}
        live = lived(hooks(namespaceSelector=selector), managed(manager, tree))
        what = declared(hooks(namespaceSelector={}))
        found = drifted(what, lived(hooks(namespaceSelector={})), live)
        assert [path.split(".")[1] for path, *_ in found] == paths

    def test_another_order_of_names_is_one_difference(self) -> None:
        left, right = ({"name": "a"}, {"name": "b"}), ({"name": "b"}, {"name": "a"})
        what = declared(deployment(*left))
        path = "spec.template.spec.containers"
        assert drifted(what, lived(what.manifest), lived(deployment(*right))) == [(path, ["a", "b"], ["b", "a"], None)]

    def test_what_was_taken_away_has_a_suspect(self) -> None:
        what = declared(deployment({"name": "main", "image": "x"}))
        live = lived(deployment({"name": "main"}), managed("kubectl-edit", {"f:spec": {"f:paused": {}}}))
        (found,) = differences(what, settled(what, lived(what.manifest), live), live)
        assert found.writer is None
        assert found.suspect is not None
        assert found.suspect.manager == "kubectl-edit"

    def test_what_the_server_refuses_on_the_live_object_is_laid_over_it(self) -> None:
        """A volume with both the declared source and another user's source is invalid."""
        volume = {"name": "v", "configMap": {"name": "c"}}
        tree = of_pod({"f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}, "f:configMap": {"f:name": {}}}}})
        what = declared(deployment(volumes=[volume]))
        theirs = of_pod({"f:volumes": {'k:{"name":"v"}': {"f:hostPath": {".": {}, "f:path": {}}}}})
        live = lived(deployment(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), managed("kubectl-edit", theirs))
        applied = overlaid(lived(what.manifest, managed(CHECK, tree)), live)
        path = 'spec.template.spec.volumes[name="v"]'
        assert drifted(what, applied, live) == [
            (f"{path}.configMap", {"name": "c"}, ABSENT, None),
            (f"{path}.hostPath", ABSENT, {"path": "/"}, "kubectl-edit"),
        ]

    @pytest.mark.parametrize(("key", "expected"), [("spec", "spec"), ("a.b", '["a.b"]'), ("a/b", '["a/b"]')])
    def test_keys_that_need_it_are_quoted(self, key: str, expected: str) -> None:
        assert render((key,)) == expected


class TestSecrets:
    PLAIN = "aHVudGVyMg=="
    WHAT = declared({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": SECRET})

    def live(self, *entries: dict[str, Any], **data: str) -> dict[str, Any]:
        return lived({**self.WHAT.manifest, "data": {"password": self.PLAIN, **data}}, *entries)

    def test_what_is_encrypted_is_applied_as_it_lives(self) -> None:
        assert appliable(self.WHAT, self.live())["data"] == {"password": self.PLAIN}
        assert "data" not in appliable(self.WHAT, None)

    def test_a_value_that_somebody_else_wrote_is_named_and_not_shown(self) -> None:
        live = self.live(managed("kubectl-edit", {"f:data": {"f:password": {}}}))
        assert drifted(self.WHAT, live, live) == [("data.password", SECRET, SECRET, "kubectl-edit")]

    def test_the_engines_own_values_are_none(self) -> None:
        live = self.live(managed(ENGINE, {"f:data": {".": {}, "f:password": {}}}))
        assert drifted(self.WHAT, live, live) == []

    def test_values_that_were_taken_away_are_named(self) -> None:
        live = self.live()
        del live["data"]
        assert drifted(self.WHAT, live, live) == [("data", SECRET, ABSENT, None)]

    def test_values_are_hidden_whatever_else_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(closed, "of_controllers", lambda kind: ())
        what = declared({**self.WHAT.manifest, "data": {"password": "old"}})
        live = self.live()
        assert [each[:3] for each in drifted(what, lived(what.manifest), live)] == [("data.password", SECRET, SECRET)]

    def test_a_secret_in_another_object_is_hidden_above_and_below(self) -> None:
        container = {"name": "main", "image": "x", "env": [{"name": "TOKEN", "value": SECRET}]}
        what = declared(deployment(container))
        shown = {**container, "env": [{"name": "TOKEN", "value": "hunter2"}]}
        live = lived(deployment({**shown, "image": "y"}))
        target = settled(what, lived(deployment(shown)), live)
        assert [(render(each.path), each.live) for each in differences(what, target, live)] == [
            ('spec.template.spec.containers[name="main"].image', "y")
        ]
        live["spec"]["template"]["spec"]["containers"] = []
        (gone,) = differences(what, target, live)
        assert (gone.declared, gone.live) == (SECRET, ABSENT)

    def test_no_text_has_a_value(self) -> None:
        live = self.live(managed("kubectl-edit", {"f:data": {"f:password": {}}}))
        cluster = FakeCluster({"s": live})
        text = "\n".join(findings(check(cluster, [self.WHAT]), values=True))
        assert "data.password" in text
        assert "[secret]" in text
        assert self.PLAIN not in text


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"k": "v"}}


class FakeCluster:
    """A cluster whose dry runs merge the applied object into the live one."""

    server = "https://cluster.example.com"

    def __init__(self, live: dict[str, dict[str, Any]], refuse: RefusedError | None = None, known: bool = True) -> None:
        self.live, self.refuse, self.known = live, refuse, known
        self.written: list[dict[str, Any]] = []
        self.restarted: list[str] = []
        self.refuse_restart: RefusedError | None = None

    def knows(self, what: Declared) -> bool:
        return self.known

    def read(self, what: Declared) -> dict[str, Any] | None:
        if self.refuse is not None:
            raise self.refuse
        return self.live.get(what.name)

    def applied(self, what: Declared, body: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
        live = self.live[what.name]
        return {**live, **body, "metadata": {**live["metadata"], **body["metadata"]}}

    def replaced(self, what: Declared, body: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        if not dry_run:
            self.written.append(body)
        return body

    def create(self, what: Declared, body: dict[str, Any]) -> dict[str, Any]:
        self.written.append(body)
        return body

    def restart(self, what: Declared, time: datetime) -> None:
        if self.refuse_restart is not None:
            raise self.refuse_restart
        self.restarted.append(what.title)


class TestCheck:
    def check(self, cluster: FakeCluster) -> Any:
        (found,) = check(cluster, [declared(CONFIG)])
        return found

    def test_what_is_as_declared_is_none(self) -> None:
        assert not self.check(FakeCluster({"c": lived(CONFIG)})).drifted

    def test_what_is_put_back_is_what_was_read_with_the_declared_values(self) -> None:
        cluster = FakeCluster({"c": lived({**CONFIG, "data": {"k": "w"}})})
        found = self.check(cluster)
        assert [render(each.path) for each in found.differences] == ["data.k"]
        assert not put_back(cluster, found).drifted
        (written,) = cluster.written
        assert written["data"] == {"k": "v"}
        assert written["metadata"]["resourceVersion"] == "7"

    def test_an_object_that_is_gone_is_created(self) -> None:
        here, gone = declared(CONFIG), declared({**CONFIG, "metadata": {"name": "d", "namespace": "n"}})
        cluster = FakeCluster({"c": lived(CONFIG)})
        found = check(cluster, [here, gone])
        assert [each.gone for each in found] == [None, "it no longer exists"]
        put_back(cluster, found[1])
        assert cluster.written == [gone.manifest]

    def test_an_object_that_holds_what_is_encrypted_is_not_created(self) -> None:
        cluster = FakeCluster({"c": lived(CONFIG)})
        found = check(cluster, [declared(CONFIG), TestSecrets.WHAT])
        left = put_back(cluster, found[1])
        assert left.drifted
        assert "is encrypted" in str(left.kept)
        assert cluster.written == []

    def test_an_object_that_is_being_deleted_is_drift(self) -> None:
        found = self.check(FakeCluster({"c": lived(CONFIG, deletionTimestamp=NOON)}))
        assert found.gone == f"it has been in deletion since {NOON}"

    def test_a_kind_that_is_gone_with_the_cluster_is_another_cluster(self) -> None:
        with pytest.raises(ClusterError, match=r"none of the stack's 1 objects is in the cluster at https://cluster"):
            self.check(FakeCluster({}, known=False))

    def test_another_cluster_with_the_same_names_is_not_touched(self) -> None:
        with pytest.raises(ClusterError, match="another cluster than the stack's"):
            self.check(FakeCluster({"c": lived(CONFIG, uid="another")}))

    def test_what_cannot_be_read_is_trouble_and_not_drift(self) -> None:
        found = self.check(FakeCluster({}, refuse=RefusedError(500, "conversion webhook failed")))
        assert not found.drifted
        assert found.trouble == "it cannot be read: conversion webhook failed"

    def test_what_could_not_be_compared_is_compared_again_after_the_others_are_put_back(self) -> None:
        """As with the default PriorityClass, which the API server refuses beside another one."""
        second = {**CONFIG, "metadata": {"name": "d", "namespace": "n"}}

        class One(FakeCluster):
            def applied(self, what: Declared, body: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
                if what.name == "c" and not self.written:
                    raise RefusedError(403, "d is the default already")
                return super().applied(what, body, name)

        cluster = One({"c": lived({**CONFIG, "data": {"k": "w"}}), "d": lived({**second, "data": {"k": "w"}})})
        found = check(cluster, [declared(CONFIG), declared(second)])
        assert [each.trouble is None for each in found] == [False, True]
        assert [each.trouble or each.drifted for each in put_all_back(cluster, found)] == [False, False]
        assert [body["metadata"]["name"] for body in cluster.written] == ["d", "c"]


class TestRestart:
    """Only workloads that read a restored ConfigMap are restarted."""

    READERS: ClassVar[dict[str, dict[str, Any]]] = {
        "volume": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
        "projection": {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]},
        "variable": {
            "initContainers": [
                {"env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, {"value": SECRET}]}
            ]
        },
        "variables": {"containers": [{"envFrom": [{"configMapRef": {"name": "c"}}]}]},
    }

    def workload(self, name: str, kind: str = "Deployment", namespace: str = "n", **pod: Any) -> Declared:
        document = deployment(**pod)
        document["spec"]["template"]["spec"] |= pod
        return declared({**document, "kind": kind, "metadata": {"name": name, "namespace": namespace}})

    def fixed(self, cluster: FakeCluster, *objects: Declared) -> list[Restart]:
        cluster.live |= {each.name: lived(each.manifest) for each in objects if each.kind != "ConfigMap"}
        before = check(cluster, objects)
        return restart(cluster, before, [put_back(cluster, finding) for finding in before])

    def changed(self) -> FakeCluster:
        return FakeCluster({"c": lived({**CONFIG, "data": {"k": "w"}})})

    @pytest.mark.parametrize("how", READERS)
    @pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "StatefulSet"])
    def test_what_reads_it_is_restarted(self, how: str, kind: str) -> None:
        cluster = self.changed()
        (done,) = self.fixed(cluster, declared(CONFIG), self.workload("reader", kind, **self.READERS[how]))
        assert cluster.restarted == [f"{kind} n/reader"]
        assert list(report.restarts([done])) == [
            f"{kind} n/reader: restarted, as it reads ConfigMap n/c, which was restored"
        ]

    def test_what_reads_one_that_was_gone_is_restarted(self) -> None:
        cluster = FakeCluster({})
        self.fixed(cluster, self.workload("reader", **self.READERS["volume"]), declared(CONFIG))
        assert cluster.restarted == ["Deployment n/reader"]

    @pytest.mark.parametrize(
        "rest",
        [
            {"kind": "Job", **READERS["volume"]},
            {"namespace": "another", **READERS["volume"]},
            {"volumes": [{"name": "c", "configMap": {"name": "d"}}]},
            {"volumes": [{"name": "c", "secret": {"secretName": "c"}}]},
        ],
    )
    def test_nothing_else_is(self, rest: dict[str, Any]) -> None:
        cluster = self.changed()
        assert self.fixed(cluster, declared(CONFIG), self.workload("other", **rest)) == []
        assert cluster.restarted == []

    def test_one_whose_contents_are_as_declared_restarts_nothing(self) -> None:
        labelled = {**CONFIG, "metadata": {**CONFIG["metadata"], "labels": {"a": "b"}}}
        for what in (declared(CONFIG), declared(labelled)):
            cluster = FakeCluster({"c": lived(CONFIG)})
            assert self.fixed(cluster, what, self.workload("reader", **self.READERS["volume"])) == []

    def test_one_that_cannot_be_put_back_restarts_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise RefusedError(403, "forbidden")

        cluster = self.changed()
        monkeypatch.setattr(cluster, "replaced", refuse)
        assert self.fixed(cluster, declared(CONFIG), self.workload("reader", **self.READERS["volume"])) == []

    def test_a_restart_that_is_refused_is_said(self) -> None:
        cluster = self.changed()
        cluster.refuse_restart = RefusedError(403, "forbidden")
        done = self.fixed(cluster, declared(CONFIG), self.workload("reader", **self.READERS["volume"]))
        assert list(report.restarts(done)) == [
            "Deployment n/reader: not restarted, though it reads ConfigMap n/c, which was restored: forbidden"
        ]

    def test_the_mark_of_a_restart_is_no_drift_and_no_persons(self) -> None:
        what = self.workload("reader")
        tree = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, f"f:{RESTARTED_AT}": {}}}}}}
        mark = managed(CHECK, tree, operation="Update")
        live = lived(what.manifest, mark)
        live["spec"]["template"]["metadata"] = {"annotations": {RESTARTED_AT: NOON}}
        assert drifted(what, lived(live, managed(CHECK, {"f:spec": {"f:template": {}}}), mark), live) == []
        assert fields.last_person(live) is None


class TestValues:
    def shown(self, wanted: Any, lives: Any) -> list[str]:
        found = Difference(path=("data", "k"), declared=wanted, live=lives, writer=None)
        lines = list(findings([Finding(declared=declared(CONFIG), differences=(found,))], values=True))
        assert all(len(line) < 500 for line in lines)
        assert len(lines) < 50
        return lines[2:-1]

    def test_of_long_texts_the_lines_that_differ_are_shown(self) -> None:
        text = "".join(f"line {number}\n" for number in range(200))
        assert self.shown(text, text.replace("line 150\n", "line 150!\n")) == [
            "    declared (-), live (+)",
            "      @@ -149,5 +149,5 @@",
            "       line 148",
            "       line 149",
            "      -line 150",
            "      +line 150!",
            "       line 151",
            "       line 152",
        ]

    def test_a_text_of_which_little_is_left_is_cut(self) -> None:
        lines = self.shown("a\n" * 1000, "b\n" * 1000)
        assert lines[-1] == "      … (1962 more lines)"

    def test_an_end_of_line_is_a_difference(self) -> None:
        assert self.shown("a\nb\n", "a\nb")[-3:] == ["       a", "       b", "      -"]

    @pytest.mark.parametrize("long", ["x" * 900, "x\n" * 300 + "x" * 900])
    def test_long_lines_are_shown_from_where_they_differ(self, long: str) -> None:
        wanted, lives = self.shown(f"{long}declared{'y' * 900}", f"{long}hand-made{'y' * 900}")
        assert f"{'x' * 40}declared" in wanted
        assert f"{'x' * 40}hand-made" in lives
        assert wanted.endswith(" more characters)")

    def test_values_of_other_sorts_are_shown_from_where_they_differ(self) -> None:
        wanted, lives = self.shown([*range(500)], [*range(499), 0])
        assert wanted.endswith("498, 499]")
        assert lives.endswith("498, 0]")

    def test_short_values_are_whole(self) -> None:
        assert self.shown("a", ABSENT) == ['    declared  "a"', "    live      nothing"]

    def test_what_a_terminal_obeys_or_hides_is_spelt(self) -> None:
        assert self.shown("a\n", "a\n\x1b[2J\u202eb")[-2:] == ["      -", r"      +\x1b[2J\u202eb"]
        assert self.shown("a", "\x9b\u202e") == ['    declared  "a"', r'    live      "\x9b\u202e"']


class TestCommand:
    @pytest.fixture
    def run(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        def run(cluster: FakeCluster, *arguments: str, **workloads: Mapping[str, Any]) -> int:
            @contextmanager
            def fake(kubeconfig: Path | None, context: str | None) -> Iterator[FakeCluster]:
                yield cluster

            resources = [
                {
                    "urn": f"urn:{name}", "type": "kubernetes:some/v1:Kind", "custom": True, "id": f"n/{name}",
                    "inputs": manifest, "outputs": {"metadata": {"uid": UID}},
                }
                for name, manifest in {"c": CONFIG, **workloads}.items()
            ]  # fmt: skip
            monkeypatch.setattr(command, "export", lambda stack, root: read({"resources": resources}))
            monkeypatch.setattr(command, "connected", fake)
            return main(["drift", "--stack", "mysite", *arguments])

        return run

    def test_codes(self, run: Any) -> None:
        changed = {"c": lived({**CONFIG, "data": {"k": "w"}})}
        assert run(FakeCluster({"c": lived(CONFIG)})) == 0
        assert run(FakeCluster(changed)) == 1
        assert run(FakeCluster(changed), "--fix") == 0
        assert run(FakeCluster({}, refuse=RefusedError(403, "forbidden"))) == 2
        assert run(FakeCluster({})) == 2

    def test_a_restart_is_said_and_one_that_is_refused_is_trouble(
        self, run: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        reader = deployment(volumes=[{"name": "v", "configMap": {"name": "c"}}])
        reader["metadata"] = {"name": "reader", "namespace": "n"}
        changed = {"c": lived({**CONFIG, "data": {"k": "w"}}), "reader": lived(reader)}
        cluster = FakeCluster(changed)
        assert run(cluster, reader=reader) == 1
        assert cluster.restarted == []
        assert run(cluster, "--fix", reader=reader) == 0
        assert cluster.restarted == ["Deployment n/reader"]
        assert (
            "Deployment n/reader: restarted, as it reads ConfigMap n/c, which was restored" in capsys.readouterr().out
        )
        cluster.refuse_restart = RefusedError(403, "forbidden")
        assert run(cluster, "--fix", reader=reader) == 2

    def test_it_ends_with_how_many_are_as_declared(self, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
        run(FakeCluster({"c": lived({**CONFIG, "data": {"k": "w"}})}), "--fix")
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if " of 1 object" in line] == [
            "Not as declared: 1 of 1 object.",
            "As declared: all of 1 object.",
        ]

    def test_nothing_is_written_without_fix(self, run: Any) -> None:
        cluster = FakeCluster({"c": lived({**CONFIG, "data": {"k": "w"}})})
        run(cluster)
        assert cluster.written == []

    def test_values_are_left_out_on_demand(self, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
        cluster = FakeCluster({"c": lived({**CONFIG, "data": {"k": "hunter2"}})})
        run(cluster, "--no-values")
        assert "hunter2" not in capsys.readouterr().out
        run(cluster)
        assert "hunter2" in capsys.readouterr().out


class TestKubeconfig:
    def test_one_that_is_absent_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(ClusterError, match="--kubeconfig"), connected(tmp_path / "none", None):
            pass

    @pytest.mark.parametrize("text", ["", "[]", "{clusters: 3}", "{", "{contexts: [{name: 1}]}"])
    def test_one_that_is_none_is_said(self, text: str, tmp_path: Path) -> None:
        file = tmp_path / "kubeconfig"
        file.write_text(text)
        with pytest.raises(ClusterError, match="the kubeconfig cannot be used"), connected(file, None):
            pass

    def test_a_server_that_is_away_is_said(self, tmp_path: Path) -> None:
        file = kubeconfig_of("http://127.0.0.1:9", tmp_path)
        with pytest.raises(ClusterError, match=r"http://127.0.0.1:9 does not answer \("), connected(file, None):
            pass
