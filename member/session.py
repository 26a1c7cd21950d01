"""A team member's connection to the team's namespace."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes.client.exceptions import ApiException

from ask.manifest import Job
from ask.messages import POLICY
from components import names
from components.job_kinds import POD_GROUP, SUBMITTED, JobKind
from runner import report
from runner.report import Client, message

Document = dict[str, Any]

_KUEUE: Final = tuple(api.rpartition("/")[2] for api in (names.KUEUE_API, names.KUEUE_API_BEFORE))
_GONE, _UNAVAILABLE = 404, 503
FILES_OF: Final = "mlbatch/files-of"
"""Label with the name of the job that a file was submitted with."""
CONFIG_MAP: Final = JobKind(group="", version="v1", kind="ConfigMap", plural="configmaps", controller=None)
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class MemberError(Exception):
    """The command could not be done. The message states the problem and the fix."""


@dataclass(frozen=True)
class Session:
    """A client with the rights of a member. team: the namespace.

    Paths are written out, because a lookup of a kind that the cluster does not serve reads all of its kinds.
    """

    client: Client
    team: str

    def items(self, kind: JobKind, **options: str) -> list[Document]:
        """Return the team's objects of a kind. Empty if the cluster does not serve the kind."""
        found = self._read(self.path(kind), **options)
        return [{"apiVersion": kind.api, "kind": kind.kind, **item} for item in found.get("items") or ()]

    def queueing(self, plural: str, **options: str) -> list[Document]:
        """Return the team's objects of Kueue, in the first API version that the cluster serves."""
        for version in _KUEUE:
            if found := self._read(f"{_namespaced(names.KUEUE_GROUP, version, self.team)}/{plural}", **options):
                return list(found["items"])
        return []

    def pending(self, queue: str) -> list[Document]:
        """Return the pending jobs of a LocalQueue in Kueue's order. Empty if Kueue does not tell."""
        for version in _KUEUE:
            path = _namespaced(f"visibility.{names.KUEUE_GROUP}", version, self.team)
            try:
                if found := self._read(f"{path}/localqueues/{queue}/pendingworkloads"):
                    return list(found["items"])
            except ApiException as error:
                if error.status not in (403, _UNAVAILABLE):
                    raise
        return []

    def events(self) -> list[Document]:
        """Return the warnings about the team's objects, the newest last."""
        path = f"/api/v1/namespaces/{self.team}/events"
        found = self._read(path, field_selector="type=Warning").get("items") or []
        return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))

    def queue(self) -> str:
        """Return the queue for the user's jobs: the user's own if the team's users have queues, else the team's."""
        namespace = self._read(f"/api/v1/namespaces/{self.team}")
        own = ((namespace.get("metadata") or {}).get("annotations") or {}).get(names.USER_QUEUES)
        if not own:
            return names.LOCAL_QUEUE
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        user = self._call("post", path, body=review)["status"]["userInfo"]["username"]
        queues = {owner: queue for queue, _, owner in (line.partition("=") for line in own.splitlines())}
        return str(queues.get(user, names.LOCAL_QUEUE))

    def has_pod_groups(self) -> bool:
        """Return whether the cluster serves PodGroups."""
        served = self._read(f"/apis/{POD_GROUP.api}").get("resources") or ()
        return any(each["name"] == POD_GROUP.plural for each in served)

    def check(self, job: Job, files: Sequence[Document]) -> None:
        """Raise MemberError with the reason if the cluster rejects a job or its files."""
        for document in (*files, job.document):
            self._create(document, ("dryRun", "All"))

    def submit(self, job: Job, files: Sequence[Document]) -> None:
        """Create a job after its files. Raises MemberError if the cluster rejects one, and leaves none of them."""
        made = []
        try:
            for document in (*files, job.document):
                self._create(document)
                made.append(document)
        except BaseException:
            for document in made:
                self.delete(_kind(document), document["metadata"]["name"])
            raise

    def cancel(self, kind: JobKind, name: str) -> None:
        """Delete a job, with its parts and the files that were submitted with it."""
        self.delete(kind, name)
        for file in self.items(CONFIG_MAP, label_selector=f"{FILES_OF}={name}"):
            self.delete(CONFIG_MAP, file["metadata"]["name"])

    def delete(self, kind: JobKind, name: str) -> None:
        """Delete an object. Its parts are deleted, too."""
        self._call("delete", f"{self.path(kind)}/{name}", propagation_policy="Background")

    def _create(self, document: Document, *query: tuple[str, str]) -> Document:
        """Create an object and return it. The API server rejects unknown fields, as for `kubectl apply`."""
        options = [("fieldValidation", "Strict"), *query]
        try:
            return self._call("post", self.path(_kind(document)), body=document, query_params=options)
        except ApiException as error:
            raise MemberError(_refusal(error, document)) from error

    def log(self, pod: str, container: str, **query: str) -> Iterator[str]:
        """Yield the lines of a container's log. Raises urllib3's exceptions, also after a minute without a line.

        query: options of the API, such as follow=true.
        """
        path = f"/api/v1/namespaces/{self.team}/pods/{pod}/log"
        options = {"query_params": [("container", container), *query.items()], "header_params": {"Accept": "*/*"}}
        for line in self.client.request("get", path, serialize=False, **options):
            yield line.decode(errors="replace").removesuffix("\n")

    def path(self, kind: JobKind) -> str:
        """Return the API's path of a kind in the team's namespace."""
        return f"{_namespaced(kind.group, kind.version, self.team)}/{kind.plural}"

    def _read(self, path: str, **options: str) -> Document:
        """Return an answer, empty if the path does not exist."""
        try:
            return self._call("get", path, **options)
        except ApiException as error:
            if error.status == _GONE:
                return {}
            raise

    def _call(self, method: str, path: str, **options: Any) -> Document:
        found: Document = self.client.request(method, path, serializer=lambda _, answer: answer, **options)
        return found


