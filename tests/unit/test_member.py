"""The commands of team members, against the recorded answers of an API server."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from ask.manifest import ManifestError, read_objects
from cli import member as command
from cli.app import main
from components import names
from components.scheduling import pod_group
from components.scheduling.priorities import PRIORITIES
from components.tenancy import user_queues
from components.workloads.indexed_job import headless_service
from components.workloads.submission import WARM_UP
from member import following, manifests, training
from member.session import MemberError, Session, connect
from member.state import find, listed, report
from member.training import Training
from runner.report import namespace
from tests.local.environment import gang
from tests.unit.servers import Handler, kubeconfig_of, serving
from tests.unit.tables import table

ROOT = Path(__file__).parents[2]
REPORTS = table("member", "reports")
WRAPPERS = "/apis/workload.codeflare.dev/v1beta2/namespaces/blue/appwrappers"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/blue/workloads"
PENDING = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/blue/localqueues/default-queue/pendingworkloads"
PODS = "/api/v1/namespaces/blue/pods"
EVENTS = "/api/v1/namespaces/blue/events"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1"


class Api:
    """An API server that answers paths. An exception is raised, a function is called for each request."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.requests.append((method, path, options))
        answer = self.answers.get(path, ApiException(status=404))
        found = answer(method, options) if callable(answer) else answer
        if isinstance(found, Exception):
            raise found
        return found if options.get("serialize") is False else options["serializer"](None, found)


def session(answers: Mapping[str, Any]) -> Session:
    client: Any = Api(answers)
    return Session(client, "blue")


def refusal(status: int, text: str) -> ApiException:
    error = ApiException(status=status)
    error.body = json.dumps({"message": text})
    return error


