"""OpenShift AI's operators on target `openshift`: what OLM is asked for, and what that asks of the settings.

Seed: MLBatch's guides for OpenShift AI (`setup.RHOAI-v2.16` to `setup.RHOAI-v2.21` of project-codeflare/mlbatch, the
ways that `setup.k8s/CLUSTER-SETUP.md` names for OpenShift; called the guide below).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
import yaml

from components import catalogue
from components.artifacts import Mirror
from components.kubernetes.in_cluster import Api, Json
from components.olm import installer
from components.tenancy import train_job_room
from components.tenancy.promises import Promise
from stacks.deploy import deploy
from tests.unit.harness import Record, build
from tests.unit.releases import FOLDER
from tests.unit.test_openshift import loaded, refused, registered, shipped

VERSIONS = [release.version for release in catalogue.OPENSHIFT_AI]
DEFINED = yaml.safe_load((FOLDER / "openshift-ai.yaml").read_text())
OPERATOR, APPLICATIONS = "redhat-ods-operator", "redhat-ods-applications"


def chosen(sections: Mapping[str, Any] = {}, **values: Any) -> dict[str, Any]:
    """Return the example with OpenShift AI's operators."""
    raw = {name: value for name, value in shipped().items() if name not in ("queueing", "openshift")}
    return {**raw, "openshift": {"operators": "openshift-ai", **values}, **sections}


def with_version(version: str, kubeconfig: Path, **sections: Any) -> Record:
    return registered(loaded(chosen(sections, version=version), Mirror(artifacts=str(FOLDER)), kubeconfig))


@pytest.fixture(scope="module")
def record(same_kubeconfig: Path) -> Record:
    return with_version("2.16", same_kubeconfig)


@pytest.fixture(scope="module", params=VERSIONS)
def release(request: pytest.FixtureRequest) -> catalogue.OpenShiftAi:
    return catalogue.entry(catalogue.OPENSHIFT_AI, version=request.param)


@pytest.fixture(scope="module")
def versioned(release: catalogue.OpenShiftAi, same_kubeconfig: Path) -> Record:
    return with_version(release.version, same_kubeconfig)


def unknown(spec: Mapping[str, Any], fields: Mapping[str, Any], path: str = "spec") -> Iterator[str]:
    """Yield the fields of an object that its definition does not have."""
    for name, value in spec.items():
        if name not in fields:
            yield f"{path}.{name}"
        elif isinstance(value, dict) and fields[name] is not None:
            yield from unknown(value, fields[name], f"{path}.{name}")


def file_of(record: Record, config_map: str, key: str, namespace: str = OPERATOR) -> Any:
    return yaml.safe_load(record.one("ConfigMap", config_map, namespace).inputs["data"][key])


class TestDefinitions:
    def test_no_field_is_unknown_to_the_versions_definitions(
        self, versioned: Record, release: catalogue.OpenShiftAi
    ) -> None:
        for kind, digest in (
            ("DataScienceCluster", release.cluster_digest),
            ("DSCInitialization", release.initialization_digest),
        ):
            (made,) = versioned.of(kind)
            assert list(unknown(made.inputs["spec"], DEFINED[digest])) == [], kind

    def test_a_field_that_another_version_has_is_found(self) -> None:
        older, newer = (catalogue.entry(catalogue.OPENSHIFT_AI, version=version) for version in ("2.16", "2.25"))
        spec = {"components": {"feastoperator": {"managementState": "Removed"}}}
        assert list(unknown(spec, DEFINED[newer.cluster_digest])) == []
        assert list(unknown(spec, DEFINED[older.cluster_digest])) == ["spec.components.feastoperator"]