def connect(kubeconfig: Path | None, context: str | None, team: str | None, user: str | None) -> Session:
    """Return a session. Raises MemberError if no team is named, and the errors of `runner.report.connect`.

    team: default is the namespace of the kubeconfig's context. user: act as this user, as `kubectl --as`.
    """
    team = report.namespace(kubeconfig, context) if team is None else team
    if not team:
        raise MemberError(
            "no team is named: add --team TEAM, or run `kubectl config set-context --current --namespace TEAM` once"
        )
    if not _NAMESPACE.fullmatch(team):
        raise MemberError(f"the team {team!r} is not the name of a namespace: write lower-case letters, digits and -")
    if user is not None and not (user.strip() and user.isprintable()):
        raise MemberError(f"--as {user!r} is not the name of a user: write it as `kubectl auth whoami` prints it")
    client = report.connect(kubeconfig, context, report.SECONDS)
    if user is not None:
        # The client sends headers as Latin-1, and the API server reads names as UTF-8.
        client.client.set_default_header("Impersonate-User", user.encode().decode("latin-1"))
    return Session(client, team)


def _namespaced(group: str, version: str, namespace: str) -> str:
    return f"/{f'apis/{group}' if group else 'api'}/{version}/namespaces/{namespace}"


def _kind(document: Document) -> JobKind:
    return next(each for each in (CONFIG_MAP, *SUBMITTED) if each.kind == document["kind"])


def _refusal(error: ApiException, document: Document) -> str:
    """Return why the API server rejects an object, and the fix."""
    name = document["metadata"].get("name")
    said = message(error)
    if found := POLICY.search(said):
        return f"policy {found[1]} rejects the job: {' '.join(found[2].split())}"
    if error.status == 409 and document["kind"] == CONFIG_MAP.kind:
        return f"the team has a ConfigMap {name}: delete it (kubectl delete configmap {name}), or rename it in the file"
    if error.status == 409:
        return f"the team has a job {name}: run `mlbatch cancel {name}`, or submit under another name"
    if error.status == 403 and "cannot create" in said:
        return f"{said}. Ask an administrator to add you to the team, or name your team with --team"
    return re.sub(r"^admission webhook \S+ denied the request: ", "", " ".join(said.split()))