def cluster(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers about one job with two pods, of a case in the table."""
    named = [{"type": kind, "status": status, "message": said} for kind, status, said in case.get("conditions") or ()]
    conditions = [{**each, "lastTransitionTime": "T", "reason": "R"} for each in named]
    more = case.get("workload", {})
    job = {"metadata": {"name": "job", "uid": "1", "creationTimestamp": "T"}, "status": case.get("status", {})}
    pod = {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}
    workload = {
        "metadata": {"name": "appwrapper-job", "labels": {"kueue.x-k8s.io/job-uid": "1"}},
        "spec": {
            "queueName": "default-queue",
            "podSets": [{"count": 2, "template": {"spec": pod}}],
            **(more or {}).get("spec", {}),
        },
        "status": {"conditions": conditions, **(more or {}).get("status", {})},
    }
    pods = case.get("pods") or {"count": 0}
    return {
        WRAPPERS: {"items": [job]},
        WORKLOADS: {"items": [] if more is None else [workload]},
        PODS: {
            "items": [
                {
                    "metadata": {"name": f"job-{index}", "uid": str(index)},
                    "spec": {"nodeName": pods.get("node"), **pod},
                    "status": pods["status"],
                }
                for index in range(pods["count"])
            ]
        },
        EVENTS: {
            "items": [
                {"involvedObject": {"name": name}, "reason": reason, "message": said}
                for name, reason, said in case.get("events") or ()
            ]
        },
        PENDING: {
            "items": [
                {"metadata": {"name": name, "ownerReferences": [{"name": owner}]}, "positionInClusterQueue": place}
                for name, owner, place in case.get("pending") or ()
            ]
        },
    }


@pytest.mark.parametrize("name", REPORTS)
def test_a_job_is_explained(name: str) -> None:
    case = REPORTS[name]
    team = session(cluster(case))
    found = report(team, find(team, "job"))
    assert str(found.state) == case["state"]
    told = dict(found.facts)
    assert {key: told.get(key) for key in case["facts"]} == case["facts"]
    if "because" in case["facts"] or not case["facts"]:
        assert set(told) <= set(case["facts"]) | {"to do"}


def test_jobs_are_listed_with_their_place() -> None:
    case = REPORTS["waits for quota behind another job"]
    assert listed(session(cluster(case))) == [("job", "pending", "16", "3", "8 nvidia.com/gpu more")]


def test_gpus_are_amounts_as_kubernetes_writes_them() -> None:
    answers = cluster({**REPORTS["runs"], "workload": None})
    container = {"resources": {"requests": {"nvidia.com/gpu": "1k"}}}
    workload = cluster(REPORTS["runs"])[WORKLOADS]["items"][0]
    workload["spec"]["podSets"] = [{"count": 2, "template": {"spec": {"containers": [container]}}}]
    assert listed(session({**answers, WORKLOADS: {"items": [workload]}}))[0][2] == "2000"


def test_a_job_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(MemberError, match="team blue has no job job"):
        find(session({}), "job")


def test_without_the_order_of_jobs_the_rest_is_told() -> None:
    case = REPORTS["waits for quota behind another job"]
    team = session({**cluster(case), PENDING: refusal(403, "forbidden")})
    facts = report(team, find(team, "job")).facts
    assert "position" not in facts
    assert facts["waits for"] == "8 nvidia.com/gpu more"


def read(*documents: Any, **options: Any) -> dict[str, Any]:
    given = {"pod_groups": False, **options}
    objects = read_objects(yaml.safe_dump_all(documents))
    return manifests.job_of(objects, "blue", "user-alice", **given).document


JOB = gang("train", "blue", pods=2, gpus=8)["spec"]["components"][0]["template"]
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {}}


def test_a_file_becomes_one_appwrapper_in_the_users_queue() -> None:
    wrapper = read(CONFIG, JOB)
    assert (wrapper["kind"], wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]) == (
        "AppWrapper",
        "train",
        "blue",
    )
    assert wrapper["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-alice"}
    assert wrapper["metadata"]["annotations"] == WARM_UP
    assert [part["template"] for part in wrapper["spec"]["components"]] == [CONFIG, JOB]


def test_the_queue_of_a_job_moves_to_its_appwrapper() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "own", "app": "x"}
    wrapper = read({**JOB, "metadata": {**JOB["metadata"], "labels": labels}})
    assert wrapper["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "own"}
    assert wrapper["spec"]["components"][0]["template"]["metadata"]["labels"] == {"app": "x"}


def test_labels_of_kueue_move_to_the_appwrapper() -> None:
    labels = {"kueue.x-k8s.io/priority-class": "high", "kueue.x-k8s.io/max-exec-time-seconds": "60"}
    wrapper = read({**JOB, "metadata": {**JOB["metadata"], "labels": labels}})
    assert wrapper["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-alice", **labels}
    assert wrapper["spec"]["components"][0]["template"]["metadata"]["labels"] == {}


def test_an_appwrapper_stays_as_it_is() -> None:
    own = gang("train", "blue", pods=2, gpus=8, labels={"kueue.x-k8s.io/queue-name": "own"})
    assert read(own, pod_groups=True) == own


def test_pods_of_a_job_get_a_pod_group_where_the_cluster_has_them() -> None:
    group, job = (part["template"] for part in read(JOB, pod_groups=True)["spec"]["components"])
    assert group == pod_group.pod_group("train", 2)
    assert job == pod_group.in_group("train", JOB)
    assert len(read(pod_group.pod_group("own", 2), JOB, pod_groups=True)["spec"]["components"]) == 2


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 4}, 2),
        ({"parallelism": None, "completions": 4}, 1),
        ({"parallelism": 2, "completions": None}, 2),
    ],
)
def test_a_pod_group_waits_for_no_more_pods_than_run_together(spec: dict[str, Any], pods: int) -> None:
    job = {**JOB, "spec": {**JOB["spec"], **spec}}
    group = read(job, pod_groups=True)["spec"]["components"][0]["template"]
    assert (group["kind"], group["spec"]["minMember"]) == ("PodGroup", pods)


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}, JOB], "create it with kubectl before"),
        ([CONFIG], "the file has no job (ConfigMap): use AppWrapper, TrainJob, Job, "),
        ([], "the file has no job (nothing)"),
        ([{**JOB, "apiVersion": "ray.io/v1", "kind": "RayJob"}], "use a RayCluster (docs/members.md)"),
        ([gang("a", "blue", pods=1, gpus=1), CONFIG], "other objects beside the AppWrapper"),
        ([{**JOB, "metadata": {"name": "train", "namespace": "red"}}], "for namespace red, and --team names blue"),
        ([{**JOB, "metadata": {}}], "no metadata.name"),
        ([{**JOB, "metadata": "train"}], "no metadata.name"),
    ],
)
def test_a_file_without_a_job_is_an_error(documents: list[Any], said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(*documents)
    assert said in str(caught.value)


def test_words_of_a_command_stay_texts() -> None:
    words = ["python", "train.py", "--lr", "1e-4", "y", "n", "1e3"]
    job = manifests.job_of(list(trained(command=words, name="n")), "blue", "q", pod_groups=False)
    (_, made) = (part["template"] for part in job.document["spec"]["components"])
    assert (job.name, made["spec"]["template"]["spec"]["containers"][0]["command"]) == ("n", words)


def trained(**options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    service, job = training.objects(Training(**{"image": "i", "command": ["t"], "gpus": 16, "name": "train"} | options))
    return service, job


def test_a_command_on_two_nodes_finds_its_other_pods() -> None:
    service, job = trained(
        variables={"LR": "1"}, volumes=[("data", "/data"), ("data", "/copy"), ("old.data", "/old")], priority="low"
    )
    assert service["spec"] == {
        **headless_service("train")["spec"],
        "selector": {"batch.kubernetes.io/job-name": "train"},
    }
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["completionMode"]) == (2, 2, "Indexed")
    pod = job["spec"]["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert pod["priorityClassName"] in PRIORITIES
    (container,) = pod["containers"]
    values = {each["name"]: each.get("value") for each in container["env"]}
    assert values["MASTER_ADDR"] == values["PET_MASTER_ADDR"] == f"train-0.{service['metadata']['name']}"
    assert (values["PET_NNODES"], values["PET_NPROC_PER_NODE"], values["WORLD_SIZE"]) == ("2", "8", "2")
    assert (values["LR"], values["PET_NODE_RANK"]) == ("1", None)
    assert container["resources"]["requests"] == {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}
    assert container["resources"]["limits"] == {"memory": "512Gi", "nvidia.com/gpu": "8"}
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/dev/shm", "/data", "/copy", "/old"}
    claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each]
    assert claims == ["data", "old.data"], "a pod that mounts a claim as two volumes may not start"


@pytest.mark.parametrize(("gpus", "pods", "each"), [(0, 1, None), (1, 1, "1"), (8, 1, "8"), (24, 3, "8")])
def test_gpus_make_pods(gpus: int, pods: int, each: str | None) -> None:
    _, job = trained(gpus=gpus)
    assert job["spec"]["parallelism"] == pods
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits.get("nvidia.com/gpu") == each


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpus": 12}, "12 GPUs do not divide into pods of 8"),
        ({"name": "x" * 51}, "write at most 50 lower-case letters"),
        ({"name": "my_run"}, "--name 'my_run': write"),
        ({"name": "1run"}, "with a letter first"),
        ({"cpus": "two"}, "--cpus 'two': this is not a Kubernetes quantity"),
        ({"memory": "64GB"}, "--memory '64GB': this is not a Kubernetes quantity"),
        ({"memory": "64"}, "--memory 64 is less than 1 MiB: add a unit"),
    ],
)
def test_a_command_that_makes_no_job_is_an_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        trained(**options)


def test_each_run_has_its_own_name() -> None:
    names = {trained(name=None)[1]["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2


def test_a_user_of_a_team_with_user_queues_gets_the_own_one() -> None:
    users = ["bob", "ada@example.org"]
    namespace = {"metadata": {"annotations": {names.USER_QUEUES: user_queues.annotation(users)}}}
    review = {"status": {"userInfo": {"username": "ada@example.org"}}}
    answers = {"/api/v1/namespaces/blue": namespace, "/apis/authentication.k8s.io/v1/selfsubjectreviews": review}
    team = session(answers)
    assert team.queue() == user_queues.queue_name("ada@example.org")
    api: Any = team.client
    assert api.requests[-1][2]["body"] == {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert session({"/api/v1/namespaces/blue": {"metadata": {}}}).queue() == "default-queue"
    namespace["metadata"]["annotations"][names.USER_QUEUES] += "\nedited by hand"
    assert session(answers).queue() == user_queues.queue_name("ada@example.org")


@pytest.fixture
def mlbatch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, Any]], Api]:
    """Return a function that has the commands use an API server."""

    def use(answers: Mapping[str, Any]) -> Api:
        found = session(answers)
        monkeypatch.setattr(command, "connect", lambda *_: found)
        monkeypatch.setattr(command, "DECISION", 0.0)
        monkeypatch.setattr(following, "EVERY", 0.0)
        api: Any = found.client
        return api

    return use


def output(*lines: str, broken: int | None = None) -> Callable[[str, dict[str, Any]], Any]:
    """Return a kubelet's answers: a line for each second, from `sinceTime` on. broken: lines before an error."""

    def answer(_: str, options: dict[str, Any]) -> Any:
        query = dict(options["query_params"])
        stamped = [(f"2026-01-01T00:00:{number:02}.5Z", line) for number, line in enumerate(lines)]
        later = [each for each in stamped if each[0][:19] >= query.get("sinceTime", "")[:19]]
        for number, (time, line) in enumerate(later):
            if number == broken and "sinceTime" not in query:
                raise ProtocolError("Connection broken")
            yield f"{time} {line}\n".encode() if "timestamps" in query else f"{line}\n".encode()

    return answer


RUN = ["run", "--gpus", "16", "--image", "i", "--name", "job", "--env", "A=b=c", "--volume", "d:/d", "--", "t", "-x"]


def test_a_job_is_checked_before_it_is_submitted(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    sent = mlbatch({**cluster(REPORTS["runs"]), GROUPS: {"resources": [{"name": "podgroups"}]}})
    assert main(RUN) == 0
    posts = [options for method, path, options in sent.requests if (method, path) == ("post", WRAPPERS)]
    assert [dict(each["query_params"]).get("dryRun") for each in posts] == ["All", None]
    assert all(("fieldValidation", "Strict") in each["query_params"] for each in posts)
    kinds = [part["template"]["kind"] for part in posts[1]["body"]["spec"]["components"]]
    assert kinds == ["Service", "PodGroup", "Job"]
    shown = capsys.readouterr().out
    assert shown.startswith("submitted blue/job to default-queue\nblue/job: running\n")
    assert "mlbatch logs job --follow" in shown


TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/blue/trainjobs"
CONFIG_MAPS = "/api/v1/namespaces/blue/configmaps"


def made(_: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return what the API server answers to a creation."""
    return {**options["body"], "metadata": {**options["body"]["metadata"], "uid": "7"}} if "body" in options else {}


def posts_and_deletes(sent: Api) -> list[tuple[str, str, bool]]:
    """Return the method, resource and dry run of each change."""
    changes = [(method, path, options) for method, path, options in sent.requests if method in ("post", "delete")]
    dry = [("dryRun", "All") in options.get("query_params", ()) for _, _, options in changes]
    return [
        (method, path.partition("/namespaces/blue/")[2], each)
        for (method, path, _), each in zip(changes, dry, strict=True)
    ]


def test_the_files_of_a_train_job_are_created_first_and_deleted_with_it(mlbatch: Callable[..., Api]) -> None:
    sent = mlbatch({**cluster(REPORTS["runs"]), TRAIN_JOBS: made, CONFIG_MAPS: made})
    main(["submit", str(ROOT / "examples" / "train-job.yaml")])
    kinds = ["configmaps", "trainjobs"]
    assert posts_and_deletes(sent) == [("post", kind, dry) for dry in (True, False) for kind in kinds]
    files = [options["body"]["metadata"] for _, path, options in sent.requests if path == CONFIG_MAPS]
    assert [each["labels"] for each in files] == [{"mlbatch/files-of": "train-job"}] * 2
    there = {
        TRAIN_JOBS: {"items": [{"metadata": {"name": "train-job", "uid": "7"}}]},
        CONFIG_MAPS: {"items": [{"metadata": {"name": "train-job-program"}}]},
        f"{TRAIN_JOBS}/train-job": {},
        f"{CONFIG_MAPS}/train-job-program": {},
    }
    sent = mlbatch(there)
    assert main(["cancel", "train-job"]) == 0
    assert [path for _, path, _ in posts_and_deletes(sent)] == ["trainjobs/train-job", "configmaps/train-job-program"]
    (listed,) = [each for method, path, each in sent.requests if (method, path) == ("get", CONFIG_MAPS)]
    assert listed["label_selector"] == "mlbatch/files-of=train-job"


def test_no_file_is_left_of_a_train_job_that_is_rejected(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    def rejects(method: str, options: dict[str, Any]) -> Any:
        return made(method, options) if ("dryRun", "All") in options["query_params"] else refusal(409, "already exists")

    sent = mlbatch({TRAIN_JOBS: rejects, CONFIG_MAPS: made, f"{CONFIG_MAPS}/train-job-program": {}})
    assert main(["submit", str(ROOT / "examples" / "train-job.yaml")]) == 2
    assert "the team has a job train-job" in capsys.readouterr().err
    assert posts_and_deletes(sent)[-1] == ("delete", "configmaps/train-job-program", False)


def test_a_dry_run_prints_the_job_and_submits_nothing(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    sent = mlbatch({WRAPPERS: {}})
    assert main([*RUN[:1], "--dry-run", *RUN[1:]]) == 0
    container = yaml.safe_load(capsys.readouterr().out)["spec"]["components"][1]["template"]["spec"]["template"]["spec"]
    assert container["containers"][0]["command"] == ["t", "-x"]
    assert [dict(each["query_params"])["dryRun"] for method, _, each in sent.requests if method == "post"] == ["All"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            refusal(422, "x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: a field"),
            "error: policy p rejects the job: a field\n",
        ),
        (refusal(409, "already exists"), "error: the team has a job job: run `mlbatch cancel job`"),
        (refusal(403, 'User "eve" cannot create resource'), "Ask an administrator to add you to the team"),
        (refusal(400, 'admission webhook "a.b" denied the request: bad pod sets'), "error: bad pod sets\n"),
    ],
)
def test_a_refusal_is_told_in_its_own_words(
    answer: ApiException, said: str, mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    mlbatch({WRAPPERS: answer})
    assert main(RUN) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "x"], "--env 'x': write KEY=VALUE"),
        (["--env", "=secret"], "--env '': write KEY=VALUE"),
        (["--env", "a b=c"], "--env 'a b': write KEY=VALUE"),
        (["--volume", "x"], "--volume 'x': write CLAIM:PATH"),
        (["--volume", "d:data"], "a path that starts with /"),
        (["--volume", "d:/"], "--volume 'd:/': write CLAIM:PATH"),
        (["--volume", "D:/data"], "--volume 'D:/data': write CLAIM:PATH"),
        (["--volume", "d:/data:ro"], "--volume 'd:/data:ro': write CLAIM:PATH"),
        (["--volume", "a:/d", "--volume", "b:/d/"], "--volume 'b:/d/': this path has a volume already"),
        (["--volume", "a:/dev/shm"], "--volume 'a:/dev/shm': this path has a volume already"),
    ],
)
def test_an_invalid_option_is_an_error_before_a_request(
    options: list[str], said: str, mlbatch: Callable[[Mapping[str, Any]], Api], capsys: pytest.CaptureFixture[str]
) -> None:
    sent = mlbatch({})
    assert main(["run", "--image", "i", *options, "--", "t"]) == 2
    assert said in capsys.readouterr().err
    assert [method for method, _, _ in sent.requests if method == "post"] == []


@pytest.mark.parametrize(("name", "code"), [("runs", 0), ("succeeded", 0), ("failed", 1), ("waits for nodes", 1)])
def test_why_ends_by_the_state(
    name: str, code: int, mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    mlbatch(cluster(REPORTS[name]))
    assert main(["why", "job"]) == code
    assert capsys.readouterr().out.startswith("blue/job: ")
    assert main(["why", "job", "--output", "json"]) == code
    assert json.loads(capsys.readouterr().out)["job"] == "blue/job"


def test_a_job_is_followed_to_its_end_with_its_output(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    running, ended = (cluster(REPORTS[name]) for name in ("runs", "failed"))
    has_ended = False

    def log(method: str, options: dict[str, Any]) -> Any:
        nonlocal has_ended
        has_ended = True
        return output("step 1", "step 2")(method, options)

    answers = {path: lambda *_, path=path: (ended if has_ended else running)[path] for path in running}
    mlbatch({**answers, f"{PODS}/job-0/log": log})
    assert main(["logs", "job", "--follow"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "step 1\nstep 2\n"
    assert [line for line in shown.err.splitlines() if line.startswith("blue/job")] == [
        "blue/job: running",
        "blue/job: failed",
    ]


def test_an_interruption_leaves_the_job_and_says_how_to_come_back(
    mlbatch: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "find", interrupt)
    sent = mlbatch({})
    assert main(["logs", "job", "--follow"]) == 130
    assert "the job goes on. Follow it again with `mlbatch logs job --follow`" in capsys.readouterr().err
    assert [method for method, _, _ in sent.requests if method == "delete"] == []


def test_an_output_that_breaks_goes_on_after_its_last_line(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    running, ended = (cluster(REPORTS[name]) for name in ("runs", "failed"))
    reads = 0

    def log(method: str, options: dict[str, Any]) -> Any:
        nonlocal reads
        reads += 1
        if reads == 2:
            raise ReadTimeoutError(HTTPConnectionPool("cluster"), "", "silent for a minute")
        if reads == 3:
            return [*whole(method, options), b"without a time\n"]
        return broken(method, options)

    whole, broken = output("a\r b", "c", "d"), output("a\r b", "c", "d", broken=2)

    answers = {path: lambda *_, path=path: (ended if reads > 2 else running)[path] for path in running}
    mlbatch({**answers, f"{PODS}/job-0/log": log})
    assert main(["logs", "job", "--follow"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "a\r b\nc\nd\nwithout a time\n"
    assert [line for line in shown.err.splitlines() if "cannot be read" in line] == [
        "the output of job-0 cannot be read now: Connection broken"
    ]


def test_a_cluster_that_does_not_answer_for_a_while_does_not_end_what_follows(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    running, ended = (cluster(REPORTS[name]) for name in ("runs", "was deactivated"))
    looks = 0

    def wrappers(*_: object) -> Any:
        nonlocal looks
        looks += 1
        return (running, refusal(503, "etcd is busy"), HTTPError("no route"), ended)[min(looks, 4) - 1]

    def job(*_: object) -> Any:
        found = wrappers()
        return found if isinstance(found, Exception) else found[WRAPPERS]

    workloads = lambda *_: (running if looks < 4 else ended)[WORKLOADS]  # noqa: E731
    mlbatch({**running, WRAPPERS: job, WORKLOADS: workloads, f"{PODS}/job-0/log": output("a")})
    assert main(["logs", "job", "--follow"]) == 1
    assert [line for line in capsys.readouterr().err.splitlines() if not line.startswith(" ")] == [
        "blue/job: running",
        "the cluster does not answer, trying again: etcd is busy",
        "the cluster does not answer, trying again: no route",
        "blue/job: stopped",
    ]


def test_an_error_of_the_first_answer_ends_it(mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]) -> None:
    mlbatch({WRAPPERS: refusal(503, "etcd is busy")})
    assert main(["logs", "job", "--follow"]) == 2
    assert "the cluster rejects the request: etcd is busy" in capsys.readouterr().err


def test_a_rank_that_does_not_run_is_told(mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]) -> None:
    running, ended = (cluster(REPORTS[name]) for name in ("runs", "failed"))
    answers = iter([running[WRAPPERS], ended[WRAPPERS]])
    mlbatch({**running, WRAPPERS: lambda *_: next(answers)})
    assert main(["logs", "job", "--follow", "--rank", "2"]) == 1
    assert "job has no pod 2 now. --rank counts from 0\n" in capsys.readouterr().err


def test_ranks_are_numbers(mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]) -> None:
    answers = cluster(REPORTS["runs"])
    pod, _ = answers[PODS]["items"]
    pods = [{**pod, "metadata": {"name": f"job-{number}", "uid": str(number)}} for number in (10, 2, 1)]
    mlbatch({**answers, PODS: {"items": pods}, f"{PODS}/job-2/log": output("second")})
    assert main(["logs", "job", "--rank", "1"]) == 0
    assert capsys.readouterr().out == "second\n"


def test_a_pod_in_place_of_another_has_its_rank(
    mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = cluster(REPORTS["runs"])
    for number, pod in enumerate(answers[PODS]["items"]):
        labels = {"batch.kubernetes.io/job-completion-index": "0"}
        pod["metadata"] |= {"labels": labels, "creationTimestamp": f"2026-01-0{number + 1}T00:00:00Z"}
    mlbatch({**answers, f"{PODS}/job-1/log": output("new")})
    assert main(["logs", "job"]) == 0
    assert capsys.readouterr().out == "new\n"


def test_a_character_arrives_in_parts(tmp_path: Path) -> None:
    """The real client reads chunks as a kubelet sends them."""
    parts = "é 10%\r20%\n".encode()

    class Kubelet(Handler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            if not self.path.endswith("/log?container=main"):
                return self.answer(200, {"kind": "APIGroupList", "groups": [], "resources": []})
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for byte in parts:
                self.wfile.write(b"1\r\n%c\r\n" % byte)
            self.wfile.write(b"0\r\n\r\n")
            return None

    with serving(Kubelet) as port:
        team = connect(kubeconfig_of(f"http://127.0.0.1:{port}", tmp_path), None, "blue", None)
        assert list(team.log("job-0", "main")) == ["é 10%\r20%"]


def test_the_output_of_another_pod(mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]) -> None:
    answers = cluster(REPORTS["runs"])
    mlbatch({**answers, f"{PODS}/job-1/log": output("second")})
    assert main(["logs", "job", "--rank", "1"]) == 0
    assert capsys.readouterr().out == "second\n"
    assert main(["logs", "job", "--rank", "2"]) == 2
    assert "job has no pod 2 now, of 2 pods" in capsys.readouterr().err


def test_a_job_is_cancelled(mlbatch: Callable[..., Api], capsys: pytest.CaptureFixture[str]) -> None:
    sent = mlbatch({**cluster(REPORTS["runs"]), f"{WRAPPERS}/job": {}})
    assert main(["cancel", "job"]) == 0
    assert ("delete", f"{WRAPPERS}/job") in [(method, path) for method, path, _ in sent.requests]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no team is named: add --team TEAM"),
        (["--team", "../.."], "the team '../..' is not the name of a namespace"),
        (["--team", "blue", "--as", ""], "--as '' is not the name of a user"),
        (["--team", "blue", "--as", "a\nb"], "is not the name of a user"),
    ],
)
def test_a_connection_needs_a_team_and_a_user(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kubeconfig_of("http://127.0.0.1:1", tmp_path)
    assert main(["why", "--kubeconfig", str(file), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--team", "blue"]])
@pytest.mark.parametrize("text", ["{kind: Config, contexts: [", "kind: Config", "[]", "contexts: 1", "\x00"])
def test_an_invalid_kubeconfig_is_one_line(
    text: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    assert main(["why", "--kubeconfig", str(file), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the kubeconfig cannot be used: ")


def test_a_context_is_enough_without_a_current_one(tmp_path: Path) -> None:
    file = kubeconfig_of("http://127.0.0.1:1", tmp_path)
    config = yaml.safe_load(file.read_text())
    config["contexts"][0]["context"]["namespace"] = "blue"
    del config["current-context"]
    file.write_text(yaml.safe_dump(config))
    assert namespace(file, "c") == "blue"


def test_members_need_three_packages() -> None:
    """typer, PyYAML and kubernetes, with their dependencies."""
    program = "import sys, cli.member, cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"pulumi", "jinja2", "emulator", "stacks", "grpc", "openstack", "bcrypt", "jsonschema"})