class TestSubscription:
    """The guide, `mlbatch-subscription.yaml`."""

    def test_another_configuration_starts_the_operator_anew(self, record: Record, kubeconfig: Path) -> None:
        other = with_version("2.16", kubeconfig, recovery={"startTimeoutMinutes": 50})
        before, after = (
            each.one("Subscription", "rhods-operator").inputs["spec"]["config"]["env"][1]["value"]
            for each in (record, other)
        )
        assert before != after

    def test_what_it_mounts_is_there_before(self, record: Record) -> None:
        before = record.closure(record.one("Subscription", "rhods-operator"))
        for name in ("mlbatch-codeflare", "mlbatch-kuberay", "mlbatch-kueue", "mlbatch-training-operator"):
            assert record.one("ConfigMap", name, OPERATOR).urn in before, name
        assert record.one("OperatorGroup", "rhods-operator", OPERATOR).urn in before
        assert record.one("ConfigMap", "codeflare-operator-config", APPLICATIONS).urn in before


class TestConfiguration:
    def test_gangs_go_nowhere_else_without_the_second_scheduler(self, kubeconfig: Path) -> None:
        none = with_version("2.16", kubeconfig, scheduling={"packing": "none"})
        container = file_of(none, "mlbatch-training-operator", "manager_config_patch.yaml")["spec"]["template"]["spec"][
            "containers"
        ][0]
        assert container["args"] == ["--zap-log-level=2"]

    def test_webhooks_can_be_opened_to_all_as_in_the_guide(self, mirror: Mirror, kubeconfig: Path) -> None:
        record = registered(loaded(chosen(version="2.25", openToAll=True), mirror, kubeconfig))
        policy = record.one("NetworkPolicy", "mlbatch-ods-applications", APPLICATIONS)
        assert "from" not in policy.inputs["spec"]["ingress"][0]


class TestOrder:
    def test_queues_wait_for_all_operators(self, record: Record) -> None:
        before = record.closure(record.one("ClusterQueue", "blue-cluster-queue"))
        order = [record.one("Subscription", "rhods-operator"), *record.of("DSCInitialization")]
        order += record.of("DataScienceCluster")
        approve, start = (job(record, step) for step in ("approve", "start-kueue"))
        assert {each.urn for each in (*order, approve, start)} <= set(before)
        assert approve.urn in record.closure(order[1])
        assert order[2].urn in record.closure(start)

    def test_teams_borrow_as_an_older_kueue_needs(self, mirror: Mirror, kubeconfig: Path) -> None:
        stack = loaded(chosen(version="2.16"), mirror, kubeconfig)
        assert stack.resolved.divisions[0].borrowing_limits["blue"]["cpu"].nano > 0
        assert "cpu" not in loaded(shipped(), mirror, kubeconfig).resolved.divisions[0].borrowing_limits["blue"]


def job(record: Record, step: str) -> Any:
    (found,) = [each for each in record.of("Job") if each.object_name.startswith(f"mlbatch-{step}-")]
    return found


def test_the_stacks_outputs_say_what_olm_leaves(mirror: Mirror, kubeconfig: Path) -> None:
    """`pulumi destroy` prints them as they go."""

    def left(raw: Mapping[str, Any], **cluster: Any) -> list[str]:
        found: dict[str, Any] = {}
        stack = loaded(raw, mirror, kubeconfig, **cluster)
        build(lambda: found.update(deploy(stack)), outputs=lambda kind, name, given: {"result": "made-up"})
        return list(found.get("leftByOlm", ()))

    operators = left(chosen())
    assert operators == [
        "oc get crd -o name | grep -e opendatahub -e kueue -e ray.io -e kubeflow -e codeflare",
        "oc get operators.operators.coreos.com rhods-operator.redhat-ods-operator",
        "oc get namespace redhat-ods-monitoring",
    ]
    pool = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "gpusPerNode": 8, "cpu": 224, "memory": "1900Gi"}
    both = left(chosen({"gpu": {"operator": True}, "cluster": {"pool": pool}}))
    assert both == [
        *operators,
        "oc get crd -o name | grep -e clusterpolicies.nvidia -e nvidiadrivers.nvidia -e gpuclusters.nvidia",
        "oc get operators.operators.coreos.com gpu-operator-certified.nvidia-gpu-operator",
    ]
    assert left(shipped()) == []
    of_others = {"certificates.cert-manager.io": "the Helm release cert-manager/cert-manager"}
    assert "cert-manager" in str(left(chosen(version="3.4")))
    assert "cert-manager" not in str(left(chosen(version="3.4"), definitions=of_others))


class FakeApi(Api):
    """An API server with some objects that records changes."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        nothing: dict[str, Any] = {each: {"items": []} for each in (VERSIONS, PLAN, f"{OLM}/subscriptions")}
        self.objects, self.changed = nothing | dict(objects), list[tuple[str, Any]]()

    def get(self, path: str, **query: str) -> Json:
        if path not in self.objects:
            raise HTTPError(path, 404, "not found", Message(), None)
        found: Json = self.objects[path]
        return found

    def patch(self, path: str, body: Json, **query: str) -> Json:
        self.changed.append((path, body))
        return {}

    def delete(self, path: str) -> Json:
        self.changed.append((path, None))
        return {}


OLM = f"/apis/operators.coreos.com/v1alpha1/namespaces/{OPERATOR}"
PLAN = f"{OLM}/installplans"
VERSIONS = f"{OLM}/clusterserviceversions"
CSV = "rhods-operator.2.16.0"
APPROVE = {"namespace": OPERATOR, "csv": CSV, "approve": True}
INSTALLED = {"type": "Installed", "status": "True", "message": "made"}
SILENT = {"type": "Installed", "status": "False"}
LOOKING = {"type": "Installed", "status": "Unknown", "message": "looking"}
KEPT = {"type": "Installed", "status": "False", "message": "no operator group found"}


def plan(name: str, *versions: str, approved: bool = False) -> dict[str, Any]:
    """Return a plan as OLM has made it; one that is approved is begun."""
    spec = {"clusterServiceVersionNames": list(versions), "approved": approved}
    return {"metadata": {"name": name}, "spec": spec, "status": {} if approved else {"phase": "RequiresApproval"}}


class TestApproval:
    def test_the_plan_of_the_version_alone_is_approved(self) -> None:
        plans = [plan("install-later", "rhods-operator.2.19.0"), plan("install-kmh8w", CSV)]
        api = FakeApi({PLAN: {"items": plans}})
        assert installer.approve(api, APPROVE) == "InstallPlan install-kmh8w has just been approved"
        assert api.changed == [(f"{PLAN}/install-kmh8w", {"spec": {"approved": True}})]

    def test_a_plan_that_olm_has_given_up_is_not_waited_for(self) -> None:
        """It makes another one where somebody approved the first before its status was written."""
        given_up = plan("install-7q68f", CSV, approved=True)
        new = {**plan("install-fh2r9", CSV), "status": {}}
        api = FakeApi({PLAN: {"items": [given_up, new]}})
        assert installer.approve(api, APPROVE) == "InstallPlan install-fh2r9 is not begun"
        assert api.changed == []
        new["status"] = {"phase": "RequiresApproval"}
        assert installer.approve(api, APPROVE) == "InstallPlan install-fh2r9 has just been approved"
        assert api.changed == [(f"{PLAN}/install-fh2r9", {"spec": {"approved": True}})]

    @pytest.mark.parametrize(
        ("status", "said"),
        [
            (None, "not begun"),
            ({"phase": "Installing", "conditions": [INSTALLED, SILENT, LOOKING]}, "Installing; looking"),
            ({"phase": "Installing", "conditions": [KEPT]}, "Installing; no operator group found"),
        ],
    )
    def test_the_state_of_an_approved_plan_is_reported(self, status: Any, said: str) -> None:
        plans = {PLAN: {"items": [{**plan("install-kmh8w", CSV, approved=True), "status": status}]}}
        assert installer.approve(FakeApi(plans), APPROVE) == f"InstallPlan install-kmh8w is {said}"

    @pytest.mark.parametrize(
        ("proposed", "failure", "said"),
        [
            ((), {"reason": "ErrorPreventedResolution"}, "ResolutionFailed: ErrorPreventedResolution"),
            (
                ("rhods-operator.2.19.0",),
                {"message": "no operators found in channel fats"},
                "OLM proposes rhods-operator.2.19.0; ResolutionFailed: no operators found in channel fats",
            ),
        ],
    )
    def test_the_reason_for_a_missing_plan_is_reported(
        self, proposed: Sequence[str], failure: dict[str, str], said: str
    ) -> None:
        conditions = [
            {"type": "InstallPlanPending", "status": "True", "message": "waits"},
            {"type": "CatalogSourcesUnhealthy", "status": "False", "message": "all are healthy"},
            {"type": "ResolutionFailed", "status": "True", **failure},
        ]
        items = {
            PLAN: {"items": [plan("install-later", version) for version in proposed]},
            f"{OLM}/subscriptions": {"items": [{"status": {"conditions": conditions}}, {}, {"status": {}}]},
        }
        assert installer.approve(FakeApi(items), APPROVE) == f"OLM has no InstallPlan for {CSV}; {said}"

    def test_a_version_that_another_one_replaced_is_not_only_reported_as_complete(self) -> None:
        done = {**plan("install-kmh8w", CSV, approved=True), "status": {"phase": "Complete"}}
        items = {
            PLAN: {"items": [done]},
            f"{OLM}/subscriptions": {"items": [{"status": {"installedCSV": "rhods-operator.2.19.0"}}]},
        }
        said = "InstallPlan install-kmh8w is Complete; OLM has installed rhods-operator.2.19.0"
        assert installer.approve(FakeApi(items), APPROVE) == said

    def test_an_api_server_that_refuses_is_no_missing_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: FakeApi, path: str, **query: str) -> Json:
            raise HTTPError(path, 403, "Forbidden", Message(), None)

        monkeypatch.setattr(FakeApi, "get", refuse)
        with pytest.raises(HTTPError, match="Forbidden"):
            installer.approve(FakeApi({}), APPROVE)

    def test_somebody_else_is_told_how(self) -> None:
        api = FakeApi({PLAN: {"items": [plan("install-kmh8w", CSV)]}})
        said = installer.approve(api, {**APPROVE, "approve": False})
        assert "oc patch installplan install-kmh8w -n redhat-ods-operator" in said
        assert api.changed == []

    @pytest.mark.parametrize(
        ("status", "said"),
        [
            ({"phase": "Succeeded"}, ""),
            ({"phase": "Failed", "message": "no service account"}, f"{CSV} is Failed: no service account"),
            ({}, f"{CSV} is new"),
        ],
    )
    def test_it_is_done_when_the_version_has_succeeded(self, status: dict[str, str], said: str) -> None:
        api = FakeApi({f"{OLM}/clusterserviceversions/{CSV}": {"status": status}})
        assert installer.approve(api, APPROVE) == said

    @pytest.mark.parametrize(
        ("name", "phase", "said"),
        [
            ("rhods-operator.2.16.10", "Succeeded", ""),
            ("rhods-operator.2.16.10", "Installing", "rhods-operator.2.16.10 is Installing"),
            ("rhods-operator.2.160.1", "Succeeded", f"OLM has no InstallPlan for {CSV}"),
            ("rhods-operator.2.17.1", "Succeeded", f"OLM has no InstallPlan for {CSV}"),
            ("another-operator.2.16.10", "Succeeded", f"OLM has no InstallPlan for {CSV}"),
        ],
    )
    def test_a_later_patch_that_an_administrator_approved_is_accepted(self, name: str, phase: str, said: str) -> None:
        earlier = {"metadata": {"name": "rhods-operator.2.15.9"}, "status": {"phase": "Replacing"}}
        api = FakeApi({VERSIONS: {"items": [earlier, {"metadata": {"name": name}, "status": {"phase": phase}}]}})
        assert installer.approve(api, APPROVE) == said

    def test_an_operator_runs_with_its_settings_and_what_it_made_without_them_goes(self, record: Record) -> None:
        unwanted = "/apis/dscinitialization.opendatahub.io/v1/dscinitializations/default-dsci"
        deployment: dict[str, Any] = {
            "metadata": {"generation": 1},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "manager"}]}}},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        }
        install = {"spec": {"deployments": [{"name": "rhods-operator"}]}}
        version = {"spec": {"install": install}, "status": {"phase": "Succeeded"}}
        api = FakeApi({f"{OLM}/clusterserviceversions/{CSV}": version})
        (files,) = (each for each in record.of("ConfigMap") if each.object_name.startswith("mlbatch-approve-"))
        step = json.loads(files.inputs["data"]["settings.json"])
        assert (step["environment"], step["unwanted"]) == (["DISABLE_DSC_CONFIG"], unwanted)
        waits = "rhods-operator does not run with the Subscription's settings yet"
        assert installer.approve(api, step) == waits
        api.objects[f"/apis/apps/v1/namespaces/{OPERATOR}/deployments/rhods-operator"] = deployment
        api.objects[unwanted] = {}
        assert installer.approve(api, step) == waits
        deployment["metadata"]["generation"] = 2
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "DISABLE_DSC_CONFIG"}]
        assert installer.approve(api, step) == waits, "an old pod is there yet"
        deployment["status"] |= {"observedGeneration": 2, "replicas": 2}
        assert installer.approve(api, step) == waits, "beside the new one"
        assert api.changed == []
        deployment["status"]["replicas"] = 1
        assert "default-dsci, which the operator made before" in installer.approve(api, step)
        assert api.changed == [(unwanted, None)]
        del api.objects[unwanted]
        assert installer.approve(api, step) == ""


PODS = f"/api/v1/namespaces/{APPLICATIONS}/pods"
START = {"namespace": APPLICATIONS, "definitions": ["rayclusters.ray.io"], "selector": "app.opendatahub.io/kueue"}


class TestKueuesStart:
    """Seed 003, 10.2: there somebody deletes Kueue's pod where Ray clusters tolerate no taint."""

    @staticmethod
    def api(created: str, defined: str | None = "2026-01-01T00:00:10Z") -> FakeApi:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        pod = {"metadata": {"name": "kueue-1", "creationTimestamp": created}, "status": ready}
        definition = {"metadata": {"creationTimestamp": defined}}
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayclusters.ray.io"
        return FakeApi({PODS: {"items": [pod]}, **({path: definition} if defined else {})})

    def test_a_pod_that_is_older_than_a_definition_goes(self) -> None:
        api = self.api("2026-01-01T00:00:10Z")
        said = installer.start_kueue(api, START)
        assert said == "kueue-1 started before rayclusters.ray.io was defined"
        assert api.changed == [(f"{PODS}/kueue-1", None)]

    def test_a_younger_one_stays(self) -> None:
        api = self.api("2026-01-01T00:00:11Z")
        assert installer.start_kueue(api, START) == ""
        assert api.changed == []

    def test_nothing_goes_before_everything_is_defined(self) -> None:
        api = self.api("2026-01-01T00:00:10Z", None)
        assert installer.start_kueue(api, START) == "rayclusters.ray.io is not defined"
        assert api.changed == []

    def test_a_try_ends_with_what_it_waits_for(self) -> None:
        settings = {**START, "step": "start-kueue", "seconds": 0}
        assert installer.run(self.api("", None), settings, pause=0) == "rayclusters.ray.io is not defined"

    @pytest.mark.parametrize("status", [None, {}, {"conditions": [{"type": "Ready", "status": "False"}]}])
    def test_a_younger_one_has_to_be_ready(self, status: dict[str, Any] | None) -> None:
        api = self.api("2026-01-01T00:00:11Z")
        api.objects[PODS]["items"][0]["status"] = status
        assert installer.start_kueue(api, START) == "no pod of Kueue is ready"

    def test_of_several_definitions_the_last_one_counts(self) -> None:
        api = self.api("2026-01-01T00:00:11Z")
        definition = {"metadata": {"creationTimestamp": "2026-01-01T00:00:11Z"}}
        api.objects["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs"] = definition
        settings = {**START, "definitions": ["rayclusters.ray.io", "pytorchjobs"]}
        assert installer.start_kueue(api, settings) == "kueue-1 started before pytorchjobs was defined"


class TestATry:
    """Of the program that both steps are taken by."""

    @staticmethod
    def ran(
        monkeypatch: pytest.MonkeyPatch, answers: list[str | Exception], seconds: float = 10
    ) -> tuple[str, list[float]]:
        """Return what is waited for in the end, and the pauses, where each look takes no time."""
        now, pauses, left = [100.0], list[float](), list(answers)

        def sleep(pause: float) -> None:
            pauses.append(pause)
            now[0] += pause

        def look(api: Api, settings: Mapping[str, Any]) -> str:
            assert settings["namespace"] == OPERATOR
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(installer, "STEPS", {"approve": look})
        monkeypatch.setattr(installer.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(installer.time, "sleep", sleep)
        return installer.run(FakeApi({}), {**APPROVE, "step": "approve", "seconds": seconds}), pauses

    def test_it_looks_every_two_seconds_and_says_what_changes_once(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        refused = HTTPError("/", 503, "Service Unavailable", Message(), None)
        answers: list[str | Exception] = ["a plan", "a plan", refused, URLError("no route"), TimeoutError("slow"), ""]
        assert self.ran(monkeypatch, answers) == ("", [2] * 5)
        assert capsys.readouterr().out.splitlines() == [
            "a plan",
            "the API server does not answer: HTTP Error 503: Service Unavailable",
            "the API server does not answer: <urlopen error no route>",
            "the API server does not answer: slow",
        ]

    def test_it_gives_up_once_its_time_is_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.ran(monkeypatch, ["a plan"], seconds=10) == ("a plan", [2] * 6)

    @pytest.mark.parametrize(("waiting", "code", "said"), [("", 0, "done\n"), ("a plan", 1, "a plan\n")])
    def test_its_job_tries_again_until_nothing_is_waited_for(
        self,
        waiting: str,
        code: int,
        said: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        (tmp_path / "settings.json").write_text('{"step": "approve"}')
        given: list[Any] = []
        monkeypatch.setattr(installer.sys, "argv", ["installer", str(tmp_path / "settings.json")])
        monkeypatch.setattr(Api, "in_cluster", lambda: None)
        monkeypatch.setattr(installer, "run", lambda api, settings: given.append(settings) or waiting)
        assert installer.main() == code
        assert given == [{"step": "approve"}]
        assert capsys.readouterr().out == said


class TestMistakes:
    def test_nothing_is_promised_of_operators_that_are_not_the_platforms(
        self, mirror: Mirror, kubeconfig: Path
    ) -> None:
        """They act in all projects, with roles from OLM. A policy for the platform's accounts has no effect."""
        record = registered(loaded(chosen(version="2.25"), mirror, kubeconfig))
        of_operators = ["appwrapper-scope", "kueue-scope", "job-operator-scope"]
        made = {item.object_name for item in record.of("ValidatingAdmissionPolicy")}
        assert made == {
            "mlbatch-requested-projects",
            *(promise.policy for promise in Promise if str(promise) not in of_operators),
            *(policy.name for policy in train_job_room.policies()),
        }
        blue = record.one("Namespace", "blue").inputs["metadata"]
        assert blue["annotations"] == {"mlbatch/unenforced": ", ".join(of_operators)}

    @pytest.mark.parametrize("version", ["4.21.0-rc.1", "4.21.0-okd-scos.3", "4.21.0-0.nightly-2026-01-02-030405"])
    def test_an_openshift_that_is_no_release_is_judged_by_its_minor_version(
        self, version: str, mirror: Mirror, kubeconfig: Path
    ) -> None:
        assert loaded(chosen({"gpu": {"operator": True}}), mirror, kubeconfig, openshift=version)
        text = refused(chosen(), mirror, kubeconfig, openshift=version.replace("4.21", "4.23"), version="1.35")
        assert "this cluster has OpenShift 4.23.0-" in text
